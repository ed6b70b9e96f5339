//! A list of sessions on the terminal, in which a person chooses one with arrow keys or by number.

use std::io::{self, BufRead as _};

use anstyle::Style;
use teamster::event::SessionId;
use teamster::sessions::StoredSession;
use termina::event::{KeyCode, KeyEvent, Modifiers};

use super::table::Table;
use crate::live_area::{Content, LiveArea, Size};
use crate::printable::{Printable, printable};
use crate::render;
use crate::terminal::{KeyReader, Terminal, TerminalInput};

/// The lines around the sessions: the title, the heading and the keys.
const OTHER_LINES: usize = 3;

const TITLE: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const CHOSEN: Style = Style::new().bold().invert();

/// Lets a person choose a session. Returns `None` if the person declines.
///
/// # Errors
/// Returns the error of the terminal.
pub(crate) fn choose(title: Printable, sessions: &[StoredSession]) -> io::Result<Option<SessionId>> {
    let table = Table { width: Some(Size::of_stdout().columns.saturating_sub(6)), ..Table::of_stdout(false) };
    let mut picker = Picker::new(title, table.rows(sessions));
    let chosen = if render::is_interactive() { choose_with_keys(&mut picker)? } else { choose_by_line(&picker)? };
    Ok(chosen.and_then(|index| sessions.get(index)).map(|session| session.id.clone()))
}

/// Shows the list below the output, and erases it at the end.
fn choose_with_keys(picker: &mut Picker) -> io::Result<Option<usize>> {
    let terminal = Terminal::enter(true)?;
    let mut keys = KeyReader::start(true)?;
    let mut area = LiveArea::of_stdout();
    let chosen = loop {
        area.show(picker.content(Size::of_stdout().rows))?;
        let step = match keys.blocking_next() {
            TerminalInput::Key(key) => picker.press(key),
            TerminalInput::Closed | TerminalInput::EndOfInput => Step::Decline,
            TerminalInput::Paste(_) | TerminalInput::Line(_) | TerminalInput::Barrier => Step::Continue,
        };
        match step {
            Step::Continue => {}
            Step::Choose(index) => break Some(index),
            Step::Decline => break None,
        }
    };
    area.clear()?;
    drop(keys);
    drop(terminal);
    Ok(chosen)
}

/// Prints the list, and reads a number, on a terminal that cannot move its cursor.
fn choose_by_line(picker: &Picker) -> io::Result<Option<usize>> {
    let mut stdout = anstream::stdout();
    Printable::join(picker.numbered(), "\n").write_line(&mut stdout)?;
    loop {
        Printable::from("a number (empty = none): ").write(&mut stdout)?;
        io::Write::flush(&mut stdout)?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(None);
        }
        match picker.index_of(line.trim()) {
            Some(index) => return Ok(Some(index)),
            None => printable!("choose from 1 to {}", picker.rows.len()).write_line(&mut stdout)?,
        }
    }
}

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Continue,
    Choose(usize),
    Decline,
}

/// A list with a chosen row.
#[derive(Debug)]
struct Picker {
    title: Printable,
    heading: Printable,
    rows: Vec<Printable>,
    chosen: usize,
    /// The digits that were typed.
    number: String,
}

impl Picker {
    /// Creates a list. The first row is the heading.
    fn new(title: Printable, rows: Vec<Printable>) -> Self {
        let mut rows = rows.into_iter();
        let heading = rows.next().unwrap_or_default();
        Self { title, heading, rows: rows.collect(), chosen: 0, number: String::new() }
    }

