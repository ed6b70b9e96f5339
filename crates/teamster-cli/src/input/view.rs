//! The lines of the input box for a width, and the position of the cursor.

use anstyle::{AnsiColor, Style};
use unicode_segmentation::UnicodeSegmentation as _;

use super::columns::shown;
use super::completion::{Candidate, Menu};
use super::input_box::Input;
use crate::live_area::Cursor;
use crate::printable::{Printable, printable};

/// The prompt of the first line, and the indentation of the others.
const PROMPT: &str = "> ";
const INDENT: &str = "  ";

/// The number of waiting prompts and of candidates that are shown.
const SHOWN_PROMPTS: usize = 4;
const SHOWN_CANDIDATES: usize = 6;
/// The rows of the other lines around a menu.
const OTHER_ROWS: usize = 8;

const DIM: Style = Style::new().dimmed();
const MARK: Style = AnsiColor::Cyan.on_default();
const CHOSEN: Style = Style::new().invert();

/// The lines of the input box.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) lines: Vec<Printable>,
    pub(crate) cursor: Cursor,
}

impl Input {
    /// Returns the lines of the box on a screen with this number of rows. A long text is shown around the cursor, in at most
    /// `rows` lines.
    pub(crate) fn view(&self, width: usize, rows: usize, screen_rows: usize) -> View {
        let mut view = View { lines: self.waiting_lines(width), cursor: Cursor::default() };
        let width = width.max(8);
        match (&self.answer, &self.search) {
            (Some(answer), _) => {
                let rows_of_answer = wrap(&answer.prompt, answer.text.as_str(), answer.text.position(), width);
                view.add_text(rows_of_answer, rows);
                let chosen = answer.chosen().map(|option| printable!("{}❯ {}", INDENT, option));
                view.lines.extend(chosen.map(|line| line.cut(width).styled(MARK)));
                if !self.text.is_empty() {
                    let draft = printable!("{}your text stays: {}", INDENT, one_line(self.text.as_str()));
                    view.lines.push(draft.cut(width).styled(DIM));
                }
            }
            (None, Some(search)) => {
                let state = if search.words.is_empty() || search.is_found() { "" } else { "no match for " };
                let prompt = printable!("{}search: ", state);
                view.add_text(wrap(&prompt, &search.words, search.words.len(), width), rows);
                let found = printable!("{}{}", INDENT, one_line(&search.text));
                view.lines.push(found.cut(width));
            }
            (None, None) => {
                let prompt = Printable::from(if self.is_vi_normal() { ": " } else { PROMPT }).styled(MARK);
                view.add_text(wrap(&prompt, self.text.as_str(), self.text.position(), width), rows);
                if let Some(menu) = &self.menu {
                    let candidates = screen_rows.saturating_sub(OTHER_ROWS).max(SHOWN_CANDIDATES);
                    view.lines.extend(menu_lines(menu, width, candidates));
                }
            }
        }
        view
    }

    fn waiting_lines(&self, width: usize) -> Vec<Printable> {
        let (count, is_held) = (self.waiting.len(), self.waiting.is_held());
        let line = |mark: &'static str, prompt: &str| {
            printable!("{}{}{}", INDENT, mark, one_line(prompt)).cut(width).styled(DIM)
        };
        let mut lines: Vec<Printable> = self.waiting.sending().map(|prompt| line("sending: ", prompt)).collect();
        let mark = if is_held { "not sent: " } else { "waiting: " };
        lines.extend(self.waiting.iter().take(SHOWN_PROMPTS).map(|prompt| line(mark, prompt)));
        if count > SHOWN_PROMPTS {
            lines.push(printable!("{}... and {} more", INDENT, count - SHOWN_PROMPTS).styled(DIM));
        }
        if count > 0 {
            let keys = if is_held {
                "Enter sends them, Up edits the last, Del removes it"
            } else {
                "Up edits the last, Del removes it"
            };
            lines.push(printable!("{}(in an empty line: {})", INDENT, keys).cut(width).styled(DIM));
        }
        lines
    }
}

impl View {
    /// Adds the rows around the cursor.
    fn add_text(&mut self, text: Rows, limit: usize) {
        let limit = limit.max(1);
        let first = text.cursor.row.saturating_sub(limit - 1).min(text.rows.len().saturating_sub(limit));
        self.cursor = Cursor { row: self.lines.len() + text.cursor.row - first, column: text.cursor.column };
        self.lines.extend(text.rows.into_iter().skip(first).take(limit));
    }
}

