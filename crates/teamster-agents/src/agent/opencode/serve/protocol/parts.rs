//! Messages and their parts: text, tool calls, and the ends of model calls.
//!
//! Invariants: a tool call is emitted once, when its arguments are complete. Its result is emitted once, after it.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::permissions::STRUCTURED_OUTPUT;
use super::super::super::tools::{self, Call};
use super::super::super::wire::{FinishPart, ToolPart};
use super::super::tool_calls::ToolCall;
use super::super::turn::emit_once;
use super::super::wire::{MessageChange, PartChange, PartHead, TextPart};
use super::{Actions, ServeProtocol};
use crate::bounded::{self, EmittedText};
use crate::protocol::Action;
use teamster_types::event::{Delta, Event, ToolId, ToolOutput};

impl ServeProtocol {
    /// Handles a message that started, changed or is complete.
    pub(super) fn message(&mut self, change: MessageChange, actions: &mut Actions) {
        let MessageChange { session, info } = change;
        let is_past = self.newest_past_message.as_ref().is_some_and(|newest| info.id <= *newest);
        let is_main = self.is_main(&session);
        self.prompt_consumed |= !is_past && is_main;
        if let (true, "user", Some(turn)) = (is_main, info.role.as_str(), &mut self.turn) {
            turn.steers.message_started(&info.id);
        }
        if info.role != "assistant" || is_past || !self.is_known(&session) {
            return;
        }
        let Some(turn) = &mut self.turn else { return };
        actions.push(Action::Alive);
        if let (true, Some(prompt)) = (is_main, &info.parent) {
            turn.steers.answered(prompt);
        }
        let parent = self.subagents.get(&session).cloned().flatten();
        let is_summary = info.summary == Some(Value::Bool(true));
        self.messages.open(&info.id, &session, parent, is_summary);
        if info.time.completed.is_none() && info.error.is_none() {
            return;
        }
        self.messages.close(&info.id);
        if is_main {
            turn.message_completed(info);
        }
    }

