//! The text of the input box: a line buffer with a kill buffer and undo.
//!
//! Words, graphemes and kills are those of rustyline's line buffer, so the keys behave as in a shell.

use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer, WordAction};
use rustyline::{At, CharSearch, Movement, Word};

/// The number of edits that can be undone.
const MAX_UNDO: usize = 200;

/// The capacity of the line buffer. [`Text`] inserts only with methods that exceed it.
const CAPACITY: usize = 4096;

/// A text with a cursor.
#[derive(Debug)]
pub(crate) struct Text {
    buffer: LineBuffer,
    /// The text that was killed last.
    killed: String,
    /// Whether the killed text consists of whole lines.
    killed_lines: bool,
    undo: Vec<Snapshot>,
    redo: Vec<Snapshot>,
    last: Edit,
}

/// The text before an edit.
#[derive(Clone, Debug)]
struct Snapshot {
    text: String,
    position: usize,
}

/// The last change. Adjacent insertions are undone together, and adjacent kills are yanked together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Other,
    Insert,
    Kill,
}

/// Collects deleted text.
#[derive(Default)]
struct Deleted {
    before: String,
    after: String,
}

impl DeleteListener for Deleted {
    fn delete(&mut self, _at: usize, text: &str, direction: Direction) {
        match direction {
            Direction::Forward => self.after.push_str(text),
            Direction::Backward => self.before.insert_str(0, text),
        }
    }
}

impl ChangeListener for Deleted {
    fn insert_char(&mut self, _at: usize, _character: char) {}
    fn insert_str(&mut self, _at: usize, _text: &str) {}
    fn replace(&mut self, _at: usize, _old: &str, _new: &str) {}
}

