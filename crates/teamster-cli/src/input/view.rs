//! The lines of the input box for a width, and the position of the cursor.

use anstyle::{AnsiColor, Style};
use unicode_segmentation::UnicodeSegmentation as _;

use super::columns::shown;
use super::completion::Menu;
use super::input_box::Input;
use crate::live_area::Cursor;
use crate::printable::{Printable, printable};

/// The prompt of the first line, and the indentation of the others.
const PROMPT: &str = "> ";
const INDENT: &str = "  ";

/// The number of waiting prompts and of candidates that are shown.
const SHOWN_PROMPTS: usize = 4;
const SHOWN_CANDIDATES: usize = 6;

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
    /// Returns the lines of the box. A long text is shown around the cursor, in at most `rows` lines.
    pub(crate) fn view(&self, width: usize, rows: usize) -> View {
        let mut view = View { lines: self.waiting_lines(width), cursor: Cursor::default() };
        let width = width.max(8);
        match (&self.answer, &self.search) {
            (Some(answer), _) => {
                let rows_of_answer = wrap(&answer.prompt, answer.text.as_str(), answer.text.position(), width);
                view.add_text(rows_of_answer, rows);
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
                    view.lines.extend(menu_lines(menu, width));
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

/// Wraps a text behind a prompt. The other rows are indented.
fn wrap(prompt: &Printable, text: &str, position: usize, width: usize) -> Rows {
    let mut row = prompt.clone();
    let (mut rows, mut used) = (Vec::new(), prompt.columns_without_styles());
    let mut cursor = None;
    for (at, grapheme) in text.grapheme_indices(true) {
        let shown = shown(grapheme);
        let columns = shown.columns();
        // The cursor needs a column after the last character.
        if used + columns > width.saturating_sub(1) && grapheme != "\n" {
            rows.push(std::mem::replace(&mut row, INDENT.into()));
            used = INDENT.len();
        }
        if at <= position && position < at + grapheme.len() {
            cursor = Some(Cursor { row: rows.len(), column: used });
        }
        if matches!(grapheme, "\n" | "\r\n") {
            rows.push(std::mem::replace(&mut row, INDENT.into()));
            used = INDENT.len();
        } else {
            row.push(&shown);
            used += columns;
        }
    }
    let cursor = cursor.unwrap_or(Cursor { row: rows.len(), column: used });
    rows.push(row);
    Rows { rows, cursor }
}

/// Returns a text on one line, with its size if it has several.
fn one_line(text: &str) -> Printable {
    let lines = text.trim_end().lines().count();
    let shown = Printable::message(text);
    if lines > 1 { printable!("({} lines) {}", lines, shown) } else { shown }
}

fn menu_lines(menu: &Menu, width: usize) -> Vec<Printable> {
    let first = menu.chosen.unwrap_or(0).saturating_sub(SHOWN_CANDIDATES - 1);
    let style = |index: usize| if menu.chosen == Some(index) { CHOSEN } else { Style::new() };
    let candidates = menu.candidates.iter().enumerate().skip(first).take(SHOWN_CANDIDATES);
    let mut lines: Vec<Printable> = candidates
        .map(|(index, name)| {
            printable!("{}{}", INDENT, Printable::exact(name).cut(width.saturating_sub(4)).styled(style(index)))
        })
        .collect();
    let hidden = menu.candidates.len().saturating_sub(lines.len());
    if hidden > 0 {
        lines.push(printable!("{}... and {} more", INDENT, hidden).styled(DIM));
    }
    lines
}
