//! Formats Markdown as it streams: it replaces marks by styles and never changes earlier output.
//!
//! Characters are buffered only while the next characters decide their meaning, at most the start of a line. Ambiguous
//! syntax is written literally: tables, links and `_` are not formatted.

use anstyle::{AnsiColor, Style};

use super::style::{BOLD, DIM, NORMAL};
use crate::printable::Printable;

const CODE: Style = AnsiColor::Cyan.on_default();

/// The state of the formatter.
#[derive(Clone, Debug)]
pub(super) struct MarkdownState {
    position: Position,
    /// Characters whose meaning depends on the next ones.
    held: String,
    in_block: bool,
    bold: bool,
    /// The number of backticks that close the inline code; 0 outside of it.
    code: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    LineStart,
    Text,
    Heading,
    /// In the line that opens or closes a code block.
    Delimiter,
}

/// A text with its style.
pub(super) type Piece = (Printable, Style);

impl Default for MarkdownState {
    fn default() -> Self {
        Self { position: Position::LineStart, held: String::new(), in_block: false, bold: false, code: 0 }
    }
}

/// The kind of a line, determined by its start.
enum LineKind {
    Undecided,
    Text,
    Heading,
    Bullet,
    Delimiter,
}

impl MarkdownState {
    /// Formats the next part of the text.
    pub(super) fn feed(&mut self, text: &Printable) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for character in text.as_str().chars() {
            self.take(character, &mut pieces);
        }
        pieces
    }

    /// Returns the buffered characters at the end of the text, and resets the state.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.release(&mut pieces);
        *self = Self::default();
        pieces
    }

    fn take(&mut self, character: char, pieces: &mut Vec<Piece>) {
        if character == '\n' {
            self.release(pieces);
            self.put("\n", pieces);
            (self.position, self.bold, self.code) = (Position::LineStart, false, 0);
            return;
        }
        if self.position != Position::LineStart {
            return self.inline(character, pieces);
        }
        self.held.push(character);
        match line_kind(&self.held, self.in_block) {
            LineKind::Undecided => {}
            LineKind::Text => {
                self.position = Position::Text;
                for character in std::mem::take(&mut self.held).chars() {
                    self.inline(character, pieces);
                }
            }
            LineKind::Heading => {
                self.held.clear();
                self.position = Position::Heading;
            }
            LineKind::Bullet => {
                let indent = self.held.len() - self.held.trim_start().len();
                self.held.clear();
                self.position = Position::Text;
                self.put(&format!("{}• ", " ".repeat(indent)), pieces);
            }
            LineKind::Delimiter => {
                self.in_block = !self.in_block;
                self.position = Position::Delimiter;
                self.release(pieces);
            }
        }
    }

    fn inline(&mut self, character: char, pieces: &mut Vec<Piece>) {
        if self.position == Position::Delimiter || self.in_block {
            return self.put(character.encode_utf8(&mut [0; 4]), pieces);
        }
        match (self.held.chars().next(), character) {
            (Some('`'), '`') => return self.held.push('`'),
            (Some('`'), _) => self.backticks(pieces),
            (Some('*'), '*') if self.held.len() == 1 => {
                self.held.push('*');
                if self.bold {
                    self.held.clear();
                    self.bold = false;
                }
                return;
            }
            (Some('*'), _) => {
                // Two stars before a space are literal.
                if self.held == "**" && !character.is_whitespace() {
                    self.held.clear();
                    self.bold = true;
                } else {
                    self.release(pieces);
                }
            }
            _ => {}
        }
        if character == '`' || character == '*' && self.code == 0 {
            self.held.push(character);
        } else {
            self.put(character.encode_utf8(&mut [0; 4]), pieces);
        }
    }

    /// Handles the end of a run of backticks.
    fn backticks(&mut self, pieces: &mut Vec<Piece>) {
        match self.code {
            0 => self.code = self.held.len(),
            open if open == self.held.len() => self.code = 0,
            _ => return self.release(pieces),
        }
        self.held.clear();
    }

    /// Writes the buffered characters as text.
    fn release(&mut self, pieces: &mut Vec<Piece>) {
        if self.held.starts_with('`') && self.code == self.held.len() {
            self.held.clear();
        }
        let held = std::mem::take(&mut self.held);
        self.put(&held, pieces);
    }

    fn put(&self, text: &str, pieces: &mut Vec<Piece>) {
        let style = match self.position {
            Position::Delimiter => DIM,
            _ if self.in_block || self.code > 0 => CODE,
            Position::Heading => BOLD,
            _ if self.bold => BOLD,
            _ => NORMAL,
        };
        match pieces.last_mut() {
            _ if text.is_empty() => {}
            Some((last, same)) if *same == style => last.push_of_escaped(text),
            _ => {
                let mut piece = Printable::default();
                piece.push_of_escaped(text);
                pieces.push((piece, style));
            }
        }
    }
}