impl Default for Text {
    fn default() -> Self {
        Self {
            buffer: LineBuffer::with_capacity(CAPACITY),
            killed: String::new(),
            killed_lines: false,
            undo: Vec::new(),
            redo: Vec::new(),
            last: Edit::Other,
        }
    }
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        self.buffer.as_str()
    }

    /// Returns the position of the cursor in bytes.
    pub(crate) fn position(&self) -> usize {
        self.buffer.pos()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the text before the cursor.
    pub(crate) fn before_cursor(&self) -> &str {
        self.as_str().get(..self.position()).unwrap_or_default()
    }

    /// Returns the text after the cursor.
    pub(crate) fn after_cursor(&self) -> &str {
        self.as_str().get(self.position()..).unwrap_or_default()
    }

    /// Moves the cursor. A position inside of a character is moved to its start.
    pub(crate) fn set_position(&mut self, position: usize) {
        self.last = Edit::Other;
        self.buffer.set_pos(self.as_str().floor_char_boundary(position));
    }

    /// Inserts a text at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        if self.last != Edit::Insert {
            self.save();
        }
        let position = self.position();
        self.buffer.insert_str(position, text, &mut Deleted::default());
        self.buffer.set_pos(position + text.len());
        self.last = Edit::Insert;
    }

    /// Replaces the whole text. The cursor is then at its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.replace(0, text);
        self.last = Edit::Other;
    }

    /// Replaces the text from this position to the cursor.
    pub(crate) fn replace_before_cursor(&mut self, from: usize, text: &str) {
        self.save();
        self.buffer.replace(from..self.buffer.pos(), text, &mut Deleted::default());
        self.last = Edit::Other;
    }

    fn replace(&mut self, from: usize, text: &str) {
        self.save();
        self.buffer.replace(from..self.buffer.len(), text, &mut Deleted::default());
    }

    /// Removes and returns the whole text. It can be undone.
    pub(crate) fn take(&mut self) -> String {
        let text = self.as_str().to_owned();
        if !text.is_empty() {
            self.set("");
        }
        text
    }

    /// Moves the cursor. Returns false if it cannot move.
    pub(crate) fn step(&mut self, movement: &Movement) -> bool {
        self.last = Edit::Other;
        let buffer = &mut self.buffer;
        match *movement {
            Movement::BackwardChar(count) => buffer.move_backward(count),
            Movement::ForwardChar(count) => buffer.move_forward(count),
            Movement::BeginningOfLine => buffer.move_home(),
            Movement::EndOfLine => buffer.move_end(),
            Movement::BeginningOfBuffer => buffer.move_buffer_start(),
            Movement::EndOfBuffer => buffer.move_buffer_end(),
            Movement::BackwardWord(count, word) => buffer.move_to_prev_word(word, count),
            Movement::ForwardWord(count, at, word) => buffer.move_to_next_word(at, word, count),
            Movement::ViCharSearch(count, search) => buffer.move_to(search, count),
            Movement::ViFirstPrint => {
                buffer.move_home();
                let indent = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
                let position = buffer.pos() + indent(buffer.as_str().get(buffer.pos()..).unwrap_or_default());
                buffer.set_pos(position);
                true
            }
            _ => false,
        }
    }

    /// Deletes a character or more, without storing them as killed.
    pub(crate) fn delete(&mut self, movement: &Movement) -> bool {
        self.save();
        self.last = Edit::Other;
        self.buffer.kill(movement, &mut Deleted::default())
    }

    /// Kills the text up to the end of a movement. Adjacent kills are joined.
    pub(crate) fn kill(&mut self, movement: &Movement) -> bool {
        self.save();
        let mut deleted = Deleted::default();
        let is_changed = self.buffer.kill(movement, &mut deleted);
        if is_changed {
            if self.last == Edit::Kill {
                self.killed.insert_str(0, &deleted.before);
            } else {
                self.killed = deleted.before;
            }
            self.killed.push_str(&deleted.after);
            (self.killed_lines, self.last) = (false, Edit::Kill);
        }
        is_changed
    }

    /// Returns the text up to the end of a movement.
    pub(crate) fn copy(&mut self, movement: &Movement) {
        if let Some(text) = self.buffer.copy(movement) {
            (self.killed, self.killed_lines) = (text, false);
        }
    }

    /// Kills or copies whole lines, with their line end.
    pub(crate) fn take_lines(&mut self, count: usize, remove: bool) {
        let start = self.before_cursor().rfind('\n').map_or(0, |end| end + 1);
        let rest = self.as_str().get(start..).unwrap_or_default();
        let taken: String = rest.split_inclusive('\n').take(count).collect();
        let length = taken.len();
        self.killed = format!("{}\n", taken.strip_suffix('\n').unwrap_or(&taken));
        self.killed_lines = true;
        if !remove {
            return;
        }
        self.save();
        // The last line has no line end: the one before it is removed.
        let is_last = start + length == self.buffer.len() && !taken.ends_with('\n');
        let from = if is_last { start.saturating_sub(1) } else { start };
        self.buffer.delete_range(from..start + length, &mut Deleted::default());
        self.step(&Movement::ViFirstPrint);
        self.last = Edit::Other;
    }

    /// Inserts the killed text at the cursor.
    pub(crate) fn yank(&mut self) {
        self.save();
        self.last = Edit::Insert;
        self.insert(&self.killed.clone());
        self.last = Edit::Other;
    }

    /// Inserts the killed text as vi does: after the cursor or before it, whole lines on lines of their own.
    pub(crate) fn put(&mut self, after: bool) {
        if !self.killed_lines {
            if after && !self.after_cursor().starts_with('\n') {
                self.step(&Movement::ForwardChar(1));
            }
            self.yank();
            self.buffer.move_backward(1);
            return;
        }
        let lines = self.killed.trim_end_matches('\n').to_owned();
        if after {
            self.step(&Movement::EndOfLine);
            let position = self.position() + 1;
            self.insert(&format!("\n{lines}"));
            self.set_position(position);
        } else {
            self.step(&Movement::BeginningOfLine);
            let position = self.position();
            self.insert(&format!("{lines}\n"));
            self.set_position(position);
        }
    }

    pub(crate) fn transpose_characters(&mut self) {
        self.save();
        self.buffer.transpose_chars(&mut Deleted::default());
        self.last = Edit::Other;
    }

    pub(crate) fn change_word(&mut self, action: WordAction) {
        self.save();
        self.buffer.edit_word(action, &mut Deleted::default());
        self.last = Edit::Other;
    }

    /// Reverts the last edit.
    pub(crate) fn undo(&mut self) {
        Self::exchange(&mut self.buffer, &mut self.undo, &mut self.redo);
        self.last = Edit::Other;
    }

    /// Repeats the edit that was reverted last.
    pub(crate) fn redo(&mut self) {
        Self::exchange(&mut self.buffer, &mut self.redo, &mut self.undo);
        self.last = Edit::Other;
    }

    fn exchange(buffer: &mut LineBuffer, from: &mut Vec<Snapshot>, to: &mut Vec<Snapshot>) {
        while let Some(snapshot) = from.pop() {
            let current = Snapshot { text: buffer.as_str().to_owned(), position: buffer.pos() };
            // An edit that changed nothing is skipped.
            if current.text == snapshot.text {
                continue;
            }
            to.push(current);
            buffer.replace(0..buffer.len(), &snapshot.text, &mut Deleted::default());
            buffer.set_pos(snapshot.position);
            return;
        }
    }

    fn save(&mut self) {
        self.redo.clear();
        let snapshot = Snapshot { text: self.as_str().to_owned(), position: self.position() };
        if self.undo.last().is_some_and(|last| last.text == snapshot.text) {
            return;
        }
        if self.undo.len() == MAX_UNDO {
            self.undo.remove(0);
        }
        self.undo.push(snapshot);
    }
}