    /// Returns the index of a number that was typed.
    fn index_of(&self, number: &str) -> Option<usize> {
        number.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < self.rows.len())
    }

    fn press(&mut self, key: KeyEvent) -> Step {
        let is_control = key.modifiers.contains(Modifiers::CONTROL);
        let typed = std::mem::take(&mut self.number);
        match key.code {
            KeyCode::Enter => return Step::Choose(self.chosen),
            KeyCode::Escape => return Step::Decline,
            KeyCode::Char('c' | 'd') if is_control => return Step::Decline,
            KeyCode::Char('q') if !is_control => return Step::Decline,
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Char('p') if is_control => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.move_down(1),
            KeyCode::Char('n') if is_control => self.move_down(1),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(10),
            KeyCode::PageDown => self.move_down(10),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.move_down(usize::MAX),
            KeyCode::Char(digit @ '0'..='9') => self.type_digit(typed, digit),
            _ => {}
        }
        Step::Continue
    }

    fn move_down(&mut self, count: usize) {
        self.chosen = self.chosen.saturating_add(count).min(self.rows.len().saturating_sub(1));
    }

    /// Chooses the row with the number that is typed. A digit that continues no number starts another one.
    fn type_digit(&mut self, mut typed: String, digit: char) {
        typed.push(digit);
        let digit = digit.to_string();
        let found = [typed, digit].into_iter().find_map(|number| Some((self.index_of(&number)?, number)));
        if let Some((index, number)) = found {
            (self.chosen, self.number) = (index, number);
        }
    }

    fn numbered(&self) -> Vec<Printable> {
        let heading = printable!("      {}", &self.heading);
        let rows = (1_usize..).zip(&self.rows).map(|(number, row)| printable!("{:>4}  {}", number_text(number), row));
        [self.title.clone(), heading].into_iter().chain(rows).collect()
    }

    /// Returns what is shown on a terminal with this many rows: the rows around the chosen one.
    fn content(&self, rows: usize) -> Content {
        let room = rows.saturating_sub(OTHER_LINES + 1).max(1);
        let first = (self.chosen + 1).saturating_sub(room).min(self.rows.len().saturating_sub(room));
        let mut lines = vec![self.title.styled(TITLE), printable!("      {}", &self.heading).styled(QUIET)];
        for (index, row) in self.rows.iter().enumerate().skip(first).take(room) {
            let is_chosen = index == self.chosen;
            let mark = if is_chosen { "❯" } else { " " };
            let line = printable!("{}{:>3}  {}", mark, number_text(index + 1), row);
            lines.push(if is_chosen { line.styled(CHOSEN) } else { line });
        }
        lines.push(Printable::from("↑ ↓ or a number · Enter: resume · Esc: cancel").styled(QUIET));
        Content { lines, cursor: None }
    }
}

fn number_text(number: usize) -> Printable {
    printable!("{}", number)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn picker(count: usize) -> Picker {
        let rows = (0..=count).map(|row| if row == 0 { "TITLE".into() } else { printable!("session {}", row) });
        Picker::new("Which?".into(), rows.collect())
    }

    fn press(picker: &mut Picker, keys: &[KeyCode]) -> Vec<Step> {
        keys.iter().map(|code| picker.press(KeyEvent::new(*code, Modifiers::NONE))).collect()
    }

    #[test]
    fn arrows_and_numbers_choose_a_row() {
        let mut picker = picker(30);
        press(&mut picker, &[KeyCode::Down, KeyCode::Down, KeyCode::Up]);
        assert_eq!(press(&mut picker, &[KeyCode::Enter]), [Step::Choose(1)]);
        press(&mut picker, &[KeyCode::Char('2'), KeyCode::Char('4')]);
        assert_eq!(picker.chosen, 23);
        press(&mut picker, &[KeyCode::Char('7')]);
        assert_eq!(picker.chosen, 6, "247 is no row");
        press(&mut picker, &[KeyCode::End, KeyCode::Down]);
        assert_eq!(picker.chosen, 29);
        press(&mut picker, &[KeyCode::PageUp, KeyCode::Home, KeyCode::Up]);
        assert_eq!(picker.chosen, 0);
        assert_eq!(press(&mut picker, &[KeyCode::Escape]), [Step::Decline]);
        assert_eq!(picker.press(KeyEvent::new(KeyCode::Char('c'), Modifiers::CONTROL)), Step::Decline);
    }

    #[test]
    fn the_chosen_row_is_visible_on_a_low_terminal() {
        let mut picker = picker(30);
        press(&mut picker, &[KeyCode::Char('1'), KeyCode::Char('2')]);
        let lines = picker.content(8).lines.iter().map(Printable::without_styles).collect::<Vec<_>>();
        assert_snapshot!(Printable::join(lines, "\n").as_str());
    }
}
