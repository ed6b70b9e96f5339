//! Escapes characters that a terminal does not show literally.
//!
//! An invisible character is written as `⟦U+202E⟧`, or by its common name (`⟦ESC⟧`, `⟦LF⟧`). `⟦` itself is always written
//! as `⟦U+27E6⟧`. So no text can imitate an escape, and the original text can be restored exactly.

use std::fmt::{self, Write as _};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};
use unicode_width::UnicodeWidthChar as _;

/// The first character of an escape.
pub(super) const OPEN: char = '⟦';
/// The last character of an escape.
const CLOSE: char = '⟧';
/// The maximum number of combining marks per letter. More marks could cover adjacent lines.
const MARKS: usize = 3;
/// Runs of at least this many spaces are counted instead of shown.
const BLANKS: usize = 3;

/// An indivisible part of the shown text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A visible character with its combining marks, or a space between two visible characters.
    Literal(&'a str),
    /// An invisible character.
    Code(char),
    /// A run of this many spaces.
    Blanks(usize),
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => formatter.write_str(text),
            Self::Code(character) => write_code(*character, formatter),
            Self::Blanks(count) => write!(formatter, "{OPEN}{count} spaces{CLOSE}"),
        }
    }
}

fn write_code(character: char, out: &mut impl fmt::Write) -> fmt::Result {
    let name = match character {
        '\x07' => "BEL",
        '\t' => "TAB",
        '\n' => "LF",
        '\r' => "CR",
        '\x1b' => "ESC",
        other => return write!(out, "{OPEN}U+{:04X}{CLOSE}", u32::from(other)),
    };
    write!(out, "{OPEN}{name}{CLOSE}")
}

/// Iterates over the tokens of a text. Every character belongs to a token.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
    is_first: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { rest: text, is_first: true }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Returns the token of a space. A space is literal only between two visible characters.
    fn space(&mut self) -> Token<'a> {
        let count = self.rest.len() - self.rest.trim_start_matches(' ').len();
        if count >= BLANKS {
            self.take(count);
            return Token::Blanks(count);
        }
        let ends_line = self.rest.get(count..).is_none_or(|rest| rest.is_empty() || rest.starts_with(['\n', '\r']));
        let space = self.take(1);
        if ends_line || self.is_first { Token::Code(' ') } else { Token::Literal(space) }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let mut characters = self.rest.chars();
        let first = characters.next()?;
        let token = if first == ' ' {
            self.space()
        } else if is_visible(first) {
            let marks = if first.is_alphabetic() { MARKS } else { 0 };
            let marks = characters.take_while(|&character| is_mark(character)).take(marks);
            let length = first.len_utf8() + marks.map(char::len_utf8).sum::<usize>();
            Token::Literal(self.take(length))
        } else {
            self.take(first.len_utf8());
            Token::Code(first)
        };
        self.is_first &= token == Token::Code(' ');
        Some(token)
    }
}

/// Returns whether a character is visible on its own.
pub(super) fn is_visible(character: char) -> bool {
    use GeneralCategoryGroup as Group;

    if character.is_ascii() {
        return character.is_ascii_graphic();
    }
    let group = character.general_category_group();
    character != OPEN
        && matches!(group, Group::Letter | Group::Number | Group::Punctuation | Group::Symbol)
        && !is_blank(character)
        && character.width().is_some_and(|columns| columns > 0)
        && is_printable(character)
}

/// Returns whether a character can be shown as a mark on the preceding letter.
fn is_mark(character: char) -> bool {
    let is_combining =
        matches!(character.general_category(), GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark);
    // Overlays strike through the letter.
    let is_overlay = matches!(character, '\u{334}'..='\u{338}' | '\u{20d0}'..='\u{20ff}');
    // Terminals do not support a mark that has a width and is not printable.
    let is_known = character.width() == Some(0) || is_printable(character);
    is_combining && is_known && !is_overlay && !is_ignorable(character) && !is_blank(character)
}

/// Returns whether the standard library considers a character printable. It may know fewer new characters than the
/// category tables.
fn is_printable(character: char) -> bool {
    character.escape_debug().len() == 1
}

/// Returns whether a letter or symbol is blank.
fn is_blank(character: char) -> bool {
    matches!(
        character,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{1d159}' | '\u{16fe4}' | '\u{fffc}'
    )
}

/// Returns the Unicode property `Default_Ignorable_Code_Point`.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns whether a character of an answer is shown literally. Emoji sequences, spaces, tabs and line ends are. Control
/// characters, and those that change the direction of text or hide it, are not.
fn is_prose(character: char) -> bool {
    match character {
        '\n' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' => true,
        '\u{2028}' | '\u{2029}' => false,
        other => !other.is_control() && !is_ignorable(other),
    }
}

/// Escapes an answer. The result does not depend on how the answer is split.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_prose(character) {
            out.push(character);
        } else {
            // Writing to a `String` cannot fail.
            let _ = write_code(character, &mut out);
        }
    }
    out
}

/// Escapes a text to one line.
pub(super) fn exact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in Tokens::of(text) {
        let _ = write!(out, "{token}");
    }
    out
}
