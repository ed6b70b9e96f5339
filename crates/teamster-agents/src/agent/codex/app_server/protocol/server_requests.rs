//! Requests of the app-server: a session's caller answers them, and a run denies them.

use serde_json::{Value, json};

use super::super::approvals::{RequestContent, ServerRequest, Tool};
use super::super::turn::{Stage, Turn};
use super::super::wire::ResolvedLine;
use super::{Actions, AppServer, Call, ThreadState};
use crate::agent::mcp::Names;
use crate::agent::permission;
use crate::agent::rpc::METHOD_NOT_FOUND;
use crate::protocol::{Action, AppliedAnswer, ProcessAction, SessionAction};
use teamster_types::event::{AnsweredBy, PermissionDecision, RequestId, SteerId, Warning, WarningCode};
use teamster_types::request::{Answer, Attachment, Prompt};

impl AppServer {
    pub(super) fn server_request(&mut self, id: Value, method: &str, params: &str, actions: &mut Actions) {
        let Some(mut request) = ServerRequest::read(method, params) else {
            let line = self.caller.refuse(&id, METHOD_NOT_FOUND, &format!("{method} is not supported"));
            return actions.push(Action::Process(ProcessAction::Write(line)));
        };
        let turn = self.turn.as_mut().filter(|turn| self.is_session && matches!(turn.stage, Stage::Running(_)));
        let Some((turn, turn_id)) = turn.and_then(|turn| turn.id().map(str::to_owned).map(|id| (turn, id))) else {
            // No caller can answer, so the request is denied.
            let response = request.response(&Answer::Deny { message: None });
            let event = request.event(RequestId::from(id.to_string()), &self.servers.names);
            let (decision, by) = (PermissionDecision::Deny, AnsweredBy::Unattended);
            actions.extend(permission::automatic_answer(event, decision, by, "No caller can answer requests now."));
            actions.push(Action::Process(ProcessAction::Write(self.caller.answer(&id, &response))));
            return actions.push(Action::Alive);
        };
        // Each process numbers its requests from zero. With the turn's id, a late answer never matches another request.
        let request_id = RequestId::from(format!("{turn_id}/{id}"));
        add_call_details(&mut request, turn, &self.servers.names);
        actions.push(Action::Emit(request.event(request_id.clone(), &self.servers.names)));
        self.pending.insert(request_id, id, request);
    }

    pub(super) fn answer(&mut self, request: &RequestId, answer: &Answer, actions: &mut Actions) {
        let Some((id, pending)) = self.pending.take(request) else { return };
        if pending.is_changed_by(answer) {
            let text = "the call was denied, because its arguments cannot be changed";
            let (request, decision) = (request.clone(), PermissionDecision::Deny);
            let taken =
                AppliedAnswer { request: request.clone(), decision, option_id: None, message: Some(text.into()) };
            actions.push(Action::Session(SessionAction::Answered(Box::new(taken))));
            let warning = Warning::new(WarningCode::OptionIgnored, text).with("requestId", request.as_str());
            actions.push(Action::Emit(warning.into()));
        }
        actions.push(Action::Process(ProcessAction::Write(self.caller.answer(&id, &pending.response(answer)))));
        // A denial has no field for a reason, so the reason is sent to the model within its turn.
        if let Answer::Deny { message: Some(message) } = answer {
            self.send_within_turn(None, message, &[], actions);
        }
    }

    /// Sends the caller's steering prompt within the turn.
    pub(super) fn steer(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        if self.send_within_turn(Some(id.clone()), &prompt.text, &prompt.attachments, actions) {
            return self.steering.push(id.clone());
        }
        // The session sends it as a turn of its own, which reports an invalid prompt.
        actions.push(Action::Session(SessionAction::Steered { id: id.clone(), accepted: false }));
    }

    /// Sends input within the turn. Returns whether it was written.
    fn send_within_turn(
        &mut self,
        id: Option<SteerId>,
        text: &str,
        attachments: &[Attachment],
        actions: &mut Actions,
    ) -> bool {
        let turn = self.turn.as_ref().filter(|turn| turn.has_started && !turn.is_stopping);
        let (ThreadState::Open(thread), Some(turn)) = (&self.thread_state, turn.and_then(Turn::id)) else {
            return false;
        };
        let Ok(input) = self.prompts.input(text, attachments) else { return false };
        let params = json!({ "threadId": thread.id, "expectedTurnId": turn, "input": input });
        self.call(Call::Steer(id), "turn/steer", &params, actions);
        true
    }

    /// Handles the response to `turn/steer`. If it was accepted, the turn does not end before the model has read the input.
    pub(super) fn steered(&mut self, id: Option<&SteerId>, accepted: bool, actions: &mut Actions) {
        let at = self.steering.iter().position(|waiting| Some(waiting) == id);
        if let Some(at) = at {
            actions.push(Action::Session(SessionAction::Steered { id: self.steering.remove(at), accepted }));
        }
    }

    pub(super) fn resolved(&mut self, line: &ResolvedLine, actions: &mut Actions) {
        let request = self.pending.resolved(&line.request_id);
        actions.push(request.map_or(Action::Alive, |value| Action::Session(SessionAction::Withdraw(value))));
    }

    /// Withdraws all pending requests, because the turn has ended.
    pub(super) fn withdraw_all(&mut self, actions: &mut Actions) {
        actions.extend(self.pending.clear().map(|value| Action::Session(SessionAction::Withdraw(value))));
    }
}

/// Adds details that the call reported: the changes of a patch, or the id of an MCP tool call.
fn add_call_details(request: &mut ServerRequest, turn: &mut Turn, names: &Names) {
    let RequestContent::Permission { tool, tool_id, input } = &mut request.content else { return };
    if let Tool::Mcp { server, tool } = tool {
        *tool_id = turn.mcp_call(names.given(server), tool, input);
    }
    let Some((call, diffs)) = tool_id.as_deref().and_then(|id| turn.call_of(id)) else { return };
    let (arguments, diff) = (call.input.to_value(), diffs.concat());
    if let Ok(Value::Object(arguments)) = arguments {
        for (name, value) in arguments {
            request.add(&name, value);
        }
    }
    if !diff.is_empty() {
        request.add("diff", diff.into());
    }
}
