//! The vi keys: the normal mode. The insert mode has the emacs keys.

use rustyline::{At, CharSearch, Movement, RepeatCount, Word};
use termina::event::{KeyCode, KeyEvent, Modifiers};

use super::text::{Text, next_word, to_character};

/// The largest count before a command.
const MAX_COUNT: RepeatCount = 999;

/// The state of the vi keys.
#[derive(Debug, Default)]
pub(super) struct Vi {
    is_normal: bool,
    count: RepeatCount,
    operator: Option<Operator>,
    /// A command that waits for a character.
    waits: Option<Waits>,
    /// The last search for a character in a line.
    search: Option<CharSearch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

#[derive(Clone, Copy, Debug)]
enum Waits {
    Find {
        forward: bool,
        till: bool,
    },
    Replace,
    /// `gg`
    Go,
}

/// The effect of a key in normal mode, beyond the change of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Done,
    /// The key has no meaning here.
    Unknown,
    /// Moves one line up or down, or through the history.
    Up,
    Down,
    /// Opens the editor.
    Editor,
    /// Searches the history.
    Search,
}

impl Vi {
    pub(super) fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// Ends the insert mode.
    pub(super) fn enter_normal(&mut self, text: &mut Text) {
        *self = Self { is_normal: true, search: self.search, ..Self::default() };
        if !text.before_cursor().is_empty() && !text.before_cursor().ends_with('\n') {
            text.step(&Movement::BackwardChar(1));
        }
    }

    pub(super) fn enter_insert(&mut self) {
        *self = Self { search: self.search, ..Self::default() };
    }

    /// Discards an incomplete command. Returns false if there is none.
    pub(super) fn cancel(&mut self) -> bool {
        let was_incomplete = self.operator.is_some() || self.waits.is_some() || self.count > 0;
        (self.operator, self.waits, self.count) = (None, None, 0);
        was_incomplete
    }

    /// Handles a key in normal mode.
    pub(super) fn press(&mut self, text: &mut Text, key: KeyEvent) -> Effect {
        let modifiers = key.modifiers - Modifiers::SHIFT;
        let effect = match key.code {
            KeyCode::Char('r') if modifiers == Modifiers::CONTROL => {
                text.redo();
                Effect::Done
            }
            KeyCode::Char(character) if modifiers.is_empty() => self.character(text, character),
            KeyCode::Backspace | KeyCode::Left => self.character(text, 'h'),
            KeyCode::Right => self.character(text, 'l'),
            KeyCode::Home => self.character(text, '0'),
            KeyCode::End => self.character(text, '$'),
            KeyCode::Delete => self.character(text, 'x'),
            KeyCode::Up => Effect::Up,
            KeyCode::Down => Effect::Down,
            _ => Effect::Unknown,
        };
        if self.is_normal && self.operator.is_none() {
            stay_on_character(text);
        }
        effect
    }

    fn character(&mut self, text: &mut Text, character: char) -> Effect {
        if let Some(waits) = self.waits.take() {
            self.complete(text, waits, character);
            return Effect::Done;
        }
        match character {
            '1'..='9' => self.digit(character),
            '0' if self.count > 0 => self.digit(character),
            'd' => self.operator(text, Operator::Delete),
            'c' => self.operator(text, Operator::Change),
            'y' => self.operator(text, Operator::Yank),
            'f' | 'F' | 't' | 'T' => {
                let (forward, till) = (character.is_lowercase(), matches!(character, 't' | 'T'));
                self.waits = Some(Waits::Find { forward, till });
            }
            'g' => self.waits = Some(Waits::Go),
            'r' if self.operator.is_none() => self.waits = Some(Waits::Replace),
            _ => {
                if let Some(movement) = self.movement(text, character) {
                    self.apply(text, &movement);
                } else {
                    let effect = self.command(text, character);
                    self.count = 0;
                    self.operator = None;
                    return effect;
                }
            }
        }
        Effect::Done
    }

    fn digit(&mut self, digit: char) {
        let digit = digit.to_digit(10).and_then(|digit| RepeatCount::try_from(digit).ok()).unwrap_or(0);
        self.count = self.count.saturating_mul(10).saturating_add(digit).min(MAX_COUNT);
    }

