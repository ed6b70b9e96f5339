//! The text of a run, as far as its result holds it.

use std::collections::VecDeque;

use teamster_types::event::MessageId;

/// How many bytes of text a result holds: the last ones.
pub(super) const MAX_TEXT: usize = 16 << 20;

/// How many messages can be taken back.
const MAX_MESSAGES: usize = 10_000;

/// How many bytes their ids have at most.
const MAX_ID_BYTES: usize = 16 << 20;

/// What the model has said on the main thread, message by message.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The text of messages so old that they cannot be taken back any more.
    old: String,
    messages: VecDeque<(MessageId, String)>,
    /// The bytes of the ids of `messages`.
    id_bytes: usize,
    /// The bytes of all of it.
    bytes: usize,
    /// The bytes that were left out before it.
    missing: u64,
}

/// What a result says of the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) text: String,
    pub(super) final_text: String,
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
            self.old.push_str(&text);
        }
        // Not each time: what is left has to be moved.
        if self.bytes > 2 * MAX_TEXT {
            self.cut();
        }
    }

    /// Takes a message back.
    pub(super) fn retract(&mut self, message: &MessageId) {
        let (bytes, id_bytes) = (&mut self.bytes, &mut self.id_bytes);
        self.messages.retain(|(id, text)| {
            let stays = id != message;
            if !stays {
                *bytes -= text.len();
                *id_bytes -= id.as_str().len();
            }
            stays
        });
    }

    /// Takes everything back.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The text and its last message.
    pub(super) fn take(&mut self) -> Whole {
        self.cut();
        let Self { old: mut text, messages, missing, .. } = std::mem::take(self);
        let final_text = messages.back().map(|(_, text)| text.clone()).unwrap_or_default();
        for (_, message) in &messages {
            text.push_str(message);
        }
        Whole { text, final_text, missing }
    }

    /// Leaves out the beginning of what is too long.
    fn cut(&mut self) {
        while let Some(excess) = self.bytes.checked_sub(MAX_TEXT).filter(|excess| *excess > 0) {
            let first = match self.messages.front_mut() {
                _ if !self.old.is_empty() => &mut self.old,
                Some((_, text)) => text,
                None => return,
            };
            let end = (excess.min(first.len())..=first.len()).find(|at| first.is_char_boundary(*at));
            let end = end.unwrap_or(first.len());
            first.drain(..end);
            self.bytes -= end;
            self.missing += end as u64;
            if self.old.is_empty()
                && self.messages.len() > 1
                && self.messages.front().is_some_and(|(_, text)| text.is_empty())
                && let Some((id, _)) = self.messages.pop_front()
            {
                self.id_bytes -= id.as_str().len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_and_the_others_are_counted() {
        let mut text = Text::default();
        let piece = "ä".repeat(500);
        for number in 0..60_000 {
            text.append(&format!("m{}", number / 3).as_str().into(), &piece);
            assert!(text.bytes <= 2 * MAX_TEXT);
        }
        let whole = text.take();
        assert!(whole.text.len() <= MAX_TEXT && whole.text.len() > MAX_TEXT - 4);
        assert_eq!(whole.text.len() as u64 + whole.missing, 60_000 * 1000);
        assert_eq!(whole.final_text.len(), 3000);
    }

    #[test]
    fn one_message_that_is_too_long_loses_its_beginning() {
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
    fn messages_are_taken_back_unless_they_are_too_old() {
        let mut text = Text::default();
        for number in 0..MAX_MESSAGES + 2 {
            text.append(&number.to_string().as_str().into(), "x");
        }
        text.retract(&"0".into());
        text.retract(&"5".into());
        assert_eq!(text.take().text.len(), MAX_MESSAGES + 1);
        text.append(&"a".into(), "a");
        text.clear();
        assert_eq!(text.take(), Whole::default());
    }
}
