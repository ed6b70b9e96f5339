//! Which characters a terminal shows as they are, and how the others are written.
//!
//! A character that cannot be seen is written as `⟦U+202E⟧`, or by its name where it has a common one (`⟦ESC⟧`, `⟦LF⟧`).
//! `⟦` itself is always written as `⟦U+27E6⟧`, so no text can imitate an escape, and the text can be restored exactly.

use std::fmt::{self, Write as _};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};
use unicode_width::UnicodeWidthChar as _;

/// Begins each escape.
pub(super) const OPEN: char = '⟦';
/// Ends each escape.
const CLOSE: char = '⟧';
/// Combining marks that are shown on one letter. More of them could cover the lines above and below.
const MARKS: usize = 3;
/// Spaces in a row that are counted instead of shown.
const BLANKS: usize = 3;

/// A part of a text as it is shown. It must not be divided further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A visible character with its combining marks, or a space between two visible characters.
    Literal(&'a str),
    /// A character that cannot be seen.
    Code(char),
    /// So many spaces.
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

/// The tokens of a text, in order. Nothing is left out.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
    begins: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { rest: text, begins: true }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// A space is shown as it is between two visible characters only.
    fn space(&mut self) -> Token<'a> {
        let count = self.rest.len() - self.rest.trim_start_matches(' ').len();
        if count >= BLANKS {
            self.take(count);
            return Token::Blanks(count);
        }
        let ends_line = self.rest.get(count..).is_none_or(|rest| rest.is_empty() || rest.starts_with(['\n', '\r']));
        let space = self.take(1);
        if ends_line || self.begins { Token::Code(' ') } else { Token::Literal(space) }
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
        self.begins &= token == Token::Code(' ');
        Some(token)
    }
}

/// Whether a character is seen as it is when it stands alone.
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

/// Whether a character can be shown as a mark on the letter before it.
fn is_mark(character: char) -> bool {
    let is_combining =
        matches!(character.general_category(), GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark);
    // Overlays cross out what they stand on.
    let is_overlay = matches!(character, '\u{334}'..='\u{338}' | '\u{20d0}'..='\u{20ff}');
    // A mark with columns of its own that is not printable is none that a terminal knows.
    let is_known = character.width() == Some(0) || is_printable(character);
    is_combining && is_known && !is_overlay && !is_ignorable(character) && !is_blank(character)
}

/// Whether the standard library knows it as printable: it may know fewer new characters than the tables of categories.
fn is_printable(character: char) -> bool {
    character.escape_debug().len() == 1
}

/// Letters and symbols without ink.
fn is_blank(character: char) -> bool {
    matches!(
        character,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{1d159}' | '\u{16fe4}' | '\u{fffc}'
    )
}

/// The property `Default_Ignorable_Code_Point`.
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

/// Whether a character of an answer is shown as it is. An answer is prose: emoji sequences, spaces, tabs and line ends stay,
/// but nothing that drives a terminal, turns the direction of reading or hides text.
fn is_prose(character: char) -> bool {
    match character {
        '\n' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' => true,
        '\u{2028}' | '\u{2029}' => false,
        other => !other.is_control() && !is_ignorable(other),
    }
}

/// An answer for a terminal. How it is cut into pieces changes nothing.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_prose(character) {
            out.push(character);
        } else {
            // A `String` takes everything.
            let _ = write_code(character, &mut out);
        }
    }
    out
}

/// All of a text on one line.
pub(super) fn exact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in Tokens::of(text) {
        let _ = write!(out, "{token}");
    }
    out
}