    /// Returns the count before the command, and clears it.
    fn take_count(&mut self) -> RepeatCount {
        std::mem::take(&mut self.count).max(1)
    }

    fn operator(&mut self, text: &mut Text, operator: Operator) {
        if self.operator.take() != Some(operator) {
            self.operator = Some(operator);
            return;
        }
        // Doubled: whole lines.
        let count = usize::from(self.take_count());
        match operator {
            Operator::Yank => text.take_lines(count, false),
            Operator::Delete => text.take_lines(count, true),
            Operator::Change => {
                text.step(&Movement::BeginningOfLine);
                text.kill(&Movement::EndOfLine);
                self.enter_insert();
            }
        }
    }

    fn complete(&mut self, text: &mut Text, waits: Waits, character: char) {
        match waits {
            Waits::Find { forward, till } => {
                let search = match (forward, till) {
                    (true, false) => CharSearch::Forward(character),
                    (true, true) => CharSearch::ForwardBefore(character),
                    (false, false) => CharSearch::Backward(character),
                    (false, true) => CharSearch::BackwardAfter(character),
                };
                self.search = Some(search);
                let movement = to_character(self.take_count(), search);
                self.apply(text, &movement);
            }
            Waits::Replace => {
                if text.delete(&Movement::ForwardChar(1)) {
                    text.insert(character.encode_utf8(&mut [0; 4]));
                    text.step(&Movement::BackwardChar(1));
                }
            }
            Waits::Go if character == 'g' => self.apply(text, &Movement::BeginningOfBuffer),
            Waits::Go => _ = self.cancel(),
        }
    }

    fn movement(&mut self, text: &Text, character: char) -> Option<Movement> {
        let count = self.count.max(1);
        let with_operator = self.operator.is_some();
        let end = if with_operator { At::AfterEnd } else { At::BeforeEnd };
        let on_word = text.after_cursor().starts_with(|next: char| !next.is_whitespace());
        let start = if self.operator == Some(Operator::Change) && on_word { At::AfterEnd } else { At::Start };
        let movement = match character {
            'h' => Movement::BackwardChar(count),
            'l' | ' ' => Movement::ForwardChar(count),
            '0' => Movement::BeginningOfLine,
            '^' if !with_operator => Movement::ViFirstPrint,
            '$' => Movement::EndOfLine,
            'w' => next_word(count, start, Word::Vi),
            'W' => next_word(count, start, Word::Big),
            'e' => next_word(count, end, Word::Vi),
            'E' => next_word(count, end, Word::Big),
            'b' => Movement::BackwardWord(count, Word::Vi),
            'B' => Movement::BackwardWord(count, Word::Big),
            'G' => Movement::EndOfBuffer,
            ';' => to_character(count, self.search?),
            ',' => to_character(count, opposite(self.search?)),
            _ => return None,
        };
        Some(movement)
    }

    fn apply(&mut self, text: &mut Text, movement: &Movement) {
        self.count = 0;
        match self.operator.take() {
            None => _ = text.step(movement),
            Some(Operator::Yank) => text.copy(movement),
            Some(Operator::Delete) => _ = text.kill(movement),
            Some(Operator::Change) => {
                text.kill(movement);
                self.enter_insert();
            }
        }
    }

    fn command(&mut self, text: &mut Text, character: char) -> Effect {
        let count = self.take_count();
        let inserts = matches!(character, 'i' | 'a' | 'I' | 'A' | 'o' | 'O' | 's' | 'S' | 'C');
        match character {
            'i' => {}
            'a' if text.after_cursor().is_empty() || text.after_cursor().starts_with('\n') => {}
            'a' => _ = text.step(&Movement::ForwardChar(1)),
            'I' => _ = text.step(&Movement::ViFirstPrint),
            'A' => _ = text.step(&Movement::EndOfLine),
            'o' => {
                text.step(&Movement::EndOfLine);
                text.insert("\n");
            }
            'O' => {
                text.step(&Movement::BeginningOfLine);
                text.insert("\n");
                text.step(&Movement::BackwardChar(1));
            }
            'S' => {
                text.step(&Movement::BeginningOfLine);
                text.kill(&Movement::EndOfLine);
            }
            'C' | 'D' => _ = text.kill(&Movement::EndOfLine),
            'x' | 's' => _ = text.kill(&Movement::ForwardChar(count)),
            'X' => _ = text.kill(&Movement::BackwardChar(count)),
            'Y' => text.take_lines(usize::from(count), false),
            'p' => text.put(true),
            'P' => text.put(false),
            'u' => text.undo(),
            'j' => return Effect::Down,
            'k' => return Effect::Up,
            'v' => return Effect::Editor,
            '/' | '?' => return Effect::Search,
            _ => return Effect::Unknown,
        }
        if inserts {
            self.enter_insert();
        }
        Effect::Done
    }
}