/// Returns the movement over words of this kind.
pub(crate) fn next_word(count: u16, at: At, word: Word) -> Movement {
    Movement::ForwardWord(count, at, word)
}

/// Returns the movement to a character.
pub(crate) fn to_character(count: u16, search: CharSearch) -> Movement {
    Movement::ViCharSearch(count, search)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Text {
        let mut text = Text::default();
        text.insert(content);
        text
    }

    #[test]
    fn a_text_of_any_length_is_kept_whole() {
        let long = "ä漢\n".repeat(CAPACITY);
        let mut text = text(&long);
        text.insert("end");
        assert_eq!(text.as_str(), format!("{long}end"));
        text.undo();
        text.redo();
        assert_eq!(text.as_str(), format!("{long}end"));
    }

    #[test]
    fn adjacent_kills_are_yanked_together() {
        let mut text = text("one two three");
        text.kill(&Movement::BackwardWord(1, Word::Big));
        text.kill(&Movement::BackwardWord(1, Word::Big));
        assert_eq!(text.as_str(), "one ");
        text.yank();
        assert_eq!(text.as_str(), "one two three");
        text.step(&Movement::BackwardChar(1));
        text.kill(&Movement::EndOfLine);
        text.step(&Movement::BeginningOfLine);
        text.yank();
        assert_eq!(text.as_str(), "eone two thre");
    }

    #[test]
    fn edits_are_undone_one_by_one_and_done_again() {
        let mut text = text("a");
        text.insert("b");
        text.kill(&Movement::BackwardWord(1, Word::Big));
        text.insert("c");
        let mut seen = Vec::new();
        for _ in 0..3 {
            text.undo();
            seen.push(text.as_str().to_owned());
        }
        text.undo();
        assert_eq!((seen, text.as_str()), (vec![String::new(), "ab".to_owned(), String::new()], ""));
        (0..4).for_each(|_| text.redo());
        assert_eq!(text.as_str(), "c");
    }

    #[test]
    fn whole_lines_are_taken_and_put() {
        let mut text = text("one\ntwo\nthree");
        text.take_lines(1, true);
        assert_eq!((text.as_str(), text.position()), ("one\ntwo", 4));
        text.set_position(0);
        text.put(true);
        assert_eq!((text.as_str(), text.position()), ("one\nthree\ntwo", 4));
        text.take_lines(2, true);
        assert_eq!(text.as_str(), "one");
        text.put(false);
        assert_eq!(text.as_str(), "three\ntwo\none");
    }
}
