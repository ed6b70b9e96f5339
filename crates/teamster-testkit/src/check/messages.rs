//! The messages of the stream so far.

use std::collections::HashSet;

use teamster_types::event::{Delta, MessageId};
use teamster_types::text::MESSAGE_SEPARATOR;

/// The text of each message.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// Messages of any thread that have text or thinking and are not retracted.
    messages: HashSet<MessageId>,
    /// The text of the main thread, by message. A new id starts a new message.
    main: Vec<(MessageId, String)>,
}

impl Messages {
    pub(super) fn delta(&mut self, delta: &Delta, is_text: bool) {
        if delta.text.is_empty() {
            return;
        }
        self.messages.insert(delta.message_id.clone());
        if !is_text || delta.parent_tool_id.is_some() {
            return;
        }
        match self.main.last_mut() {
            Some((id, text)) if *id == delta.message_id => text.push_str(&delta.text),
            _ => self.main.push((delta.message_id.clone(), delta.text.clone().into_string())),
        }
    }

    /// Retracts a message. Returns whether it had content.
    pub(super) fn retract(&mut self, message: &MessageId) -> bool {
        self.main.retain(|(id, _)| id != message);
        self.messages.remove(message)
    }

    pub(super) fn text(&self) -> String {
        let texts: Vec<_> = self.main.iter().map(|(_, text)| text.as_str()).collect();
        texts.join(MESSAGE_SEPARATOR)
    }

    pub(super) fn final_text(&self) -> &str {
        self.main.last().map_or("", |(_, text)| text)
    }
}