fn opposite(search: CharSearch) -> CharSearch {
    match search {
        CharSearch::Forward(character) => CharSearch::Backward(character),
        CharSearch::ForwardBefore(character) => CharSearch::BackwardAfter(character),
        CharSearch::Backward(character) => CharSearch::Forward(character),
        CharSearch::BackwardAfter(character) => CharSearch::ForwardBefore(character),
    }
}

/// In normal mode the cursor is on a character, not after the last one of a line.
fn stay_on_character(text: &mut Text) {
    let at_end = text.after_cursor().is_empty() || text.after_cursor().starts_with('\n');
    let is_line_start = text.before_cursor().is_empty() || text.before_cursor().ends_with('\n');
    if at_end && !is_line_start {
        text.step(&Movement::BackwardChar(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text with the cursor as `|` after these keys in normal mode. The cursor starts at the beginning.
    fn after(content: &str, keys: &str) -> String {
        let (mut text, mut vi) = (Text::default(), Vi::default());
        text.insert(content);
        text.set_position(0);
        vi.enter_normal(&mut text);
        for key in keys.chars() {
            if vi.is_normal() {
                vi.press(&mut text, KeyEvent::new(KeyCode::Char(key), Modifiers::NONE));
            } else if key == '!' {
                vi.enter_normal(&mut text);
            } else {
                text.insert(&key.to_string());
            }
        }
        format!("{}|{}", text.before_cursor(), text.after_cursor())
    }

    #[test]
    fn commands_do_what_they_do_in_vi() {
        for (content, keys, expected) in [
            ("one two three", "w", "one |two three"),
            ("one two three", "2w", "one two |three"),
            ("one two", "e", "on|e two"),
            ("one two", "$", "one tw|o"),
            ("one two three", "dw", "|two three"),
            ("one two three", "d2w", "|three"),
            ("one two three", "cwsix!", "si|x two three"),
            ("one two", "de", "| two"),
            ("one two", "wD", "one| "),
            ("f(a, b)", "f,", "f(a|, b)"),
            ("f(a, b)", "dt,", "|, b)"),
            ("a.b.c", "f.;", "a.b|.c"),
            ("abc", "xp", "b|ac"),
            ("abc", "2x", "|c"),
            ("abc", "rx", "|xbc"),
            ("one\ntwo", "dd", "|two"),
            ("one\ntwo", "ddp", "two\n|one"),
            ("one\ntwo", "yyP", "|one\none\ntwo"),
            ("one\ntwo", "Gdd", "|one"),
            ("one", "A two!", "one tw|o"),
            ("one", "otwo!", "one\ntw|o"),
            ("one", "Otwo!", "tw|o\none"),
            ("one two", "dwu", "|one two"),
            ("one", "ccx!", "|x"),
            ("one", "d!x", "|ne"),
        ] {
            assert_eq!(after(content, keys), expected, "{content:?} {keys}");
        }
    }

    #[test]
    fn the_keys_of_the_command_are_not_part_of_the_text() {
        let (mut text, mut vi) = (Text::default(), Vi::default());
        text.insert("x");
        vi.enter_normal(&mut text);
        let mut press = |key| vi.press(&mut text, KeyEvent::new(KeyCode::Char(key), Modifiers::NONE));
        assert_eq!((press('k'), press('j'), press('v')), (Effect::Up, Effect::Down, Effect::Editor));
        assert_eq!((press('/'), press('q')), (Effect::Search, Effect::Unknown));
        assert_eq!(text.as_str(), "x");
    }
}
