//! Assembles messages of the session and of its subagents. Each piece of text is emitted once.
//!
//! Invariants: only output of the model is emitted. The user's text, the agent's own text and summaries of the conversation are
//! not. A complete part emits the text that its deltas lacked. A delta that was already emitted is not emitted again.
//!
//! 1.18.33 serializes an event when it is sent, and its subject may have changed by then. A message can be complete when it
//! starts, before all its parts. A part can contain its later deltas when it starts.

use super::wire::{DeltaChange, TextPart};
use crate::bounded::Bounded;
use teamster_types::event::{Delta, Event, MessageId, Retract, ToolId};

/// The messages and parts of a turn.
#[derive(Debug, Default)]
pub(super) struct MessageAssembler {
    messages: Bounded<String, Message>,
    parts: Bounded<String, Part>,
}

#[derive(Debug)]
struct Message {
    session: String,
    parent: Option<ToolId>,
    /// Whether it is a summary of the conversation.
    is_summary: bool,
    /// Whether it is incomplete.
    is_open: bool,
    /// Whether any of it was emitted.
    is_emitted: bool,
}

#[derive(Debug)]
struct Part {
    message: String,
    event: fn(Delta) -> Event,
    /// The number of bytes that were emitted.
    emitted_bytes: usize,
    /// The number of bytes that were received as deltas.
    delta_bytes: usize,
}

impl MessageAssembler {
    /// Adds a message of the model if it is new.
    pub(super) fn open(&mut self, id: &str, session: &str, parent: Option<ToolId>, is_summary: bool) {
        if self.contains(id) {
            return;
        }
        let bytes = session.len() + parent.as_ref().map_or(0, |parent| parent.as_str().len());
        let message = Message { session: session.to_owned(), parent, is_summary, is_open: true, is_emitted: false };
        self.messages.insert(id.to_owned(), message, bytes);
    }

    /// Marks a message as complete.
    pub(super) fn close(&mut self, id: &str) {
        if let Some(message) = self.messages.get_mut(id) {
            message.is_open = false;
        }
    }

    /// Returns whether a message of this session is incomplete.
    pub(super) fn has_open(&self, session: &str) -> bool {
        self.messages.values().any(|message| message.is_open && message.session == session)
    }

    /// Returns whether a message of the model has this id.
    pub(super) fn contains(&self, message: &str) -> bool {
        self.messages.contains(message)
    }

    /// Updates a part, and returns its new text. With `whole`, an incomplete part has none.
    pub(super) fn part(
        &mut self,
        id: &str,
        message: &str,
        event: fn(Delta) -> Event,
        part: &TextPart<'_>,
        whole: bool,
    ) -> Option<Event> {
        if part.synthetic || part.ignored || !self.contains(message) {
            return None;
        }
        if !self.parts.contains(id) {
            let part = Part { message: message.to_owned(), event, emitted_bytes: 0, delta_bytes: 0 };
            self.parts.insert(id.to_owned(), part, message.len());
        }
        if whole && part.time.end.is_none() {
            return None;
        }
        let emitted = self.parts.get(id).map_or(0, |part| part.emitted_bytes);
        let rest = part.text.get(emitted..).unwrap_or_default().to_owned();
        self.emit(id, &rest)
    }

    /// Adds a delta of a part, and returns the text of it that is new.
    pub(super) fn delta(&mut self, change: &DeltaChange<'_>) -> Option<Event> {
        if &*change.field != "text" {
            return None;
        }
        let part = self.parts.get_mut(&*change.part)?;
        part.delta_bytes += change.delta.len();
        let new = part.delta_bytes.saturating_sub(part.emitted_bytes).min(change.delta.len());
        let text = change.delta.get(change.delta.len() - new..).unwrap_or_default().to_owned();
        self.emit(&change.part, &text)
    }

    fn emit(&mut self, part: &str, text: &str) -> Option<Event> {
        let part = self.parts.get_mut(part)?;
        let message = self.messages.get_mut(&part.message)?;
        if text.is_empty() || message.is_summary {
            return None;
        }
        part.emitted_bytes += text.len();
        message.is_emitted = true;
        let message_id = MessageId::from(part.message.as_str());
        Some((part.event)(Delta::new(message_id, text).with_parent(message.parent.clone())))
    }

    /// Retracts the newest message of a session: its connection broke, and the model is called again.
    pub(super) fn retract_newest(&mut self, session: &str) -> Option<Event> {
        // Ids are in ascending order, and messages start in their order.
        let newest = self.messages.iter().rev().find(|(_, message)| message.session == session);
        let id = newest.map(|(id, _)| id.clone())?;
        let own_parts = self.parts.iter().filter(|(_, part)| part.message == id);
        let parts: Vec<_> = own_parts.map(|(part, _)| part.clone()).collect();
        for part in &parts {
            self.parts.remove(part);
        }
        let message = self.messages.get_mut(&id)?;
        let message_id = MessageId::from(id.as_str());
        std::mem::take(&mut message.is_emitted).then_some(Event::Retract(Retract::new(message_id)))
    }
}
