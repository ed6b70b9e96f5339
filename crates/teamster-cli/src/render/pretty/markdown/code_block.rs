//! Code blocks with delimiters, whose lines are written as they arrive (`CommonMark` 0.31, section 4.5).

use anstyle::{AnsiColor, Style};

use super::super::style::DIM;
use super::highlight::Highlighter;
use crate::printable::Printable;

pub(super) const CODE: Style = AnsiColor::Cyan.on_default();

/// An open code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeBlock {
    /// The first line.
    line: String,
    character: char,
    length: usize,
    indent: usize,
    /// `None` if the language is unknown.
    highlighter: Option<Highlighter>,
}

impl CodeBlock {
    /// Returns the code block that the first line of a text opens.
    pub(super) fn opened_by(text: &str) -> Option<Self> {
        let line = text.lines().next()?;
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let character = rest.chars().next().filter(|character| matches!(character, '`' | '~'))?;
        let info = rest.trim_start_matches(character);
        let length = rest.len() - info.len();
        let is_block = indent < 4 && length >= 3 && !(character == '`' && info.contains('`'));
        let highlighter = Highlighter::of_info(info);
        is_block.then(|| Self { line: line.to_owned(), character, length, indent, highlighter })
    }

    /// Whether a line ends the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let rest = line.trim_start_matches(' ');
        let marks = rest.trim_end_matches([' ', '\t']);
        line.len() - rest.len() < 4 && marks.len() >= self.length && marks.chars().all(|mark| mark == self.character)
    }

    /// Returns the first line, formatted.
    pub(super) fn opening(&self) -> Printable {
        delimiter(&self.line)
    }

    /// Returns the next line of the code. The indentation of the delimiter is not part of it.
    pub(super) fn code(&mut self, line: &str) -> Printable {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        let line = line.get(spaces.min(self.indent)..).unwrap_or(line);
        self.highlighter.as_mut().and_then(|highlighter| highlighter.line(line)).unwrap_or_else(|| code(line))
    }

    /// Returns the lines of the complete code.
    pub(super) fn lines(&self, text: &str) -> Vec<Printable> {
        let lines = self.highlighter.as_ref().and_then(|highlighter| highlighter.lines(text));
        lines.unwrap_or_else(|| text.lines().map(code).collect())
    }
}

/// Returns the first or the last line of a code block, formatted.
pub(super) fn delimiter(line: &str) -> Printable {
    Printable::of_escaped(format_args!("{}", line.trim_start_matches(' '))).styled(DIM)
}

/// Returns a line of code in one color.
pub(super) fn code(line: &str) -> Printable {
    let line = Printable::of_escaped(format_args!("{line}"));
    if line.is_empty() { line } else { line.styled(CODE) }
}
