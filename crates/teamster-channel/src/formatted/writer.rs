//! A growing text, and the entities that are open in it.

use super::types::{Entity, EntityKind, Formatted, is_shown, utf16_length};

/// The largest number of entities of a message. The service ignores those beyond it.
const MAX_ENTITIES: usize = 100;

/// What a mention is broken with: it is invisible, and keeps the words together.
const WORD_JOINER: char = '\u{2060}';

/// An entity that is not closed.
struct Open {
    kind: EntityKind,
    /// `None` until the first character is written.
    start: Option<usize>,
}

/// Writes a text and its entities.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    /// The length of the text in UTF-16 units.
    length: usize,
    entities: Vec<Entity>,
    open: Vec<Open>,
    /// Line breaks before the next character.
    breaks: usize,
    /// The last two characters.
    last: [Option<char>; 2],
}

impl Writer {
    /// Ends the line, or the paragraph, before the next character.
    pub(super) fn break_lines(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
    }

    /// Opens an entity. One of the same kind inside of another one has no effect.
    pub(super) fn open(&mut self, kind: EntityKind) {
        self.open.push(Open { kind, start: None });
    }

    /// Closes the entity that was opened last.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.pop() {
            self.add(open);
        }
    }

    /// Returns whether the text that is written now belongs to a link.
    pub(super) fn is_in_link(&self) -> bool {
        self.open.iter().any(|open| matches!(open.kind, EntityKind::TextLink { .. }))
    }

    /// Writes code. A link, which cannot contain code, shows it as a plain text. So does a message with too many entities: in a
    /// text that is not code, mentions must be broken.
    pub(super) fn code(&mut self, kind: EntityKind, code: &str) {
        let codes = self.entities.iter().filter(|entity| entity.kind.is_code()).count();
        if self.is_in_link() || codes >= MAX_ENTITIES {
            return self.write(code);
        }
        // The ranges around the code end before it, and start again after it.
        let length = self.length;
        let mut ended = Vec::new();
        for open in self.open.iter_mut().rev().filter(|open| open.kind.excludes_code()) {
            if let Some(start) = open.start.take() {
                ended.push((open.kind.clone(), start));
            }
        }
        for (kind, start) in ended {
            self.push(kind, start, length);
        }
        self.flush_breaks();
        self.start_open(false);
        let start = self.length;
        if self.last[1] == Some('@') {
            self.raw(WORD_JOINER);
        }
        code.chars().for_each(|character| self.raw(character));
        self.push(kind, start, self.length);
    }

    /// Writes a text.
    pub(super) fn write(&mut self, text: &str) {
        for character in text.chars().filter(|character| is_shown(*character)) {
            if character == '\n' && (self.text.is_empty() || self.breaks > 0) {
                continue;
            }
            self.flush_breaks();
            if !character.is_whitespace() {
                self.start_open(true);
            }
            let is_name = character.is_ascii_alphanumeric() || character == '_';
            let [before, at] = self.last;
            let is_word = before.is_some_and(|before| before.is_alphanumeric() || before == '_');
            if is_name && at == Some('@') && !is_word {
                self.raw(WORD_JOINER);
            }
            self.raw(character);
        }
    }

    /// Returns the result.
    pub(super) fn finish(mut self) -> Formatted {
        while !self.open.is_empty() {
            self.close();
        }
        let trimmed = self.text.trim_end().len();
        self.text.truncate(trimmed);
        let end = utf16_length(&self.text);
        let mut entities = self.entities;
        for entity in &mut entities {
            entity.length = entity.length.min(end.saturating_sub(entity.offset));
        }
        entities.retain(|entity| entity.length > 0);
        if entities.len() > MAX_ENTITIES {
            // All code keeps its formatting, since mentions in it are not broken.
            entities.sort_by_key(|entity| (!entity.kind.is_code(), entity.offset));
            entities.truncate(MAX_ENTITIES);
        }
        entities.sort_by_key(|entity| (entity.offset, std::cmp::Reverse(entity.length), entity.kind.is_code()));
        entities.dedup();
        Formatted { text: self.text, entities }
    }

    fn flush_breaks(&mut self) {
        let wanted = std::mem::take(&mut self.breaks);
        if self.text.is_empty() {
            return;
        }
        let present = self.text.chars().rev().take_while(|character| *character == '\n').count();
        for _ in present..wanted {
            self.raw('\n');
        }
    }

    /// Starts the entities that wait for their first character.
    fn start_open(&mut self, is_text: bool) {
        for open in &mut self.open {
            if open.start.is_none() && (is_text || !open.kind.excludes_code()) {
                open.start = Some(self.length);
            }
        }
    }

    fn raw(&mut self, character: char) {
        if is_shown(character) {
            self.text.push(character);
            self.length += character.len_utf16();
            self.last = [self.last[1], Some(character)];
        }
    }

    fn add(&mut self, open: Open) {
        let is_inside = self.open.iter().any(|outer| outer.kind == open.kind);
        if let Some(start) = open.start.filter(|_| !is_inside) {
            self.push(open.kind, start, self.length);
        }
    }

    fn push(&mut self, kind: EntityKind, start: usize, end: usize) {
        if end > start {
            self.entities.push(Entity { kind, offset: start, length: end - start });
        }
    }
}