fn line_kind(held: &str, in_block: bool) -> LineKind {
    let text = held.trim_start_matches(' ');
    let mark = text.trim_end_matches(' ');
    match mark {
        "```" => LineKind::Delimiter,
        "" | "`" | "``" if text == mark => LineKind::Undecided,
        _ if in_block => LineKind::Text,
        "#" | "##" | "###" | "####" | "#####" | "######" | "-" | "*" | "+" if text == mark => LineKind::Undecided,
        "-" | "*" | "+" => LineKind::Bullet,
        mark if mark.chars().all(|c| c == '#') && mark.len() <= 6 => LineKind::Heading,
        _ => LineKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(parts: &[&str]) -> String {
        let mut markdown = MarkdownState::default();
        let mut pieces: Vec<Piece> = parts.iter().flat_map(|part| markdown.feed(&Printable::prose(part))).collect();
        pieces.extend(markdown.finish());
        let mut shown = String::new();
        let mut last = NORMAL;
        for (text, style) in pieces {
            if style != last {
                shown.push_str(match style {
                    style if style == BOLD => "<b>",
                    style if style == CODE => "<c>",
                    style if style == DIM => "<d>",
                    _ => "<>",
                });
            }
            shown.push_str(text.as_str());
            last = style;
        }
        shown
    }

    #[test]
    fn marks_are_replaced_by_styles() {
        for (text, expected) in [
            ("plain _text_ 2*3 a", "plain _text_ 2*3 a"),
            ("some **bold** text", "some <b>bold<> text"),
            ("2 ** 3 ** 4", "2 ** 3 ** 4"),
            ("**never closed\nnext", "<b>never closed\n<>next"),
            ("use `a*b*` and ``c`d``.", "use <c>a*b*<> and <c>c`d<>."),
            ("`open\nnext", "<c>open\n<>next"),
            ("ends `code`", "ends <c>code"),
            ("# Title\ntext", "<b>Title\n<>text"),
            ("#hash", "#hash"),
            ("- one\n  * two\n-three\n**four**", "• one\n  • two\n-three\n<b>four"),
            (
                "```rust\nlet **a** = `b`;\n# no\n- no\n```\nafter",
                "<d>```rust\n<c>let **a** = `b`;\n# no\n- no\n<d>```\n<>after",
            ),
            ("a\n\n\nb", "a\n\n\nb"),
            ("*", "*"),
            ("``", "``"),
            ("##", "##"),
        ] {
            assert_eq!(pieces(&[text]), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_how_the_text_is_split(text in "[a*`# \n-]{0,40}", cut in 0_usize..40) {
            let (before, after) = text.split_at(cut.min(text.len()));
            prop_assert_eq!(pieces(&[before, after]), pieces(&[&text]));
        }

        #[test]
        fn no_word_is_lost(text in "[abc*`#> \n-]{0,60}") {
            let words = |text: &str| text.chars().filter(char::is_ascii_alphabetic).collect::<String>();
            let mut markdown = MarkdownState::default();
            let mut shown: String = String::new();
            for (piece, _) in markdown.feed(&Printable::prose(&text)).into_iter().chain(markdown.finish()) {
                shown.push_str(piece.as_str());
            }
            prop_assert_eq!(words(&shown), words(&text));
            prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
        }
    }
}
