//! What the stream has told so far of the model's words.

use std::collections::HashSet;

use teamster_protocol::event::{Delta, MessageId};

/// Messages as they were told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Messages of which something was told and not retracted: text or thinking, of any thread.
    messages: HashSet<MessageId>,
    /// The main thread's text: a new id begins a new message.
    main: Vec<(MessageId, String)>,
}

impl Told {
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

    /// Takes back a message; tells whether there was something to take back.
    pub(super) fn retract(&mut self, message: &MessageId) -> bool {
        self.main.retain(|(id, _)| id != message);
        self.messages.remove(message)
    }

    pub(super) fn text(&self) -> String {
        self.main.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub(super) fn final_text(&self) -> &str {
        self.main.last().map_or("", |(_, text)| text)
    }
}
