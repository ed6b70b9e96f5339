//! The events of the server.
//!
//! Invariant: only events of the session and its subagents are used.

use serde_json::value::RawValue;
use time::OffsetDateTime;

use super::super::turn::Work;
use super::super::wire::{
    DeltaChange, ServerEvent, SessionCreated, SessionError, SessionEvent, Status, StatusChange, Todo, TodoChange,
};
use super::{Actions, ServeProtocol};
use crate::agent::limit::rejected_until;
use crate::protocol::Action;
use teamster_types::event::{Event, Plan, PlanEntry, PlanStatus, Warning, WarningCode};

impl ServeProtocol {
    /// Handles an event of the server.
    pub(super) fn event(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        let event: ServerEvent<'_> = serde_json::from_str(text)?;
        let properties = event.properties.map_or("{}", RawValue::get);
        match &*event.kind {
            "server.connected" => self.subscribed(actions),
            // The server sends it every ten seconds, whatever the agent does.
            "server.heartbeat" => self.emit_held(None, actions),
            "session.created" => self.subagent_created(&serde_json::from_str(properties)?),
            "session.status" => self.status(&serde_json::from_str(properties)?, actions),
            "session.idle" => self.idle(&serde_json::from_str(properties)?, actions),
            "session.error" => self.error(serde_json::from_str(properties)?),
            "session.compacted" => self.compacted(&serde_json::from_str(properties)?, actions),
            "message.updated" => self.message(serde_json::from_str(properties)?, actions),
            "message.part.updated" => self.part(&serde_json::from_str(properties)?, actions)?,
            "message.part.delta" if !self.whole_messages => {
                let change: DeltaChange<'_> = serde_json::from_str(properties)?;
                actions.push(self.messages.delta(&change).map_or(Action::Alive, Action::Emit));
            }
            "message.part.delta" => actions.push(Action::Alive),
            "todo.updated" => self.todos(serde_json::from_str(properties)?, actions),
            "permission.asked" => self.permission(serde_json::from_str(properties)?, actions),
            "question.asked" => self.question(serde_json::from_str(properties)?, actions),
            "permission.replied" | "question.replied" | "question.rejected" => {
                self.requests.withdraw(&serde_json::from_str(properties)?, actions);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether this is the session of the run, and not that of a subagent.
    pub(super) fn is_main(&self, session: &str) -> bool {
        self.id().is_some_and(|id| id.as_str() == session)
    }

    /// Returns whether this is the session of the run or of one of its subagents.
    pub(super) fn is_known(&self, session: &str) -> bool {
        self.is_main(session) || self.subagents.contains(session)
    }

    fn subagent_created(&mut self, created: &SessionCreated) {
        if self.turn.is_some()
            && created.info.parent.as_deref().is_some_and(|parent| self.is_known(parent))
            && !self.subagents.contains(&created.info.id)
        {
            self.subagents.insert(created.info.id.clone(), None, 0);
        }
    }

    fn status(&mut self, change: &StatusChange<'_>, actions: &mut Actions) {
        if !self.is_known(&change.session) {
            return;
        }
        match change.status.kind.as_str() {
            "busy" => {
                actions.push(Action::Alive);
                if self.is_main(&change.session)
                    && let Some(turn) = &mut self.turn
                {
                    self.prompt_consumed = true;
                    turn.work = Work::Busy;
                    self.abort_if_requested(actions);
                }
            }
            "retry" => {
                actions.extend(self.messages.retract_newest(&change.session).map(Action::Emit));
                retrying(&change.status, actions);
            }
            _ => {}
        }
    }

    fn idle(&mut self, event: &SessionEvent<'_>, actions: &mut Actions) {
        if !self.is_main(&event.session) {
            return;
        }
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.has_started()) {
            turn.work = Work::Idle;
        }
        self.finish_if_over(actions);
    }

    fn error(&mut self, change: SessionError) {
        let is_main = change.session.is_none_or(|session| self.is_main(&session));
        if let (true, Some(error), Some(turn)) = (is_main, change.error, &mut self.turn) {
            turn.session_failed(error);
        }
    }

    fn compacted(&mut self, event: &SessionEvent<'_>, actions: &mut Actions) {
        if self.is_main(&event.session) && self.turn.is_some() {
            let text = "the agent compacted its conversation";
            actions.push(Action::Emit(Warning::new(WarningCode::Compacted, text).into()));
        }
    }

    fn todos(&self, change: TodoChange<'_>, actions: &mut Actions) {
        if self.is_main(&change.session) && self.turn.is_some() {
            let entry = |todo: Todo| PlanEntry::new(todo.content, PlanStatus::from(todo.status.as_str()));
            let entries = change.todos.into_iter().map(entry).collect();
            actions.push(Action::Emit(Event::Plan(Plan::new(entries))));
        }
    }
}

/// Emits that the agent waits and then calls the model again.
fn retrying(status: &Status, actions: &mut Actions) {
    let reason = status.message.as_deref().unwrap_or("a fault at the provider");
    let until =
        status.next.and_then(|next| OffsetDateTime::from_unix_timestamp_nanos(i128::from(next) * 1_000_000).ok());
    let lower = reason.to_lowercase();
    if let (Some(until), true) = (until, lower.contains("rate limit") || lower.contains("too many requests")) {
        actions.push(Action::Emit(rejected_until(until)));
    }
    let mut warning = Warning::new(WarningCode::Retrying, format!("the agent calls the model again: {reason}"));
    if let Some(attempt) = status.attempt {
        warning = warning.with("attempt", attempt);
    }
    actions.push(Action::Emit(warning.into()));
}
