//! Assembles the chunks of messages.
//!
//! Agents may omit the ids of messages. Then each turn and each tool call starts a new message.

use crate::bounded::MAX_BYTES;
use teamster_types::event::{Delta, Event, MessageId};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    Text,
    Thinking,
}

/// Assigns ids to messages, and joins their chunks if messages are emitted as a whole.
#[derive(Debug, Default)]
pub(super) struct MessageAssembler {
    emits_whole_messages: bool,
    /// The number of messages without an id.
    count: u64,
    /// The last one may continue.
    in_message: bool,
    waiting: Option<(ContentKind, Delta)>,
    /// Whether the answer of this turn has text.
    pub(super) has_text: bool,
}

impl MessageAssembler {
    pub(super) fn new(emits_whole_messages: bool) -> Self {
        Self { emits_whole_messages, ..Self::default() }
    }

    /// Adds a chunk of a message.
    pub(super) fn push(&mut self, kind: ContentKind, id: Option<&str>, text: &str, events: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        self.has_text |= kind == ContentKind::Text;
        let message_id = self.message_id(id);
        if let Some((open, delta)) = &mut self.waiting
            && *open == kind
            && delta.message_id == message_id
        {
            delta.text.push_str(text);
            // A message that exceeds the limit is emitted in parts.
            if delta.text.len() > MAX_BYTES {
                self.flush(events);
            }
            return;
        }
        self.flush(events);
        let delta = Delta::new(message_id, text);
        if self.emits_whole_messages {
            self.waiting = Some((kind, delta));
        } else {
            events.push(event(kind, delta));
        }
    }

    /// Ends the message. The next chunk without an id starts a new one.
    pub(super) fn end_message(&mut self, events: &mut Vec<Event>) {
        self.flush(events);
        self.in_message = false;
    }

    /// Starts the next turn.
    pub(super) fn next_turn(&mut self) {
        (self.in_message, self.has_text, self.waiting) = (false, false, None);
    }

    fn message_id(&mut self, id: Option<&str>) -> MessageId {
        if let Some(id) = id {
            return id.into();
        }
        if !self.in_message {
            self.in_message = true;
            self.count += 1;
        }
        format!("message-{}", self.count).as_str().into()
    }

    fn flush(&mut self, events: &mut Vec<Event>) {
        events.extend(self.waiting.take().map(|(kind, delta)| event(kind, delta)));
    }
}

fn event(kind: ContentKind, delta: Delta) -> Event {
    match kind {
        ContentKind::Text => Event::Text(delta),
        ContentKind::Thinking => Event::Thinking(delta),
    }
}
