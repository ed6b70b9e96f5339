//! The text of a run, for its result. Its messages are separated by a blank line.

use std::collections::VecDeque;

use teamster_types::event::MessageId;
use teamster_types::text::{MESSAGE_SEPARATOR, UntrustedText};

/// The maximum bytes of text in a result. The end of a longer text is retained.
pub(super) const MAX_TEXT: usize = 16 << 20;

/// The maximum number of messages that can be retracted.
const MAX_MESSAGES: usize = 10_000;

/// The maximum bytes of their ids.
const MAX_ID_BYTES: usize = 16 << 20;

/// The model's text on the main thread, message by message.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The text of older messages, which can no longer be retracted.
    old: String,
    messages: VecDeque<(MessageId, String)>,
    /// The bytes of the ids of `messages`.
    id_bytes: usize,
    /// The bytes of `old` and of the texts of `messages`.
    bytes: usize,
    /// The bytes that were dropped from the start of the text.
    missing: u64,
}

/// The text fields of a result.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CollectedText {
    pub(super) text: UntrustedText,
    /// The last message, which is the end of `text`.
    pub(super) final_text: UntrustedText,
    pub(super) missing: u64,
}

impl Text {
    /// Adds a delta.
    pub(super) fn append(&mut self, message: &MessageId, text: &str) {
        self.bytes += text.len();
        match self.messages.back_mut() {
            Some((id, all)) if id == message => all.push_str(text),
            _ => {
                self.id_bytes += message.as_str().len();
                self.messages.push_back((message.clone(), text.to_owned()));
            }
        }
        while self.messages.len() > MAX_MESSAGES || (self.id_bytes > MAX_ID_BYTES && self.messages.len() > 1) {
            let Some((id, text)) = self.messages.pop_front() else { break };
            self.id_bytes -= id.as_str().len();
            if !self.old.is_empty() {
                self.old.push_str(MESSAGE_SEPARATOR);
                self.bytes += MESSAGE_SEPARATOR.len();
            }
            self.old.push_str(&text);
        }
        // The text is truncated rarely, because that moves the remaining bytes.
        if self.bytes > 2 * MAX_TEXT {
            self.truncate();
        }
    }

    /// Whether there is no text.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.missing == 0
    }

    /// Removes a message.
    pub(super) fn retract(&mut self, message: &MessageId) {
        let (bytes, id_bytes) = (&mut self.bytes, &mut self.id_bytes);
        self.messages.retain(|(id, text)| {
            let is_retained = id != message;
            if !is_retained {
                *bytes -= text.len();
                *id_bytes -= id.as_str().len();
            }
            is_retained
        });
    }

    /// Removes all messages.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes and returns the text and its last message.
    pub(super) fn take(&mut self) -> CollectedText {
        self.truncate();
        let Self { old: mut text, messages, mut missing, .. } = std::mem::take(self);
        let mut last = text.len();
        for (_, message) in messages {
            if text.is_empty() {
                last = 0;
                text = message;
            } else {
                text.push_str(MESSAGE_SEPARATOR);
                last = text.len();
                text.push_str(&message);
            }
        }
        // The separators made it longer.
        let excess = char_boundary(&text, text.len().saturating_sub(MAX_TEXT));
        text.drain(..excess);
        missing += excess as u64;
        let (text, final_text) = UntrustedText::with_end(text, last.saturating_sub(excess));
        CollectedText { text, final_text, missing }
    }

    /// Drops the start of a text that is too long.
    fn truncate(&mut self) {
        while let Some(excess) = self.bytes.checked_sub(MAX_TEXT).filter(|excess| *excess > 0) {
            let is_old = !self.old.is_empty();
            let first = match self.messages.front_mut() {
                _ if is_old => &mut self.old,
                Some((_, text)) => text,
                None => return,
            };
            let end = char_boundary(first, excess.min(first.len()));
            first.drain(..end);
            self.bytes -= end;
            self.missing += end as u64;
            let is_dropped = if is_old {
                self.old.is_empty() && !self.messages.is_empty()
            } else {
                let is_empty = self.messages.front().is_some_and(|(_, text)| text.is_empty());
                let dropped = if is_empty && self.messages.len() > 1 { self.messages.pop_front() } else { None };
                self.id_bytes -= dropped.as_ref().map_or(0, |(id, _)| id.as_str().len());
                dropped.is_some()
            };
            if is_dropped {
                self.missing += MESSAGE_SEPARATOR.len() as u64;
            }
        }
    }
}

/// Returns the first boundary between characters from a byte on.
fn char_boundary(text: &str, from: usize) -> usize {
    (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_separated_by_a_blank_line() {
        let mut text = Text::default();
        for (message, part) in [("a", "One "), ("a", "two."), ("b", "void"), ("c", "Three.")] {
            text.append(&message.into(), part);
        }
        text.retract(&"b".into());
        let whole = text.take();
        assert_eq!((whole.text.as_str(), whole.final_text.as_str()), ("One two.\n\nThree.", "Three."));
    }

    #[test]
    fn the_last_bytes_are_retained_and_the_others_are_counted() {
        let mut text = Text::default();
        let piece = "ä".repeat(500);
        for number in 0..60_000 {
            text.append(&format!("m{}", number / 3).as_str().into(), &piece);
            assert!(text.bytes <= 2 * MAX_TEXT);
        }
        let whole = text.take();
        assert!(whole.text.len() <= MAX_TEXT && whole.text.len() > MAX_TEXT - 4);
        let separators = 19_999 * MESSAGE_SEPARATOR.len() as u64;
        assert_eq!(whole.text.len() as u64 + whole.missing, 60_000 * 1000 + separators);
        assert_eq!(whole.final_text.len(), 3000);
    }

    #[test]
    fn the_start_of_a_message_that_is_too_long_is_dropped() {
        let mut text = Text::default();
        for _ in 0..5 {
            text.append(&"m".into(), &"x".repeat(MAX_TEXT));
        }
        text.append(&"m".into(), "end");
        let whole = text.take();
        assert_eq!((whole.text.len(), whole.missing), (MAX_TEXT, 4 * MAX_TEXT as u64 + 3));
        assert!(whole.final_text == whole.text && whole.text.ends_with("xend"));
    }

    #[test]
    fn messages_are_retracted_unless_they_are_too_old() {
        let mut text = Text::default();
        for number in 0..MAX_MESSAGES + 2 {
            text.append(&number.to_string().as_str().into(), "x");
        }
        text.retract(&"0".into());
        text.retract(&"5".into());
        assert_eq!(text.take().text.len(), MAX_MESSAGES + 1 + MAX_MESSAGES * MESSAGE_SEPARATOR.len());
        text.append(&"a".into(), "a");
        text.clear();
        assert_eq!(text.take(), CollectedText::default());
    }
}
