//! What each event of the server means, in order.
//!
//! Invariants: only the session and its subagents are heard; a tool's call is told once, when its arguments are whole, and its
//! result once, after it.

use serde_json::value::RawValue;
use time::OffsetDateTime;

use super::super::permissions::STRUCTURED;
use super::super::tools;
use super::super::wire::{FinishPart, ToolPart};
use super::dialog::{decline, refuse, refuse_excess};
use super::stream::{Actions, Called, Stream};
use super::turn::{Turn, Work, once};
use super::wire::{
    Asked, Created, DeltaChange, MessageChange, Notice, OfSession, PartChange, PartHead, Permission, SessionError,
    SpokenPart, Status, StatusChange, TodoChange,
};
use crate::agent::limit::rejected_until;
use crate::bounded;
use crate::protocol::Action;
use teamster_types::event::{Event, Plan, PlanEntry, PlanStatus, ToolId, Warning, WarningCode};

impl Stream {
    pub(super) fn event(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        let notice: Notice<'_> = serde_json::from_str(text)?;
        let properties = notice.properties.map_or("{}", RawValue::get);
        match &*notice.kind {
            "server.connected" => self.listens(actions),
            // It beats every ten seconds, whatever the agent does.
            "server.heartbeat" => self.ask_held(None, actions),
            "session.created" => self.created(&serde_json::from_str(properties)?),
            "session.status" => self.status(&serde_json::from_str(properties)?, actions),
            "session.idle" => self.idle(&serde_json::from_str(properties)?, actions),
            "session.error" => self.error(serde_json::from_str(properties)?),
            "session.compacted" => self.compacted(&serde_json::from_str(properties)?, actions),
            "message.updated" => self.message(serde_json::from_str(properties)?, actions),
            "message.part.updated" => self.part(&serde_json::from_str(properties)?, actions)?,
            "message.part.delta" if !self.whole => {
                let change: DeltaChange<'_> = serde_json::from_str(properties)?;
                actions.push(self.voices.delta(&change).map_or(Action::Alive, Action::Emit));
            }
            "message.part.delta" => actions.push(Action::Alive),
            "todo.updated" => self.todos(serde_json::from_str(properties)?, actions),
            "permission.asked" => self.permission(serde_json::from_str(properties)?, actions),
            "question.asked" => self.question(serde_json::from_str(properties)?, actions),
            "permission.replied" | "question.replied" | "question.rejected" => {
                self.dialog.withdraw(&serde_json::from_str(properties)?, actions);
            }
            _ => {}
        }
        Ok(())
    }

    fn is_ours(&self, session: &str) -> bool {
        self.id().is_some_and(|id| id.as_str() == session)
    }

    /// Whether a session is ours or a subagent's.
    fn knows(&self, session: &str) -> bool {
        self.is_ours(session) || self.children.contains(session)
    }

    fn created(&mut self, created: &Created) {
        if self.turn.is_some()
            && created.info.parent.as_deref().is_some_and(|parent| self.knows(parent))
            && !self.children.contains(&created.info.id)
        {
            self.children.insert(created.info.id.clone(), None, 0);
        }
    }

    fn status(&mut self, change: &StatusChange<'_>, actions: &mut Actions) {
        if !self.knows(&change.session) {
            return;
        }
        match change.status.kind.as_str() {
            "busy" => {
                actions.push(Action::Alive);
                if self.is_ours(&change.session)
                    && let Some(turn) = &mut self.turn
                {
                    self.taken = true;
                    turn.work = Work::Busy;
                    self.abort_if_wanted(actions);
                }
            }
            "retry" => {
                actions.extend(self.voices.void(&change.session).map(Action::Emit));
                retrying(&change.status, actions);
            }
            _ => {}
        }
    }

