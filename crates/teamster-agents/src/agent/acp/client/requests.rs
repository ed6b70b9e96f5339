//! What the agent asks of us: leave for a call, which is answered by the mode, by the caller, or by the turn's end.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Actions, Client, emit, warning};
use crate::agent::acp::dialog::{self, Asked, Reply};
use crate::agent::acp::wire::PermissionParams;
use crate::agent::rpc::METHOD_NOT_FOUND;
use crate::protocol::{Action, Taken};
use crate::rules::Verdict;
use teamster_types::event::{AnsweredBy, Event, PermissionAnswered, PermissionRequest, RequestId, WarningCode};
use teamster_types::request::{Answer, PermissionMode};
use teamster_types::text::UntrustedText;

const UNCHANGEABLE: &str = "the agent cannot call a tool with other arguments than its own";

/// A request that is answered.
pub(super) enum Request {
    /// It was put to the caller.
    Asked(RequestId),
    /// It was put to nobody, and is answered by this.
    Unasked(Box<PermissionRequest>, AnsweredBy),
}

impl Client {
    pub(super) fn asked(&mut self, id: Value, method: &str, params: &RawValue, actions: &mut Actions) {
        if method != "session/request_permission" {
            let text = format!("Teamster does not serve {method}");
            actions.push(Action::Write(self.caller.refuse(&id, METHOD_NOT_FOUND, &text)));
            return actions.push(Action::Alive);
        }
        let params: PermissionParams = serde_json::from_str(params.get()).unwrap_or_default();
        let PermissionParams { options, tool_call } = params;
        let call = tool_call.tool_call_id.clone();
        let asked = Asked::new(id, call.clone(), options);
        let turn = self.turn.as_ref().filter(|turn| turn.prompt.is_none() && !turn.interrupted);
        let Some(mode) = turn.map(|turn| turn.mode) else {
            return self.reply(&asked, &dialog::cancelled(), "interrupted", actions);
        };
        let kind = tool_call.kind.clone();
        let mut events = Vec::new();
        self.speech.pause(&mut events);
        let tool = self.calls.ask(tool_call, &*self.dialect, &mut events);
        emit(events, actions);
        let Some(tool) = tool else { return self.reply(&asked, &dialog::cancelled(), "interrupted", actions) };
        let other = tool.other_name.clone();
        let request_id = self.dialog.next_id();
        let request = Box::new(PermissionRequest {
            tool_id: Some(call.as_str().into()),
            kind: Some(tool.kind.clone()),
            server: tool.server.clone().map(Into::into),
            options: asked.options(),
            ..PermissionRequest::new(request_id.clone(), tool.rule_name(), tool.input)
        });
        if let Some((answer, by)) = self.unasked(mode, &kind.unwrap_or_default(), (&request, other.as_deref()), &asked)
        {
            return self.reply_with(Request::Unasked(request, by), &asked, &answer, actions);
        }
        self.dialog.wait(request_id, asked);
        actions.push(Action::Emit(Event::PermissionRequest(request)));
    }

    /// Returns the answer that is given without asking anybody, and by what it is given. A request may have a second tool name
    /// that rules are matched with.
    fn unasked(
        &self,
        mode: PermissionMode,
        kind: &str,
        (request, other): (&PermissionRequest, Option<&str>),
        asked: &Asked,
    ) -> Option<(Answer, AnsweredBy)> {
        let (tool, server) = (&request.tool_name, request.server.as_deref());
        let verdict = self.rules.verdict_on(mode, tool, server, &request.input, &*self.files);
        let other = other.and_then(|name| self.rules.verdict_on(mode, name, server, &request.input, &*self.files));
        let verdict = other.filter(|verdict| *verdict != Verdict::Allow).or(verdict);
        let undecided = match verdict {
            Some(Verdict::Ask { why }) => Some(why),
            Some(verdict) if verdict != Verdict::Allow => {
                return Some((verdict.answer().unwrap_or(Answer::Deny { message: None }), AnsweredBy::Rule));
            }
            _ => None,
        };
        // A mode cannot allow what the rules may deny.
        let by_mode = dialog::by_mode(mode, kind)
            .filter(|answer| undecided.is_none() || !matches!(answer, Answer::Allow { .. } | Answer::AllowAlways));
        match by_mode {
            // Everything is allowed: more than this once, too, where there is no other way.
            Some(answer @ Answer::Allow { .. })
                if mode == PermissionMode::Full && !self.reply_to(asked, &answer).allows =>
            {
                Some((Answer::AllowAlways, AnsweredBy::Mode))
            }
            Some(answer) => Some((answer, AnsweredBy::Mode)),
            None if !self.is_session => {
                let why = undecided.into_iter().chain(["This run cannot ask for permission.".to_owned()]);
                let message = Some(why.collect::<Vec<_>>().join(" "));
                Some((Answer::Deny { message }, AnsweredBy::Unattended))
            }
            None => None,
        }
    }

    pub(super) fn reply_with(&mut self, request: Request, asked: &Asked, answer: &Answer, actions: &mut Actions) {
        let reply = self.reply_to(asked, answer);
        let option_id = reply.option.as_ref().map(|option| option.option_id.clone());
        let changes = matches!(answer, Answer::Allow { input: Some(_) });
        let message = match answer {
            Answer::Deny { message } => message.as_deref(),
            _ => changes.then_some(UNCHANGEABLE),
        };
        let (decision, message) = (reply.decision(), message.map(UntrustedText::from));
        actions.push(match request {
            Request::Asked(request) => {
                Action::Answered(Box::new(Taken { request, decision, option_id, message: message.clone() }))
            }
            Request::Unasked(request, by) => {
                let mut answered = PermissionAnswered::unasked(request, decision, by);
                (answered.option_id, answered.message) = (option_id, message.clone());
                Action::Emit(answered.into())
            }
        });
        if changes {
            actions.push(warning(WarningCode::OptionIgnored, format!("{UNCHANGEABLE}: the call was denied")));
        }
        let why = match answer {
            Answer::Deny { message: Some(message) } => message,
            _ => "The user said no.",
        };
        self.reply(asked, &reply, why, actions);
    }

    fn reply_to(&self, asked: &Asked, answer: &Answer) -> Reply {
        asked.reply(answer, |option| self.dialect.rank(option))
    }

    /// Answers a request of the agent. After a denial nothing may ever come of the call, so its end is told here.
    pub(super) fn reply(&mut self, asked: &Asked, reply: &Reply, why: &str, actions: &mut Actions) {
        actions.push(Action::Write(self.caller.answer(&asked.id, &reply.result)));
        if !reply.allows && self.turn.is_some() {
            let mut events = Vec::new();
            self.calls.deny(&asked.call, why, &*self.dialect, &mut events);
            emit(events, actions);
        }
    }

    /// Whoever waits for leave has waited long enough.
    pub(super) fn cancel_requests(&mut self, actions: &mut Actions) {
        for (id, asked) in self.dialog.take_all() {
            if let Some(turn) = &mut self.turn {
                turn.refused |= turn.interrupted;
            }
            actions.push(Action::Withdraw(id));
            self.reply(&asked, &dialog::cancelled(), "interrupted", actions);
        }
    }
}
