//! The colors of code in blocks whose language is known.
//!
//! Only the standard colors are used, so that the theme of the terminal applies. The lexers keep no state between calls:
//! a line is lexed together with the lines before it, from the last line that starts a new part of the code. The total
//! of the lexed bytes is limited, and so is the length of a line. Code beyond the limits has one color.

#[cfg(test)]
mod tests;

use anstyle::{AnsiColor, Style};
use hl_lite::{Kind, Lang, Span};

use super::super::diff;
use super::super::style::DIM;
use super::table::printable;
use crate::printable::Printable;

/// The maximum length of a line in bytes.
const MAX_LINE: usize = 1000;
/// The maximum size of the lines that are lexed together with the next line, in bytes.
const MAX_BEFORE: usize = 4 << 10;
/// The maximum number of bytes that are lexed for a block that streams: below a second, even of very short lines.
const MAX_LEXED: usize = 8 << 20;
/// The maximum size in bytes of a complete code.
const MAX_COMPLETE: usize = 32 << 10;

/// The state of a block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Highlighter {
    language: Language,
    /// The lines that are lexed together with the next line.
    before: String,
    /// Whether a string or a comment is open after `before`.
    is_inside: bool,
    /// The number of bytes that were lexed.
    lexed: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Lexed(Lang),
    Diff,
}

impl Highlighter {
    /// Returns the highlighter of a block with this info string (`CommonMark` 0.31, section 4.5), whose first word is the
    /// language.
    pub(super) fn of_info(info: &str) -> Option<Self> {
        let name = info.trim().split([' ', '\t', ',', '{', ':']).next()?;
        let language = match name {
            "diff" | "patch" => Language::Diff,
            name => Language::Lexed(Lang::from_slug(name)?),
        };
        Some(Self { language, before: String::new(), is_inside: false, lexed: 0 })
    }

    /// Formats the next line; `None` if a limit is exceeded.
    pub(super) fn line(&mut self, line: &str) -> Option<Printable> {
        let language = match self.language {
            Language::Lexed(language) => language,
            Language::Diff => return Some(diff_line(line)),
        };
        if line.len() > MAX_LINE || self.lexed > MAX_LEXED {
            self.restart();
            return None;
        }
        if self.is_new_part(line) {
            self.restart();
        }
        let from = self.before.len();
        self.before.push_str(line);
        self.before.push('\n');
        self.lexed += self.before.len();
        let spans = hl_lite::highlight(language, &self.before);
        self.is_inside = spans.last().is_some_and(|span| matches!(span.kind, Kind::String | Kind::Comment));
        let shown = styled_lines(&spans, from).into_iter().next();
        if self.before.len() > MAX_BEFORE {
            // A string or a comment that is longer cannot be followed: the rest of the block has one color.
            self.lexed = if self.is_inside { usize::MAX } else { self.lexed };
            self.restart();
        }
        shown
    }

    /// Formats the lines of a complete code; `None` if a limit is exceeded.
    pub(super) fn lines(&self, text: &str) -> Option<Vec<Printable>> {
        let language = match self.language {
            Language::Lexed(language) => language,
            Language::Diff => return Some(text.lines().map(diff_line).collect()),
        };
        if text.len() > MAX_COMPLETE || text.lines().any(|line| line.len() > MAX_LINE) {
            return None;
        }
        let text = text.strip_suffix('\n').unwrap_or(text);
        Some(styled_lines(&hl_lite::highlight(language, text), 0))
    }

    /// Whether a line can be lexed without the lines before it: it follows a blank line, and is not indented.
    fn is_new_part(&self, line: &str) -> bool {
        !self.is_inside && self.before.ends_with("\n\n") && line.starts_with(|start: char| !start.is_whitespace())
    }

    fn restart(&mut self) {
        self.before.clear();
        self.is_inside = false;
    }
}

/// Formats the text of the spans from an offset, line by line. No style crosses a line end.
fn styled_lines(spans: &[Span<'_>], from: usize) -> Vec<Printable> {
    let (mut lines, mut line, mut start) = (Vec::new(), String::new(), 0);
    for span in spans {
        let shown = span.text.get(from.saturating_sub(start)..).unwrap_or_default();
        start += span.text.len();
        let style = style(span.kind);
        for (index, part) in shown.split('\n').enumerate() {
            if index > 0 {
                lines.push(std::mem::take(&mut line));
            }
            if !part.is_empty() {
                line.push_str(printable(part).styled(style).as_str());
            }
        }
    }
    lines.push(line);
    lines.iter().map(|line| printable(line)).collect()
}

fn style(kind: Kind) -> Style {
    match kind {
        Kind::Keyword | Kind::Tag => AnsiColor::Magenta.on_default(),
        Kind::String => AnsiColor::Green.on_default(),
        Kind::Comment => DIM,
        Kind::Number | Kind::Constant | Kind::Type | Kind::Variable => AnsiColor::Cyan.on_default(),
        Kind::Function | Kind::Property | Kind::Attribute => AnsiColor::Blue.on_default(),
        Kind::Plain | Kind::Operator | Kind::Punctuation => Style::new(),
    }
}

/// Formats a line of a patch.
fn diff_line(line: &str) -> Printable {
    let style = match line.chars().next() {
        Some('+') => diff::ADDED,
        Some('-') => diff::REMOVED,
        Some('@') => diff::PLACE,
        _ => Style::new(),
    };
    printable(line).styled(style)
}
