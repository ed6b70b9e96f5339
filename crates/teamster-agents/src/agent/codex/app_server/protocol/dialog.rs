//! Requests of the app-server: put to a session's caller, refused in a run.

use serde_json::{Value, json};

use super::super::approvals::{Asked, Tool, Words};
use super::super::turn::{Stage, Turn};
use super::super::wire::ResolvedLine;
use super::{Actions, AppServer, Call, Link};
use crate::agent::mcp::Names;
use crate::agent::permission;
use crate::agent::rpc::METHOD_NOT_FOUND;
use crate::protocol::{Action, Taken};
use teamster_types::event::{AnsweredBy, PermissionDecision, RequestId, SteerId, Warning, WarningCode};
use teamster_types::request::{Answer, Attachment, Prompt};

impl AppServer {
    pub(super) fn asked(&mut self, id: Value, method: &str, params: &str, actions: &mut Actions) {
        let Some(mut asked) = Asked::read(method, params) else {
            let line = self.caller.refuse(&id, METHOD_NOT_FOUND, &format!("{method} is not served here"));
            return actions.push(Action::Write(line));
        };
        let turn = self.turn.as_mut().filter(|turn| self.is_session && matches!(turn.stage, Stage::Running(_)));
        let Some((turn, turn_id)) = turn.and_then(|turn| turn.id().map(str::to_owned).map(|id| (turn, id))) else {
            // Nobody is there who could say more than no.
            let response = asked.response(&Answer::Deny { message: None });
            let request = asked.event(RequestId::from(id.to_string()), &self.servers.names);
            let (decision, by) = (PermissionDecision::Deny, AnsweredBy::Unattended);
            actions.extend(permission::automatic_answer(request, decision, by, "Nobody can be asked now."));
            actions.push(Action::Write(self.caller.answer(&id, &response)));
            return actions.push(Action::Alive);
        };
        // Ids begin anew with each process: an answer that comes late must not be taken for another request's.
        let request = RequestId::from(format!("{turn_id}/{id}"));
        complete(&mut asked, turn, &self.servers.names);
        actions.push(Action::Emit(asked.event(request.clone(), &self.servers.names)));
        self.dialog.wait(request, id, asked);
    }

    pub(super) fn answer(&mut self, request: &RequestId, answer: &Answer, actions: &mut Actions) {
        let Some((id, asked)) = self.dialog.take(request) else { return };
        if asked.is_changed_by(answer) {
            let text = "a call cannot be allowed with other arguments: it was denied";
            let (request, decision) = (request.clone(), PermissionDecision::Deny);
            let taken = Taken { request: request.clone(), decision, option_id: None, message: Some(text.into()) };
            actions.push(Action::Answered(Box::new(taken)));
            let warning = Warning::new(WarningCode::OptionIgnored, text).with("requestId", request.as_str());
            actions.push(Action::Emit(warning.into()));
        }
        actions.push(Action::Write(self.caller.answer(&id, &asked.response(answer))));
        // A refusal has no words of its own: they are said to the model, amid its turn.
        if let Answer::Deny { message: Some(message) } = answer {
            self.say(None, message, &[], actions);
        }
    }

    /// The caller says more within the turn.
    pub(super) fn steer(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        if self.say(Some(id.clone()), &prompt.text, &prompt.attachments, actions) {
            return self.steering.push(id.clone());
        }
        // As a turn of its own it can say what is wrong.
        actions.push(Action::Steered { id: id.clone(), heard: false });
    }

    /// Says something within the turn; tells whether that could be tried.
    fn say(&mut self, id: Option<SteerId>, text: &str, attachments: &[Attachment], actions: &mut Actions) -> bool {
        let turn = self.turn.as_ref().filter(|turn| turn.has_started && !turn.is_stopping);
        let (Link::Open(thread), Some(turn)) = (&self.link, turn.and_then(Turn::id)) else { return false };
        let Ok(input) = self.speech.input(text, attachments) else { return false };
        let params = json!({ "threadId": thread.id, "expectedTurnId": turn, "input": input });
        self.call(Call::Steer(id), "turn/steer", &params, actions);
        true
    }

    /// What was said is the turn's, which does not end before the model has heard it; or it came too late.
    pub(super) fn steered(&mut self, id: Option<&SteerId>, heard: bool, actions: &mut Actions) {
        let at = self.steering.iter().position(|waiting| Some(waiting) == id);
        if let Some(at) = at {
            actions.push(Action::Steered { id: self.steering.remove(at), heard });
        }
    }

    pub(super) fn resolved(&mut self, line: &ResolvedLine, actions: &mut Actions) {
        let request = self.dialog.resolved(&line.request_id);
        actions.push(request.map_or(Action::Alive, Action::Withdraw));
    }

    /// The turn is over: nothing waits any more.
    pub(super) fn withdraw_all(&mut self, actions: &mut Actions) {
        actions.extend(self.dialog.clear().map(Action::Withdraw));
    }
}

/// Adds what the call itself has told: the changes of a patch, the id of an MCP tool's call.
fn complete(asked: &mut Asked, turn: &mut Turn, names: &Names) {
    let Words::Permission { tool, tool_id, input } = &mut asked.words else { return };
    if let Tool::Mcp { server, tool } = tool {
        *tool_id = turn.mcp_call(names.given(server), tool, input);
    }
    let Some((call, diffs)) = tool_id.as_deref().and_then(|id| turn.call_of(id)) else { return };
    let (arguments, diff) = (call.input.to_value(), diffs.concat());
    if let Ok(Value::Object(arguments)) = arguments {
        for (name, value) in arguments {
            asked.add(&name, value);
        }
    }
    if !diff.is_empty() {
        asked.add("diff", diff.into());
    }
}