/// A text that is wrapped at a width.
struct Rows {
    rows: Vec<Printable>,
    cursor: Cursor,
}

/// A grapheme of a text.
struct Cell {
    /// Its position in the text, in bytes.
    at: usize,
    shown: Printable,
    columns: usize,
    kind: CellKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CellKind {
    LineEnd,
    Space,
    Narrow,
    /// A row can end before and after it: an ideograph, an escape.
    Wide,
}

impl Cell {
    fn of((at, grapheme): (usize, &str)) -> Self {
        if matches!(grapheme, "\n" | "\r\n") {
            return Self { at, shown: Printable::default(), columns: 0, kind: CellKind::LineEnd };
        }
        let shown = shown(grapheme);
        let columns = shown.columns();
        let kind = match grapheme {
            " " | "\t" => CellKind::Space,
            _ if columns > 1 => CellKind::Wide,
            _ => CellKind::Narrow,
        };
        Self { at, shown, columns, kind }
    }

    /// Whether a row can end between this cell and the next one.
    fn can_end_row(&self, next: &Self) -> bool {
        let is_between_words = self.kind == CellKind::Space && next.kind != CellKind::Space;
        is_between_words || self.kind == CellKind::Wide || next.kind == CellKind::Wide
    }
}

/// Returns the number of cells on the next row. It ends between words, or in a word that is wider than a row. A space after
/// the last word may use the column that is reserved for the cursor.
fn row_length(cells: &[Cell], room: usize) -> usize {
    let (mut used, mut last_end) = (0, 0);
    for (index, cell) in cells.iter().enumerate() {
        if let Some(before) = index.checked_sub(1).and_then(|before| cells.get(before))
            && before.can_end_row(cell)
        {
            last_end = index;
        }
        used += cell.columns;
        match cell.kind {
            // The cursor before a line end needs a column too.
            CellKind::LineEnd => return if used > room { index } else { index + 1 },
            CellKind::Space if used <= room + 1 => {}
            _ if used > room => return if last_end > 0 { last_end } else { index.max(1) },
            _ => {}
        }
    }
    cells.len()
}

/// Wraps a text at words, behind a prompt. The other rows are indented.
fn wrap(prompt: &Printable, text: &str, position: usize, width: usize) -> Rows {
    let cells: Vec<Cell> = text.grapheme_indices(true).map(Cell::of).collect();
    let (mut rest, mut rows, mut cursor) = (cells.as_slice(), Vec::new(), None);
    let mut row = prompt.clone();
    loop {
        let start = row.columns_without_styles();
        let room = (width - 1).saturating_sub(start);
        // A prompt that fills its row is alone on it.
        let length = if room == 0 { 0 } else { row_length(rest, room) };
        let (cells, after) = rest.split_at(length);
        let mut used = start;
        for (index, cell) in cells.iter().enumerate() {
            let end = cells.get(index + 1).or(after.first()).map_or(text.len(), |next| next.at);
            if (cell.at..end).contains(&position) {
                cursor = Some(Cursor { row: rows.len(), column: used });
            }
            row.push(&cell.shown);
            used += cell.columns;
        }
        rest = after;
        let needs_row =
            !rest.is_empty() || cells.last().is_some_and(|cell| cell.kind == CellKind::LineEnd) || used >= width;
        if !needs_row {
            let cursor = cursor.unwrap_or(Cursor { row: rows.len(), column: used });
            rows.push(row);
            return Rows { rows, cursor };
        }
        rows.push(std::mem::replace(&mut row, INDENT.into()));
    }
}

/// Returns a text on one line, with its size if it has several.
fn one_line(text: &str) -> Printable {
    let lines = text.trim_end().lines().count();
    let shown = Printable::message(text);
    if lines > 1 { printable!("({} lines) {}", lines, shown) } else { shown }
}

fn menu_lines(menu: &Menu, width: usize, limit: usize) -> Vec<Printable> {
    let first = menu.chosen.unwrap_or(0).saturating_sub(limit - 1);
    let style = |index: usize| if menu.chosen == Some(index) { CHOSEN } else { Style::new() };
    let mark = if menu.is_of_commands { "/" } else { "" };
    let name = |candidate: &Candidate| printable!("{}{}", mark, Printable::exact(&candidate.text));
    let longest = menu.candidates.iter().map(|candidate| name(candidate).columns()).max().unwrap_or(0);
    let candidates = menu.candidates.iter().enumerate().skip(first).take(limit);
    let mut lines: Vec<Printable> = candidates
        .map(|(index, candidate)| {
            let name = name(candidate).cut(width.saturating_sub(4));
            let space = " ".repeat(longest.saturating_sub(name.columns()) + 2);
            let note = printable!("{}{}", Printable::prose(&space), candidate.note);
            let note = if candidate.note.is_empty() { Printable::default() } else { note };
            let note = note.cut(width.saturating_sub(INDENT.len() + name.columns() + 1));
            printable!("{}{}{}", INDENT, name.styled(style(index)), note.styled(DIM))
        })
        .collect();
    let hidden = menu.candidates.len().saturating_sub(lines.len());
    if hidden > 0 {
        lines.push(printable!("{}... and {} more", INDENT, hidden).styled(DIM));
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str, width: usize) -> Vec<String> {
        let rows = wrap(&"> ".into(), text, text.len(), width).rows;
        rows.iter().map(|row| row.as_str().to_owned()).collect()
    }

    #[test]
    fn a_long_text_is_wrapped_at_words() {
        assert_eq!(rows("one two three four", 12), ["> one two ", "  three ", "  four"]);
        assert_eq!(rows("a longerthanarow word", 12), ["> a ", "  longertha", "  narow ", "  word"]);
        assert_eq!(rows("漢字漢字漢字 a", 12), ["> 漢字漢字", "  漢字 a"]);
        assert_eq!(rows("one\n two", 12), ["> one", "   two"]);
    }

    #[test]
    fn the_cursor_after_a_full_row_is_on_the_next_one() {
        let full = wrap(&"> ".into(), "123456789", 9, 12);
        assert_eq!((full.rows.len(), full.cursor), (1, Cursor { row: 0, column: 11 }));
        let space = wrap(&"> ".into(), "123456789 ", 10, 12);
        assert_eq!((space.rows.len(), space.cursor), (2, Cursor { row: 1, column: 2 }));
    }

    #[test]
    fn a_prompt_that_is_wider_than_the_terminal_is_alone_on_its_row() {
        let Rows { rows, cursor } = wrap(&"a long prompt: ".into(), "ab", 1, 12);
        assert_eq!(rows, ["a long prompt: ".into(), "  ab".into()] as [Printable; 2]);
        assert_eq!(cursor, Cursor { row: 1, column: 3 });
    }

    proptest! {
        #[test]
        fn each_position_has_one_cell_of_its_own(
            text in "([a-z]{1,12}|[ .é漢\t\n]|  |👩‍👩‍👧|\u{1b}|\r\n){0,24}",
            prompt in "[a-z]{0,20}",
            width in 8..40_usize,
        ) {
            let prompt = Printable::exact(&prompt);
            let mut cells = std::collections::HashSet::new();
            let starts = text.grapheme_indices(true);
            for (at, grapheme) in starts.chain([(text.len(), "")]) {
                let Rows { rows, cursor } = wrap(&prompt, &text, at, width);
                let row = rows.get(cursor.row).unwrap().as_str();
                prop_assert!(cursor.column < width, "{:?} {:?}", cursor, rows);
                prop_assert!(cells.insert((cursor.row, cursor.column)) || shown(grapheme).columns() == 0);
                // The character at the cursor is the one of the position.
                let column = crate::input::columns::byte_at_column(row, cursor.column);
                let expected = Cell::of((at, grapheme)).shown;
                prop_assert!(row.get(column..).unwrap().starts_with(expected.as_str()), "{:?} {:?}", cursor, rows);
            }
        }

        #[test]
        fn the_rows_contain_the_text_and_split_no_word_that_fits(
            text in "([a-z]{1,12}|[ .é漢\t\n]|  ){0,24}",
            width in 8..40_usize,
        ) {
            let rows = rows(&text, width);
            let joined: String = rows.iter().map(|row| row.get(2..).unwrap()).collect();
            prop_assert_eq!(&joined, &text.replace('\n', "").replace('\t', "    "));
            for word in text.split([' ', '\t', '\n', '漢']).filter(|word| columns_of(word) <= width - 3) {
                prop_assert!(rows.iter().any(|row| row.contains(word)), "{:?} {:?}", word, rows);
            }
        }
    }

    fn columns_of(word: &str) -> usize {
        crate::input::columns::columns(word)
    }
}