    /// Handles a part that started, changed or is complete.
    pub(super) fn part(&mut self, change: &PartChange<'_>, actions: &mut Actions) -> serde_json::Result<()> {
        let head: PartHead<'_> = serde_json::from_str(change.part.get())?;
        if self.is_main(&change.session) && &*head.kind == "text" && !self.messages.contains(&head.message) {
            self.user_text(&head, change.part, actions)?;
        }
        // Parts of user messages and of earlier turns are ignored. After an abort, a tool's result may follow its complete message.
        if !self.is_known(&change.session) || !(self.messages.contains(&head.message) || &*head.kind == "tool") {
            return Ok(());
        }
        match &*head.kind {
            "text" => self.model_text(&head, change.part, Event::Text, actions)?,
            "reasoning" => self.model_text(&head, change.part, Event::Thinking, actions)?,
            "tool" => self.tool(&change.session, &head, change.part, actions)?,
            "step-finish" => self.step(&change.session, &serde_json::from_str(change.part.get())?, actions),
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    /// Handles a text part of a user message. The agent adds parts of its own to such messages, which are ignored.
    fn user_text(&mut self, head: &PartHead<'_>, part: &RawValue, actions: &mut Actions) -> serde_json::Result<()> {
        let part: TextPart<'_> = serde_json::from_str(part.get())?;
        if !part.synthetic && !part.ignored {
            self.user_message_recorded(&head.message, actions);
        }
        Ok(())
    }

    fn model_text(
        &mut self,
        head: &PartHead<'_>,
        part: &RawValue,
        event: fn(Delta) -> Event,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let part: TextPart<'_> = serde_json::from_str(part.get())?;
        let event = self.messages.part(&head.id, &head.message, event, &part, self.whole_messages);
        actions.push(event.map_or(Action::Alive, Action::Emit));
        Ok(())
    }

    fn tool(
        &mut self,
        session: &str,
        head: &PartHead<'_>,
        part: &RawValue,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let Some(turn) = &self.turn else { return Ok(()) };
        actions.push(Action::Alive);
        let is_over = matches!(head.state.status.as_str(), "completed" | "error");
        let is_relevant = is_over || head.state.metadata.session.is_some() || !turn.emitted_calls.contains(&*head.id);
        if turn.emitted_results.contains(&*head.id) || !is_relevant {
            self.running_output(session, head, actions);
            return Ok(());
        }
        let part: ToolPart = serde_json::from_str(part.get())?;
        if part.tool == STRUCTURED_OUTPUT {
            return Ok(());
        }
        let provider_id = part.call_id.clone().filter(|id| !id.is_empty());
        let call = tools::call(part, &self.servers.names);
        let id = self.track(head, provider_id.clone(), &call);
        if head.state.status == "pending" {
            return Ok(());
        }
        self.emit_call(session, head, call, id, is_over, actions);
        self.running_output(session, head, actions);
        if let Some(provider_id) = provider_id {
            self.emit_held(Some(&provider_id), actions);
        }
        Ok(())
    }

    /// Records a tool call in progress, and the subagent that it started. Returns the call's id in our events.
    fn track(&mut self, head: &PartHead<'_>, provider_id: Option<String>, call: &Call) -> ToolId {
        let known = self.tools.get(&*head.id).map(|tracked| tracked.id.clone());
        let id = known.unwrap_or_else(|| {
            // The id of a call is the provider's. Calls of two messages may have the same id.
            let id = &call.tool.tool_id;
            let is_new = self.turn.as_mut().is_some_and(|turn| turn.call_ids.add(id.as_str().to_owned()));
            if is_new { id.clone() } else { ToolId::from(&*head.id) }
        });
        let name = match &call.tool.server {
            Some(server) => format!("mcp__{}__{}", server.as_str(), call.tool.tool_name.as_str()),
            None => call.tool.tool_name.clone().into_string(),
        };
        let input = (head.state.status != "pending").then(|| call.tool.input.clone());
        let bytes = input.as_ref().map_or(0, |input| input.as_str().len()) + name.len();
        let (server, kind) = (call.tool.server.clone(), call.tool.kind.clone());
        let output = EmittedText::default();
        let tracked = ToolCall { provider_id, name, server, kind, id: id.clone(), input, output };
        self.tools.insert(head.id.to_string(), tracked, bytes);
        if let Some(subagent) = &head.state.metadata.session {
            self.subagents.insert(subagent.clone(), Some(id.clone()), id.as_str().len());
        }
        id
    }

    /// Emits a tool call, and its result if the call is over.
    fn emit_call(
        &mut self,
        session: &str,
        head: &PartHead<'_>,
        mut call: Call,
        id: ToolId,
        is_over: bool,
        actions: &mut Actions,
    ) {
        let Some(turn) = &mut self.turn else { return };
        let parent = self.subagents.get(session).cloned().flatten();
        (call.tool.tool_id, call.result.tool_id) = (id.clone(), id.clone());
        (call.tool.parent_tool_id, call.result.parent_tool_id) = (parent.clone(), parent);
        actions.extend(emit_once(&mut turn.emitted_calls, &head.id, Event::ToolUse(Box::new(call.tool))));
        if is_over {
            let denial = call.denial.map(|mut denial| {
                denial.tool_id = Some(id);
                denial
            });
            bounded::push_denials(&mut turn.totals.denials, denial);
            actions.extend(emit_once(&mut turn.emitted_results, &head.id, Event::ToolResult(Box::new(call.result))));
            self.tools.remove(&*head.id);
        }
    }

    /// Emits the new part of a running command's output. Once the server has cut the start of the output, nothing is emitted.
    fn running_output(&mut self, session: &str, head: &PartHead<'_>, actions: &mut Actions) {
        let Some(call) = self.tools.get_mut(&*head.id).filter(|_| head.state.status == "running") else { return };
        let new = call.output.rest(&head.state.metadata.output);
        if !new.is_empty() {
            call.output.push(new);
            let output = ToolOutput::new(call.id.clone(), new);
            let parent = self.subagents.get(session).cloned().flatten();
            actions.push(Action::Emit(Event::ToolOutput(output.with_parent(parent))));
        }
    }

    /// Handles the end of a model call.
    fn step(&mut self, session: &str, part: &FinishPart<'_>, actions: &mut Actions) {
        let is_main = self.is_main(session);
        let Some(turn) = &mut self.turn else { return };
        actions.push(Action::Alive);
        let usage = if is_main { turn.totals.add_step(part) } else { turn.totals.add_subagent_step(part) };
        actions.extend(usage.map(Action::Emit));
        let reason = part.reason.as_deref().unwrap_or("unknown").to_owned();
        if is_main {
            self.step_finished(&reason, actions);
        }
    }
}
