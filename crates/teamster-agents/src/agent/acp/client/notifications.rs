//! Notifications of the agent: chunks of the answer, tool calls and settings of the session.

use serde_json::Value;
use serde_json::value::RawValue;

use super::chunk_shape::ChunkShape;
use super::quiet::Owner;
use super::{Actions, Client, Phase, emit};
use crate::agent::acp::messages::ContentKind;
use crate::agent::acp::permissions;
use crate::agent::acp::questions::Question;
use crate::agent::acp::wire::{Block, CallFields, Entry, Update, UpdateParams};
use crate::protocol::{Action, ProcessAction, SessionAction};
use teamster_types::event::{ContextUse, Event, Plan, PlanEntry, PlanStatus, Warning, WarningCode};

impl Client {
    /// Handles a line that differs from an earlier chunk only in its text. Returns whether it is one.
    pub(super) fn repeated_chunk(&mut self, line: &[u8], actions: &mut Actions) -> bool {
        let Some(last) = self.last_chunk.take() else { return false };
        let text = last.shape.text(line);
        if let Some(text) = text {
            self.message_text(last.kind, &last.session_id, last.message_id.as_deref(), text, actions);
        }
        self.last_chunk = Some(last);
        text.is_some()
    }

    /// Handles the text of a chunk.
    fn message_text(
        &mut self,
        kind: ContentKind,
        session_id: &str,
        message_id: Option<&str>,
        text: &str,
        actions: &mut Actions,
    ) {
        let mut events = Vec::new();
        let owner = self.owner(session_id);
        match owner {
            _ if self.dialect.is_noise(text) => {}
            Owner::Turn => self.messages.push(kind, message_id, text, &mut events),
            Owner::Late if kind == ContentKind::Text => self.note_late(text, actions),
            Owner::History => self.note_history(actions),
            Owner::Late | Owner::Other => {}
        }
        emit(events, actions);
        if owner == Owner::Turn {
            self.note_progress(actions);
        }
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
                if let Some((id, question)) = id.and_then(|id| self.pending.take_cancelled_question(id)) {
                    actions.push(Action::Session(SessionAction::Withdraw(id)));
                    let line = self.caller.answer(&question.id, &Question::cancelled());
                    actions.push(Action::Process(ProcessAction::Write(line)));
                }
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
            "user_message_chunk" => {
                let block = update.content.and_then(|raw| serde_json::from_str::<Block<'_>>(raw.get()).ok());
                let text = block.and_then(|block| block.text);
                match self.owner(&params.session_id) {
                    Owner::Turn => self.user_chunk(text.as_deref().unwrap_or_default(), actions),
                    Owner::History => {
                        self.user_chunk(text.as_deref().unwrap_or_default(), actions);
                        self.note_history(actions);
                    }
                    Owner::Late | Owner::Other => {}
                }
            }
            "agent_message_chunk" => {
                self.chunk(line, params, ContentKind::Text, &update, actions);
                return Ok(());
            }
            "agent_thought_chunk" => {
                self.chunk(line, params, ContentKind::Thinking, &update, actions);
                return Ok(());
            }
            kind => return self.work(kind, params, update.entries, actions),
        }
        emit(events, actions);
        Ok(())
    }

    /// Handles an update of a tool call or a plan.
    fn work(
        &mut self,
        kind: &str,
        params: &UpdateParams<'_>,
        entries: Vec<Entry>,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let (mut events, mut call) = (Vec::new(), None);
        match (kind, self.owner(&params.session_id)) {
            ("tool_call" | "tool_call_update", Owner::Turn) => {
                let fields: CallFields = serde_json::from_str(params.update.get())?;
                call = Some(fields.tool_call_id.clone());
                self.messages.end_message(&mut events);
                self.calls.update(fields, kind == "tool_call", &*self.dialect, &mut events);
            }
            ("tool_call", Owner::Late) => {
                let fields: CallFields = serde_json::from_str(params.update.get())?;
                if !self.calls.is_past(&fields.tool_call_id) {
                    let title = fields.title.as_deref().unwrap_or(&fields.tool_call_id);
                    self.note_late(&format!("[call: {title}]"), actions);
                }
            }
            ("plan", Owner::Turn) => {
                let entry = |entry: Entry| PlanEntry::new(entry.content, PlanStatus::from(entry.status.as_str()));
                events.push(Event::Plan(Plan::new(entries.into_iter().map(entry).collect())));
            }
            (_, Owner::History) => self.note_history(actions),
            _ => {}
        }
        let has_progress = !events.is_empty();
        emit(events, actions);
        if has_progress {
            self.note_progress(actions);
        }
        if let Some(call) = call {
            self.check_asked(&call, actions);
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        line: &str,
        params: &UpdateParams<'_>,
        content_kind: ContentKind,
        update: &Update<'_>,
        actions: &mut Actions,
    ) {
        let block = update.content.and_then(|raw| serde_json::from_str::<Block<'_>>(raw.get()).ok());
        let Some(block) = block else { return actions.push(Action::Alive) };
        let inner = block.resource.and_then(|resource| resource.text);
        let text = match &*block.kind {
            "text" => block.text.as_deref(),
            "resource_link" => block.uri.as_deref(),
            "resource" => inner.as_deref(),
            kind => {
                let text = format!("a chunk of a message is not text and was skipped: {kind}");
                let is_of_turn = self.owner(&params.session_id) == Owner::Turn;
                let warning = is_of_turn.then(|| Event::from(Warning::new(WarningCode::Notice, text)));
                return emit(warning.into_iter().collect(), actions);
            }
        };
        let text = text.unwrap_or_default();
        let message_id = update.message_id.as_deref();
        if self.owner(&params.session_id) == Owner::Turn {
            let chunk = ChunkShape::of(line, text, content_kind, &params.session_id, message_id);
            self.last_chunk = chunk.or(self.last_chunk.take());
        }
        self.message_text(content_kind, &params.session_id, message_id, text, actions);
    }
}
