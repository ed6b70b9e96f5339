//! The beginning of the agent's thinking, in one line.

use unicode_width::UnicodeWidthChar as _;

use crate::printable::Printable;

/// A line of thinking that can be continued.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Thought {
    /// The free columns; 0 after the ellipsis.
    room: usize,
    /// Whether a space precedes the next character.
    space: bool,
    is_empty: bool,
    titles: Titles,
}

/// Removes the marks of bold titles, which Codex and Gemini CLI write at the start of lines: `**Title**`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Titles {
    /// The asterisks before the next character.
    asterisks: usize,
    is_line_start: bool,
    in_title: bool,
}

impl Default for Titles {
    fn default() -> Self {
        Self { asterisks: 0, is_line_start: true, in_title: false }
    }
}

impl Titles {
    /// Returns the number of asterisks before this character that are no marks; `None` if the character is an asterisk.
    fn asterisks_before(&mut self, character: char) -> Option<usize> {
        if character == '*' {
            self.asterisks += 1;
            return None;
        }
        let count = std::mem::take(&mut self.asterisks);
        let opens = count == 2 && !self.in_title && self.is_line_start && !character.is_whitespace();
        let closes = count == 2 && self.in_title;
        if opens || closes {
            self.in_title = opens;
        }
        if character == '\n' {
            (self.is_line_start, self.in_title) = (true, false);
        } else if !character.is_whitespace() {
            self.is_line_start = false;
        }
        Some(if opens || closes { 0 } else { count })
    }
}

impl Thought {
    /// Creates an empty line with this number of columns.
    pub(super) fn new(room: usize) -> Self {
        Self { room, is_empty: true, ..Self::default() }
    }

    /// Returns what a further part of the thinking adds to the line. White space is collapsed.
    pub(super) fn add(&mut self, text: &Printable) -> Printable {
        let mut shown = Printable::default();
        for character in text.as_str().chars() {
            let Some(asterisks) = self.titles.asterisks_before(character) else { continue };
            for character in std::iter::repeat_n('*', asterisks).chain([character]) {
                if character.is_whitespace() {
                    self.space = !self.is_empty;
                } else {
                    self.push(character, &mut shown);
                    self.is_empty = false;
                }
            }
        }
        shown
    }

    /// Appends a character if it fits, otherwise an ellipsis.
    fn push(&mut self, character: char, shown: &mut Printable) {
        let needed = character.width().unwrap_or(0) + usize::from(self.space);
        // One column is reserved for the ellipsis.
        if needed >= self.room {
            if std::mem::take(&mut self.room) > 0 {
                shown.push(&"…".into());
            }
            return;
        }
        if std::mem::take(&mut self.space) {
            shown.push(&" ".into());
        }
        shown.push_of_escaped(character.encode_utf8(&mut [0; 4]));
        self.room -= needed;
    }
}
