//! Messages as they are made, of the session and of its subagents: each piece of text is told once.
//!
//! Invariants: only what the model says is told, neither the user's words nor the agent's own, nor a summary of the
//! conversation; what a whole part says beyond its pieces is told with it, and a piece of what was told already is not.
//!
//! 1.18.33 writes an event down when it is sent, and what it is about may have gone on by then: a message that begins can be whole
//! already, with all its parts still to come, and a part that begins can hold the pieces that follow.

use super::wire::{DeltaChange, SpokenPart};
use crate::bounded::Bounded;
use teamster_types::event::{Delta, Event, MessageId, Retract, ToolId};

/// Messages and parts that are being made.
#[derive(Debug, Default)]
pub(super) struct Voices {
    messages: Bounded<String, Voice>,
    parts: Bounded<String, Spoken>,
}

#[derive(Debug)]
struct Voice {
    session: String,
    parent: Option<ToolId>,
    /// A summary of the conversation.
    is_summary: bool,
    /// It is not whole yet.
    is_open: bool,
    /// Whether anything of it was told.
    told: bool,
}

#[derive(Debug)]
struct Spoken {
    message: String,
    event: fn(Delta) -> Event,
    /// Bytes of it that were told.
    told: usize,
    /// Bytes of it that came in pieces.
    pieces: usize,
}

impl Voices {
    /// A message of the model begins, or goes on.
    pub(super) fn open(&mut self, id: &str, session: &str, parent: Option<ToolId>, is_summary: bool) {
        if self.has(id) {
            return;
        }
        let bytes = session.len() + parent.as_ref().map_or(0, |parent| parent.as_str().len());
        let voice = Voice { session: session.to_owned(), parent, is_summary, is_open: true, told: false };
        self.messages.insert(id.to_owned(), voice, bytes);
    }

    /// A message is whole.
    pub(super) fn close(&mut self, id: &str) {
        if let Some(voice) = self.messages.get_mut(id) {
            voice.is_open = false;
        }
    }

    /// Whether a message of this session is being made.
    pub(super) fn is_open(&self, session: &str) -> bool {
        self.messages.values().any(|voice| voice.is_open && voice.session == session)
    }

    pub(super) fn has(&self, message: &str) -> bool {
        self.messages.contains(message)
    }

    /// A part of a message, as far as it is. With `whole` only a part that has ended is told.
    pub(super) fn part(
        &mut self,
        id: &str,
        message: &str,
        event: fn(Delta) -> Event,
        part: &SpokenPart<'_>,
        whole: bool,
    ) -> Option<Event> {
        if part.synthetic || part.ignored || !self.has(message) {
            return None;
        }
        if !self.parts.contains(id) {
            let spoken = Spoken { message: message.to_owned(), event, told: 0, pieces: 0 };
            self.parts.insert(id.to_owned(), spoken, message.len());
        }
        if whole && part.time.end.is_none() {
            return None;
        }
        let told = self.parts.get(id).map_or(0, |spoken| spoken.told);
        let rest = part.text.get(told..).unwrap_or_default().to_owned();
        self.tell(id, &rest)
    }

    /// A piece of a part.
    pub(super) fn delta(&mut self, change: &DeltaChange<'_>) -> Option<Event> {
        if &*change.field != "text" {
            return None;
        }
        let spoken = self.parts.get_mut(&*change.part)?;
        spoken.pieces += change.delta.len();
        // Of what the part has said already nothing is news.
        let new = spoken.pieces.saturating_sub(spoken.told).min(change.delta.len());
        let text = change.delta.get(change.delta.len() - new..).unwrap_or_default().to_owned();
        self.tell(&change.part, &text)
    }

    fn tell(&mut self, part: &str, text: &str) -> Option<Event> {
        let spoken = self.parts.get_mut(part)?;
        let voice = self.messages.get_mut(&spoken.message)?;
        if text.is_empty() || voice.is_summary {
            return None;
        }
        spoken.told += text.len();
        voice.told = true;
        let message_id = MessageId::from(spoken.message.as_str());
        Some((spoken.event)(Delta { text: text.into(), message_id, parent_tool_id: voice.parent.clone() }))
    }

    /// What was said of this session's newest message is void: its connection broke, and the model is asked once more.
    pub(super) fn void(&mut self, session: &str) -> Option<Event> {
        // Ids ascend, and messages begin in their order.
        let newest = self.messages.iter().rev().find(|(_, voice)| voice.session == session);
        let id = newest.map(|(id, _)| id.clone())?;
        let of_it = self.parts.iter().filter(|(_, part)| part.message == id);
        let parts: Vec<_> = of_it.map(|(part, _)| part.clone()).collect();
        for part in &parts {
            self.parts.remove(part);
        }
        let voice = self.messages.get_mut(&id)?;
        let message_id = MessageId::from(id.as_str());
        std::mem::take(&mut voice.told).then_some(Event::Retract(Retract { message_id }))
    }
}
