//! The styles of the text on a screen.

use vt100::{Cell, Color, Screen};

/// A part of a row with one style.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The column in which it starts, from 0.
    pub column: u16,
    /// The text. A wide character takes two columns.
    pub text: String,
    /// The names of the color and of the attributes, such as `["red", "bold"]`.
    pub style: Vec<&'static str>,
}

/// The names of the first eight colors of a terminal.
const COLORS: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/// Returns each row of a screen as its parts with a style. Cells without text have no style.
pub fn spans(screen: &Screen) -> Vec<Vec<Span>> {
    let (rows, _) = screen.size();
    (0..rows.get()).map(|row| spans_of_row(screen, row)).collect()
}

fn spans_of_row(screen: &Screen, row: u16) -> Vec<Span> {
    let (_, columns) = screen.size();
    let mut spans: Vec<Span> = Vec::new();
    for column in 0..columns.get() {
        let Some(cell) = screen.cell(row, column) else { continue };
        if cell.is_wide_continuation() {
            continue;
        }
        let (text, style) = if cell.has_contents() { (cell.contents(), style_of(cell)) } else { (" ", Vec::new()) };
        match spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => spans.push(Span { column, text: text.to_owned(), style }),
        }
    }
    if let Some(last) = spans.last_mut().filter(|last| last.style.is_empty()) {
        last.text.truncate(last.text.trim_end().len());
    }
    spans.retain(|span| !span.text.is_empty());
    spans
}

fn style_of(cell: &Cell) -> Vec<&'static str> {
    let color = match cell.fgcolor() {
        Color::Default => None,
        Color::Idx(index) => COLORS.get(usize::from(index % 8)).copied(),
        Color::Rgb(..) => Some("rgb"),
    };
    let attributes = [
        (cell.bold(), "bold"),
        (cell.dim(), "dim"),
        (cell.italic(), "italic"),
        (cell.underline(), "underline"),
        (cell.inverse(), "inverse"),
    ];
    let attributes = attributes.into_iter().filter_map(|(set, name)| set.then_some(name));
    color.into_iter().chain(attributes).collect()
}

/// Returns the rows of a screen. In contrast to the screen's contents, a wrapped line is several rows.
pub fn rows(screen: &Screen) -> String {
    let rows = spans(screen);
    let rows = rows.iter().map(|row| row.iter().map(|span| span.text.as_str()).collect::<String>());
    rows.map(|row| row.trim_end_matches(' ').to_owned()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Returns the text on a screen with its styles: `<red bold>text<>`.
pub fn text_with_styles(screen: &Screen) -> String {
    let mut text = String::new();
    for row in spans(screen) {
        let mut last = Vec::new();
        for span in row {
            if span.style != last {
                text.extend(["<", &span.style.join(" "), ">"]);
            }
            text.push_str(&span.text);
            last = span.style;
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text.trim_end().to_owned()
}