    fn idle(&mut self, of: &OfSession<'_>, actions: &mut Actions) {
        if !self.is_ours(&of.session) {
            return;
        }
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.has_begun()) {
            turn.work = Work::Idle;
        }
        self.settled(actions);
    }

    /// The session is idle: its turn is over, if nothing of it is open.
    pub(super) fn settled(&mut self, actions: &mut Actions) {
        let is_over = self.turn.as_ref().is_some_and(Turn::is_over);
        let is_open = self.id().is_some_and(|id| self.voices.is_open(id.as_str()));
        if is_over && !is_open {
            self.finish(actions);
        }
    }

    fn error(&mut self, change: SessionError) {
        let ours = change.session.is_none_or(|session| self.is_ours(&session));
        if let (true, Some(error), Some(turn)) = (ours, change.error, &mut self.turn) {
            turn.fail(error);
        }
    }

    fn compacted(&mut self, of: &OfSession<'_>, actions: &mut Actions) {
        if self.is_ours(&of.session) && self.turn.is_some() {
            let text = "the agent shortened its conversation";
            actions.push(Action::Emit(Warning::new(WarningCode::Compacted, text).into()));
        }
    }

    /// A message begins, or is whole.
    fn message(&mut self, change: MessageChange, actions: &mut Actions) {
        let MessageChange { session, info } = change;
        let is_past = self.past.as_ref().is_some_and(|past| info.id <= *past);
        self.taken |= !is_past && self.is_ours(&session);
        if let (true, "user", Some(turn)) = (self.is_ours(&session), info.role.as_str(), &mut self.turn) {
            turn.steering.begin(&info.id);
        }
        if info.role != "assistant" || is_past || !self.knows(&session) {
            return;
        }
        let ours = self.is_ours(&session);
        let Some(turn) = &mut self.turn else { return };
        actions.push(Action::Alive);
        if let (true, Some(heard)) = (ours, &info.parent) {
            turn.steering.answer(heard);
        }
        let parent = self.children.get(&session).cloned().flatten();
        let is_summary = info.summary == Some(serde_json::Value::Bool(true));
        self.voices.open(&info.id, &session, parent, is_summary);
        if info.time.completed.is_none() && info.error.is_none() {
            return;
        }
        self.voices.close(&info.id);
        if ours {
            turn.settle(info);
        }
    }

    fn part(&mut self, change: &PartChange<'_>, actions: &mut Actions) -> serde_json::Result<()> {
        let head: PartHead<'_> = serde_json::from_str(change.part.get())?;
        if self.is_ours(&change.session) && &*head.kind == "text" && !self.voices.has(&head.message) {
            self.users_words(&head, change.part, actions)?;
        }
        // The user's, or one of an earlier turn; after an abort a tool's result may come when its message is whole.
        if !self.knows(&change.session) || !(self.voices.has(&head.message) || &*head.kind == "tool") {
            return Ok(());
        }
        match &*head.kind {
            "text" => self.spoken(&head, change.part, Event::Text, actions)?,
            "reasoning" => self.spoken(&head, change.part, Event::Thinking, actions)?,
            "tool" => self.tool(&change.session, &head, change.part, actions)?,
            "step-finish" => self.step(&change.session, &serde_json::from_str(change.part.get())?, actions),
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    /// The user's words, and not the agent's own in a message of the user's.
    fn users_words(&mut self, head: &PartHead<'_>, part: &RawValue, actions: &mut Actions) -> serde_json::Result<()> {
        let part: SpokenPart<'_> = serde_json::from_str(part.get())?;
        if !part.synthetic && !part.ignored {
            self.written_down(&head.message, actions);
        }
        Ok(())
    }

    fn spoken(
        &mut self,
        head: &PartHead<'_>,
        part: &RawValue,
        event: fn(teamster_types::event::Delta) -> Event,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let part: SpokenPart<'_> = serde_json::from_str(part.get())?;
        let told = self.voices.part(&head.id, &head.message, event, &part, self.whole);
        actions.push(told.map_or(Action::Alive, Action::Emit));
        Ok(())
    }

    fn tool(
        &mut self,
        session: &str,
        head: &PartHead<'_>,
        part: &RawValue,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        actions.push(Action::Alive);
        let is_over = matches!(head.state.status.as_str(), "completed" | "error");
        let is_known = turn.called.contains(&*head.id);
        if turn.finished.contains(&*head.id) || (is_known && !is_over && head.state.metadata.session.is_none()) {
            return Ok(());
        }
        let part: ToolPart = serde_json::from_str(part.get())?;
        if part.tool == STRUCTURED {
            return Ok(());
        }
        let call_id = part.call_id.clone().filter(|id| !id.is_empty());
        let mut call = tools::call(part, &self.health.names);
        // A call's id is the provider's: another message may have it too.
        let id = match self.tools.get(&*head.id) {
            Some(called) => called.id.clone(),
            None if turn.ids.add(call.tool.tool_id.as_str().to_owned()) => call.tool.tool_id.clone(),
            None => ToolId::from(&*head.id),
        };
        let is_pending = head.state.status == "pending";
        let name = match &call.tool.server {
            Some(server) => format!("mcp__{}__{}", server.as_str(), call.tool.tool_name.as_str()),
            None => call.tool.tool_name.clone().into_string(),
        };
        let input = (!is_pending).then(|| call.tool.input.clone());
        let bytes = input.as_ref().map_or(0, |input| input.as_str().len()) + name.len();
        let (server, kind) = (call.tool.server.clone(), call.tool.kind.clone());
        let called = Called { call: call_id.clone(), name, server, kind, id: id.clone(), input };
        self.tools.insert(head.id.to_string(), called, bytes);
        if let Some(child) = &head.state.metadata.session {
            self.children.insert(child.clone(), Some(id.clone()), id.as_str().len());
        }
        if is_pending {
            return Ok(());
        }
        let parent = self.children.get(session).cloned().flatten();
        (call.tool.tool_id, call.result.tool_id) = (id.clone(), id.clone());
        (call.tool.parent_tool_id, call.result.parent_tool_id) = (parent.clone(), parent);
        actions.extend(once(&mut turn.called, &head.id, Event::ToolUse(Box::new(call.tool))));
        if is_over {
            let denial = call.denial.map(|mut denial| {
                denial.tool_id = Some(id);
                denial
            });
            bounded::push_denials(&mut turn.tally.denials, denial);
            actions.extend(once(&mut turn.finished, &head.id, Event::ToolResult(Box::new(call.result))));
            self.tools.remove(&*head.id);
        }
        if let Some(call) = call_id {
            self.ask_held(Some(&call), actions);
        }
        Ok(())
    }

    fn step(&mut self, session: &str, part: &FinishPart<'_>, actions: &mut Actions) {
        let ours = self.is_ours(session);
        let Some(turn) = &mut self.turn else { return };
        actions.push(Action::Alive);
        let usage = if ours { turn.tally.step(part) } else { turn.tally.aside(part) };
        actions.extend(usage.map(Action::Emit));
        let reason = part.reason.as_deref().unwrap_or("unknown").to_owned();
        if ours {
            self.step_ended(&reason, actions);
        }
    }

    fn todos(&self, change: TodoChange<'_>, actions: &mut Actions) {
        if self.is_ours(&change.session) && self.turn.is_some() {
            let entry = |todo: super::wire::Todo| PlanEntry {
                content: todo.content.into(),
                status: PlanStatus::from(todo.status.as_str()),
            };
            let entries = change.todos.into_iter().map(entry).collect();
            actions.push(Action::Emit(Event::Plan(Plan { entries })));
        }
    }

    fn permission(&mut self, permission: Permission, actions: &mut Actions) {
        if !self.knows(&permission.session) {
            return;
        }
        if self.is_run() || self.turn.is_none() {
            let call = permission.tool.as_ref().map(|tool| tool.call.as_str());
            let called = self.tools.values().find(|called| call.is_some() && called.call.as_deref() == call);
            return actions.extend(refuse(permission, called, &mut self.calls).into_iter().flatten());
        }
        let call = permission.tool.as_ref().map(|tool| tool.call.clone());
        let is_known = |called: &Called| called.call == call && called.input.is_some();
        let waits = call.is_some() && !self.tools.values().any(is_known);
        for permission in self.dialog.hold(permission) {
            actions.extend(refuse_excess(permission, &mut self.calls).into_iter().flatten());
        }
        if !waits {
            self.ask_held(call.as_deref(), actions);
        }
    }

    /// Asks for what was held back, for one call or for any.
    fn ask_held(&mut self, call: Option<&str>, actions: &mut Actions) {
        for permission in self.dialog.held(call) {
            let wanted = permission.tool.as_ref().map(|tool| tool.call.as_str());
            let called = self.tools.values().find(|called| wanted.is_some() && called.call.as_deref() == wanted);
            let parent = self.children.get(&permission.session).cloned().flatten();
            actions.push(self.dialog.ask(permission, called, parent));
        }
    }

    fn question(&mut self, asked: Asked, actions: &mut Actions) {
        if !self.knows(&asked.session) {
            return;
        }
        if self.is_run() || self.turn.is_none() || asked.questions.is_empty() {
            return actions.extend(decline(&asked, &mut self.calls));
        }
        actions.push(self.dialog.question(asked));
    }
}

/// The agent waits, and asks the model again.
fn retrying(status: &Status, actions: &mut Actions) {
    let words = status.message.as_deref().unwrap_or("a fault at the provider");
    let until =
        status.next.and_then(|next| OffsetDateTime::from_unix_timestamp_nanos(i128::from(next) * 1_000_000).ok());
    let lower = words.to_lowercase();
    if let (Some(until), true) = (until, lower.contains("rate limit") || lower.contains("too many requests")) {
        actions.push(Action::Emit(rejected_until(until)));
    }
    let mut warning = Warning::new(WarningCode::Retrying, format!("the agent asks the model again: {words}"));
    if let Some(attempt) = status.attempt {
        warning = warning.with("attempt", attempt);
    }
    actions.push(Action::Emit(warning.into()));
}
