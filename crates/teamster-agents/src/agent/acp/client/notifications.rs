//! Notifications of the agent: chunks of the answer, tool calls and settings of the session.

use serde_json::Value;
use serde_json::value::RawValue;

use super::chunk_shape::ChunkShape;
use super::{Actions, Client, Phase, emit};
use crate::agent::acp::messages::ContentKind;
use crate::agent::acp::permissions;
use crate::agent::acp::wire::{Block, CallFields, Entry, Update, UpdateParams};
use crate::protocol::{Action, SessionAction};
use teamster_types::event::{ContextUse, Event, Plan, PlanEntry, PlanStatus, Warning, WarningCode};

impl Client {
    /// Handles a line that differs from an earlier chunk only in its text. Returns whether it is one.
    pub(super) fn repeated_chunk(&mut self, line: &[u8], actions: &mut Actions) -> bool {
        let Some(last) = &self.last_chunk else { return false };
        let Some(text) = last.shape.text(line) else { return false };
        let mut events = Vec::new();
        if self.is_of_turn(&last.session_id) && !self.dialect.is_noise(text) {
            self.messages.push(last.kind, last.message_id.as_deref(), text, &mut events);
        }
        emit(events, actions);
        true
    }

    /// Returns whether the updates of a session belong to a turn. Before the prompt is sent, they are the history of an old
    /// session.
    fn is_of_turn(&self, session_id: &str) -> bool {
        matches!(&self.phase, Phase::Open(session) if session.wire_id == session_id)
            && self.turn.as_ref().is_some_and(|turn| turn.prompt.is_none())
    }

    pub(super) fn notification(
        &mut self,
        line: &str,
        method: &str,
        params: &RawValue,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        match method {
            "session/update" => self.update(line, &serde_json::from_str(params.get())?, actions)?,
            "$/cancel_request" => {
                let params: Value = serde_json::from_str(params.get())?;
                let id = params.get("requestId");
                if let Some((id, pending)) = id.and_then(|id| self.pending.take_cancelled(id)) {
                    actions.push(Action::Session(SessionAction::Withdraw(id)));
                    self.reply(&pending, &permissions::cancelled(), "The agent cancelled the request.", actions);
                }
            }
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    fn update(&mut self, line: &str, params: &UpdateParams<'_>, actions: &mut Actions) -> serde_json::Result<()> {
        let update: Update<'_> = serde_json::from_str(params.update.get())?;
        let Phase::Open(session) = &self.phase else {
            actions.push(Action::Alive);
            return Ok(());
        };
        let is_ours = session.wire_id == *params.session_id;
        let mut events = Vec::new();
        match &*update.kind {
            _ if !is_ours => {}
            "config_option_update" => self.settings.options(update.config_options),
            "current_mode_update" => {
                let mode = update.current_mode_id.unwrap_or_default();
                if self.settings.note_mode(&mode, self.options.mode) {
                    let text = format!("the agent entered mode {mode:?} by itself, which permits more than requested");
                    events.push(Warning::new(WarningCode::Notice, text).into());
                }
            }
            "usage_update" => {
                let cost = update.cost.filter(|cost| cost.currency == "USD" && cost.amount.is_finite());
                let size = update.size.filter(|size| *size > 0);
                self.context = update.used.map(|used| ContextUse::new(used, size)).or(self.context.take());
                self.cost = cost.map(|cost| cost.amount).or(self.cost);
            }
            _ if !self.is_of_turn(&params.session_id) => {}
            "agent_message_chunk" => self.chunk(line, params, ContentKind::Text, &update, &mut events),
            "agent_thought_chunk" => self.chunk(line, params, ContentKind::Thinking, &update, &mut events),
            "tool_call" | "tool_call_update" => {
                let fields: CallFields = serde_json::from_str(params.update.get())?;
                self.messages.end_message(&mut events);
                self.calls.update(fields, &*update.kind == "tool_call", &*self.dialect, &mut events);
            }
            "plan" => {
                let entry = |entry: Entry| PlanEntry::new(entry.content, PlanStatus::from(entry.status.as_str()));
                let entries = update.entries.into_iter().map(entry).collect();
                events.push(Event::Plan(Plan::new(entries)));
            }
            _ => {}
        }
        emit(events, actions);
        Ok(())
    }

    fn chunk(
        &mut self,
        line: &str,
        params: &UpdateParams<'_>,
        content_kind: ContentKind,
        update: &Update<'_>,
        events: &mut Vec<Event>,
    ) {
        let block = update.content.and_then(|raw| serde_json::from_str::<Block<'_>>(raw.get()).ok());
        let Some(block) = block else { return };
        let inner = block.resource.and_then(|resource| resource.text);
        let text = match &*block.kind {
            "text" => block.text.as_deref(),
            "resource_link" => block.uri.as_deref(),
            "resource" => inner.as_deref(),
            kind => {
                let text = format!("a chunk of a message is not text and was skipped: {kind}");
                return events.push(Warning::new(WarningCode::Notice, text).into());
            }
        };
        let text = text.unwrap_or_default();
        let chunk = ChunkShape::of(line, text, content_kind, &params.session_id, update.message_id.as_deref());
        self.last_chunk = chunk.or(self.last_chunk.take());
        if !self.dialect.is_noise(text) {
            self.messages.push(content_kind, update.message_id.as_deref(), text, events);
        }
    }
}
