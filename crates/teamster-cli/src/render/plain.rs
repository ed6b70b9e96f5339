//! Text that cannot drive a terminal: what agents and tools say passes through here before a person sees it.
//!
//! Invariant: of all control characters only newline and tab come out. Escape sequences go as a whole, also where they
//! are cut in two by the stream; one that never ends takes no more than its line with it.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Where in an escape sequence a text was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC, and in what begins with it as `ESC ( B`.
    Escape,
    /// In `ESC [ ... letter`.
    Control,
    /// In `ESC ] ... BEL` and its like, which end with `ESC \` too.
    String,
}

/// Takes control characters and escape sequences out of a text that comes in pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    state: State,
}

impl Plain {
    /// The piece without them.
    pub(super) fn strip(&mut self, piece: &str) -> String {
        piece.chars().filter(|&character| self.passes(character)).collect()
    }

    fn passes(&mut self, character: char) -> bool {
        let swallowed = match (self.state, character) {
            (_, '\n') => None,
            (State::Text, _) | (_, '\x1b') => swallow(character),
            (State::Escape, '[') | (State::Control, ' '..='?') => Some(State::Control),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => Some(State::String),
            (State::Escape, ' '..='/') => Some(State::Escape),
            (State::Escape, '0'..='~') | (State::Control, '@'..='~') | (State::String, '\x07' | '\u{9c}') => {
                Some(State::Text)
            }
            (State::String, _) => Some(State::String),
            // No sequence after all.
            (State::Escape | State::Control, _) => swallow(character),
        };
        self.state = swallowed.unwrap_or_default();
        swallowed.is_none()
    }
}

/// What a character of plain text is swallowed into; `None` if it is shown.
fn swallow(character: char) -> Option<State> {
    match character {
        '\n' | '\t' => None,
        '\x1b' => Some(State::Escape),
        '\u{9b}' => Some(State::Control),
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => Some(State::String),
        other => other.is_control().then_some(State::Text),
    }
}

/// A whole text without control characters and escape sequences.
pub(crate) fn plain(text: &str) -> String {
    Plain::default().strip(text)
}

/// A whole text on one line, runs of white space as one space, without marks that turn the direction of reading: what
/// a tool is called with must read as it is.
pub(crate) fn one_line(text: &str) -> String {
    let turns = |character: &char| !matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let text: String = plain(text).chars().filter(turns).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How many columns a line takes.
pub(super) fn columns(line: &str) -> usize {
    line.width()
}

/// As much of a line as the columns take, with `…` where it was cut.
pub(super) fn cut(line: &str, room: usize) -> String {
    if columns(line) <= room {
        return line.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1; // the mark
    for character in line.chars() {
        used += character.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(character);
    }
    kept.truncate(kept.trim_end().len());
    if room > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_go_as_a_whole() {
        let cases = [
            ("red \x1b[1;31mred\x1b[0m", "red red"),
            ("title \x1b]0;owned\x07here", "title here"),
            ("link \x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "link text"),
            ("charset \x1b(Bplain", "charset plain"),
            ("reset \x1bcdone", "reset done"),
            ("one byte \u{9b}2Jdone", "one byte done"),
            ("device \x1bP1$r0m\x1b\\done", "device done"),
            ("back\x08space bell\x07 return\rline\x7f", "backspace bell returnline"),
            ("kept\ttab\nnewline 👩\u{200d}💻 漢字", "kept\ttab\nnewline 👩\u{200d}💻 漢字"),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn a_sequence_that_never_ends_takes_only_its_line() {
        assert_eq!(plain("a\x1b]0;never\nb\x1b[\nc\x1b"), "a\nb\nc");
    }

    #[test]
    fn a_line_is_cut_by_columns_not_by_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
        assert_eq!(cut("ab cdef", 4), "ab…");
        assert_eq!(cut("ab", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_that_drives_a_terminal_comes_out(text in hostile()) {
            let out = plain(&text);
            prop_assert!(out.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{out:?}");
        }

        #[test]
        fn how_a_text_is_cut_into_pieces_changes_nothing(pieces in prop::collection::vec(hostile(), 0..6)) {
            let mut plain_pieces = Plain::default();
            let out: String = pieces.iter().map(|piece| plain_pieces.strip(piece)).collect();
            prop_assert_eq!(out, plain(&pieces.concat()));
        }

        #[test]
        fn a_cut_line_fits(line in "\\PC{0,40}", room in 0_usize..30) {
            prop_assert!(columns(&cut(&line, room)) <= room);
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x07", "\x1b\\", "\u{9b}", "\u{9d}", "\n", "\r"
                ])
                .prop_map(str::to_owned),
                "[ -~]{0,4}",
                any::<char>().prop_map(|c| c.to_string()),
            ],
            0..12,
        )
        .prop_map(|parts| parts.concat())
    }
}
