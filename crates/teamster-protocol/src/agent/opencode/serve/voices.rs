//! Messages as they are made, of the session and of its subagents: each piece of text is told once.
//!
//! Invariants: only what the model says is told, neither the user's words nor the agent's own, nor a summary of the
//! conversation; what a whole part says beyond its pieces is told with it, and a piece of what was told already is not.
//!
//! 1.18.33 writes an event down when it is sent, and what it is about may have gone on by then: a message that begins can be whole
//! already, with all its parts still to come, and a part that begins can hold the pieces that follow.

use std::collections::BTreeMap;

use super::wire::{DeltaChange, SpokenPart};
use crate::bounded::MAX_ENTRIES;
use crate::event::{Delta, Event, MessageId, Retract, ToolId};

/// Messages and parts that are being made.
#[derive(Debug, Default)]
pub(super) struct Voices {
    messages: BTreeMap<String, Voice>,
    parts: BTreeMap<String, Spoken>,
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
        let voice = Voice { session: session.to_owned(), parent, is_summary, is_open: true, told: false };
        self.messages.entry(id.to_owned()).or_insert(voice);
        // Ids ascend.
        if self.messages.len() > MAX_ENTRIES {
            self.messages.pop_first();
        }
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
        self.messages.contains_key(message)
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
        if self.parts.len() >= MAX_ENTRIES && !self.parts.contains_key(id) {
            self.parts.pop_first();
        }
        let spoken = self.parts.entry(id.to_owned()).or_insert(Spoken {
            message: message.to_owned(),
            event,
            told: 0,
            pieces: 0,
        });
        if whole && part.time.end.is_none() {
            return None;
        }
        let rest = part.text.get(spoken.told..).unwrap_or_default().to_owned();
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
        // Ids ascend.
        let (id, voice) = self.messages.iter_mut().rev().find(|(_, voice)| voice.session == session)?;
        self.parts.retain(|_, part| part.message != *id);
        let message_id = MessageId::from(id.as_str());
        std::mem::take(&mut voice.told).then_some(Event::Retract(Retract { message_id }))
    }
}
