//! The screen of an emulated terminal.

use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};

use anstyle::Style;
use proptest::prelude::*;

use super::*;

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

/// A terminal with an emulated screen, which a test can resize.
#[derive(Clone)]
struct Terminal(Arc<Mutex<vt100::Parser>>);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The terminal's driver adds the return to the first column.
        let text = String::from_utf8_lossy(bytes).replace('\n', "\r\n");
        self.0.lock().unwrap().process(text.as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Terminal {
    fn new(rows: u16, columns: u16) -> (Self, LiveArea) {
        Self::with_styles(rows, columns, true)
    }

    fn with_styles(rows: u16, columns: u16, styles: bool) -> (Self, LiveArea) {
        let terminal = Self(Arc::new(Mutex::new(vt100::Parser::new(size(rows), size(columns), 1000))));
        let measured = terminal.clone();
        let size = move || {
            let (rows, columns) = measured.0.lock().unwrap().screen().size();
            Size { columns: usize::from(columns.get()), rows: usize::from(rows.get()) }
        };
        let area = LiveArea::new(Box::new(terminal.clone()), size, styles);
        (terminal, area)
    }

    /// Returns the screen without trailing blank lines.
    fn screen(&self) -> String {
        self.0.lock().unwrap().screen().contents()
    }

    fn cursor(&self) -> (u16, u16) {
        self.0.lock().unwrap().screen().cursor_position()
    }
}

fn content(lines: &[&'static str]) -> Content {
    Content { lines: lines.iter().map(|line| Printable::from(*line)).collect(), cursor: None }
}

fn print(area: &mut LiveArea, text: &str) {
    area.write_all(text.as_bytes()).unwrap();
    area.flush().unwrap();
}

#[test]
fn finished_output_is_above_the_area_and_stays() {
    let (terminal, mut area) = Terminal::new(6, 20);
    area.show(content(&["working", "> input"])).unwrap();
    print(&mut area, "one\ntwo\n");
    assert_eq!(terminal.screen(), "one\ntwo\nworking\n> input");
    area.show(content(&["still working"])).unwrap();
    assert_eq!(terminal.screen(), "one\ntwo\nstill working");
    area.hide().unwrap();
    assert_eq!((terminal.screen(), terminal.cursor()), ("one\ntwo".to_owned(), (2, 0)));
}

#[test]
fn an_incomplete_line_is_shown_in_the_area_until_it_is_complete() {
    let (terminal, mut area) = Terminal::new(6, 8);
    area.show(content(&["status"])).unwrap();
    print(&mut area, "half a lo");
    assert_eq!(terminal.screen(), "half a \nlo\nstatus");
    print(&mut area, "ng\nline");
    // The emulator joins a wrapped line.
    assert_eq!(terminal.screen(), "half a long\nline\nstatus");
    area.show(Content::default()).unwrap();
    area.hide().unwrap();
    print(&mut area, "\n");
    assert_eq!(terminal.screen(), "half a long\nline");
}

#[test]
fn the_cursor_is_where_the_content_puts_it() {
    let (terminal, mut area) = Terminal::new(6, 20);
    print(&mut area, "done\n");
    let lines = content(&["> abc", "  def", "status"]).lines;
    area.show(Content { lines, cursor: Some(Cursor { row: 1, column: 3 }) }).unwrap();
    assert_eq!(terminal.cursor(), (2, 3));
    print(&mut area, "more\n");
    assert_eq!((terminal.screen(), terminal.cursor()), ("done\nmore\n> abc\n  def\nstatus".to_owned(), (3, 3)));
}

#[test]
fn an_area_that_is_too_high_shows_its_end_and_keeps_the_scrollback() {
    let (terminal, mut area) = Terminal::new(4, 20);
    print(&mut area, "kept\n");
    for _ in 0..3 {
        area.show(content(&["1", "2", "3", "4", "5", "6"])).unwrap();
    }
    assert_eq!(terminal.screen(), "kept\n4\n5\n6");
    area.hide().unwrap();
    assert_eq!(terminal.screen(), "kept");
}

#[test]
fn a_line_that_is_too_long_is_truncated() {
    let (terminal, mut area) = Terminal::new(4, 8);
    let line = Printable::from("a long line").styled(Style::new().bold());
    area.show(Content { lines: vec![line, "next".into()], cursor: None }).unwrap();
    assert_eq!(terminal.screen(), "a long…\nnext");
}

#[test]
fn what_did_not_change_is_not_drawn_again() {
    let (terminal, mut area) = Terminal::new(4, 20);
    area.show(content(&["same"])).unwrap();
    terminal.0.lock().unwrap().process(b"!");
    area.show(content(&["same"])).unwrap();
    assert_eq!(terminal.screen(), "same!");
}

#[test]
fn a_hidden_area_leaves_the_terminal_to_others() {
    let (terminal, mut area) = Terminal::new(6, 20);
    print(&mut area, "one\n");
    area.show(content(&["status"])).unwrap();
    area.hide().unwrap();
    terminal.0.lock().unwrap().process(b"from another\r\n");
    area.show(content(&["status"])).unwrap();
    assert_eq!(terminal.screen(), "one\nfrom another\nstatus");
}

#[test]
fn without_styles_only_the_cursor_is_controlled() {
    let (terminal, mut area) = Terminal::with_styles(6, 20, false);
    let bold = Printable::from("bold").styled(Style::new().bold());
    print(&mut area, &format!("{bold}\n"));
    area.show(Content { lines: vec![bold], cursor: None }).unwrap();
    let terminal = terminal.0.lock().unwrap();
    assert_eq!(terminal.screen().contents(), "bold\nbold");
    assert!((0..2).all(|row| terminal.screen().cell(row, 0).is_some_and(|cell| !cell.bold())));
}

/// A change of the terminal.
#[derive(Clone, Debug)]
enum Change {
    Print(String),
    Show(Vec<String>),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        "[a-c漢\n]{0,12}".prop_map(Change::Print),
        proptest::collection::vec("[x-z]{0,12}", 0..6).prop_map(Change::Show)
    ]
}

proptest! {
    #[test]
    fn no_finished_output_is_lost(changes in proptest::collection::vec(change(), 0..12)) {
        let (terminal, mut area) = Terminal::new(5, 9);
        let mut expected = String::new();
        for change in &changes {
            match change {
                Change::Print(text) => {
                    print(&mut area, text);
                    expected.push_str(text);
                }
                Change::Show(lines) => {
                    let lines = lines.iter().map(|line| Printable::exact(line)).collect();
                    area.show(Content { lines, cursor: None }).unwrap();
                }
            }
        }
        area.hide().unwrap();
        let mut screen = terminal.0.lock().unwrap();
        screen.screen_mut().set_scrollback(usize::MAX);
        let above = screen.screen().scrollback();
        let mut shown = String::new();
        for offset in (0..=above).rev() {
            screen.screen_mut().set_scrollback(offset);
            let first = screen.screen().rows(0, 9).next().unwrap_or_default();
            shown.push_str(&first);
        }
        shown.push_str(&screen.screen().rows(0, 9).skip(1).collect::<String>());
        prop_assert_eq!(shown, expected.replace('\n', ""));
    }
}
