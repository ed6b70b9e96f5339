//! What the agent says, message by message.
//!
//! Agents may give no ids to their messages: then a new one begins with each turn, and after each call of a tool.

use crate::bounded::MAX_BYTES;
use teamster_types::event::{Delta, Event, MessageId};

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Text,
    Thinking,
}

/// Gives messages their ids, and joins their pieces where messages are told as a whole.
#[derive(Debug, Default)]
pub(super) struct Speech {
    whole: bool,
    /// Messages without an id so far.
    messages: u64,
    /// Whether the last of them goes on.
    speaking: bool,
    waiting: Option<(Voice, Delta)>,
    /// Whether the answer of this turn has any text.
    pub(super) has_text: bool,
}

impl Speech {
    pub(super) fn new(whole: bool) -> Self {
        Self { whole, ..Self::default() }
    }

    pub(super) fn say(&mut self, voice: Voice, id: Option<&str>, text: &str, events: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        self.has_text |= voice == Voice::Text;
        let message_id = self.message(id);
        if let Some((open, delta)) = &mut self.waiting
            && *open == voice
            && delta.message_id == message_id
        {
            delta.text.push_str(text);
            // A message that is too long to wait comes in parts.
            if delta.text.len() > MAX_BYTES {
                self.flush(events);
            }
            return;
        }
        self.flush(events);
        let delta = Delta { text: text.into(), message_id, parent_tool_id: None };
        if self.whole {
            self.waiting = Some((voice, delta));
        } else {
            events.push(event(voice, delta));
        }
    }

    /// Something else happens: what is said next is another message.
    pub(super) fn pause(&mut self, events: &mut Vec<Event>) {
        self.flush(events);
        self.speaking = false;
    }

    /// Another turn begins.
    pub(super) fn next_turn(&mut self) {
        (self.speaking, self.has_text, self.waiting) = (false, false, None);
    }

    fn message(&mut self, id: Option<&str>) -> MessageId {
        if let Some(id) = id {
            return id.into();
        }
        if !self.speaking {
            self.speaking = true;
            self.messages += 1;
        }
        format!("message-{}", self.messages).as_str().into()
    }

    fn flush(&mut self, events: &mut Vec<Event>) {
        events.extend(self.waiting.take().map(|(voice, delta)| event(voice, delta)));
    }
}

fn event(voice: Voice, delta: Delta) -> Event {
    match voice {
        Voice::Text => Event::Text(delta),
        Voice::Thinking => Event::Thinking(delta),
    }
}
