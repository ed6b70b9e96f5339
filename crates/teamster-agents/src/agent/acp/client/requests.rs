//! Permission requests of the agent. The rules, the mode or the caller answers them, or the end of the turn cancels them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Actions, Client, RequestSource, emit, warning};
use crate::agent::acp::permissions::{self, Pending, Reply};
use crate::agent::acp::questions::Question;
use crate::agent::acp::wire::{ElicitationParams, PermissionParams};
use crate::agent::rpc::METHOD_NOT_FOUND;
use crate::protocol::{Action, AppliedAnswer, ProcessAction, SessionAction};
use crate::rules::Verdict;
use teamster_types::event::{
    self, AnsweredBy, Event, PermissionAnswered, PermissionDecision, PermissionRequest, RequestId, WarningCode,
};
use teamster_types::request::{Answer, PermissionMode};
use teamster_types::text::UntrustedText;

const UNCHANGEABLE: &str = "the agent does not support changing the arguments of a call";

impl Client {
    pub(super) fn request(&mut self, id: Value, method: &str, params: &RawValue, actions: &mut Actions) {
        if method == "elicitation/create" {
            return self.elicitation(&id, params, actions);
        }
        if method != "session/request_permission" {
            let text = format!("Teamster does not support {method}");
            actions.push(Action::Process(ProcessAction::Write(self.caller.refuse(&id, METHOD_NOT_FOUND, &text))));
            return actions.push(Action::Alive);
        }
        let params: PermissionParams = serde_json::from_str(params.get()).unwrap_or_default();
        let PermissionParams { options, tool_call } = params;
        let call = tool_call.tool_call_id.clone();
        let pending = Pending::new(id, call.clone(), options);
        let turn = self.turn.as_ref().filter(|turn| turn.is_working() && !turn.is_interrupted);
        let Some(mode) = turn.map(|turn| turn.mode) else {
            return self.reply(&pending, &permissions::cancelled(), "interrupted", actions);
        };
        let kind = tool_call.kind.clone();
        self.asked(&call, actions);
        let mut events = Vec::new();
        self.messages.end_message(&mut events);
        let tool = self.calls.request(tool_call, &*self.dialect, &mut events);
        emit(events, actions);
        let Some(tool) = tool else {
            return self.reply(&pending, &permissions::cancelled(), "interrupted", actions);
        };
        let other = tool.other_name.clone();
        let request_id = self.pending.next_id();
        let mut request = Box::new(PermissionRequest::new(request_id.clone(), tool.rule_name(), tool.input));
        request.tool_id = Some(call.as_str().into());
        request.kind = Some(tool.kind);
        request.server = tool.server.map(Into::into);
        request.options = pending.options();
        let kind = kind.unwrap_or_default();
        if let Some((answer, by)) = self.automatic_answer(mode, &kind, (&request, other.as_deref()), &pending) {
            return self.reply_with(RequestSource::Automatic(request, by), &pending, &answer, actions);
        }
        self.pending.insert(request_id, pending);
        actions.push(Action::Emit(Event::PermissionRequest(request)));
    }

    /// Passes a question of the agent to the caller of a session. Any other one is declined.
    fn elicitation(&mut self, id: &Value, params: &RawValue, actions: &mut Actions) {
        let params: ElicitationParams = serde_json::from_str(params.get()).unwrap_or_default();
        let can_answer =
            self.is_session && self.turn.as_ref().is_some_and(|turn| turn.is_working() && !turn.is_interrupted);
        let Some(question) = Question::read(id.clone(), &params).filter(|_| can_answer) else {
            actions.push(Action::Process(ProcessAction::Write(self.caller.answer(id, &Question::declined()))));
            let what = params.message.unwrap_or_default();
            let text = format!("a question of the agent was declined, because no caller can answer it here: {what}");
            return actions.push(warning(WarningCode::Notice, text));
        };
        let mut events = Vec::new();
        self.messages.end_message(&mut events);
        let request_id = self.pending.next_id();
        events.push(Event::Question(Box::new(event::Question::new(request_id.clone(), question.items()))));
        self.pending.insert_question(request_id, question);
        emit(events, actions);
    }

    /// Sends the caller's answer to a question. Returns whether there was one.
    pub(super) fn answer_question(&mut self, request: &RequestId, answer: &Answer, actions: &mut Actions) -> bool {
        let Some(question) = self.pending.take_question(request) else { return false };
        let line = self.caller.answer(&question.id, &question.reply(answer));
        actions.push(Action::Process(ProcessAction::Write(line)));
        true
    }

    /// Returns the answer that needs no caller, and what gave it. Rules are matched with both tool names of a request.
    fn automatic_answer(
        &self,
        mode: PermissionMode,
        kind: &str,
        (request, other): (&PermissionRequest, Option<&str>),
        pending: &Pending,
    ) -> Option<(Answer, AnsweredBy)> {
        let (tool, server) = (&request.tool_name, request.server.as_deref());
        let verdict = self.rules.verdict_on(mode, tool, server, &request.input, &*self.paths);
        let other = other.and_then(|name| self.rules.verdict_on(mode, name, server, &request.input, &*self.paths));
        let verdict = other.filter(|verdict| *verdict != Verdict::Allow).or(verdict);
        let undecided = match verdict {
            Some(Verdict::Ask { why }) => Some(why),
            Some(verdict) if verdict != Verdict::Allow => {
                return Some((verdict.answer().unwrap_or(Answer::Deny { message: None }), AnsweredBy::Rule));
            }
            _ => None,
        };
        // A mode cannot permit a call that a deny rule may match.
        let by_mode = permissions::by_mode(mode, kind)
            .filter(|answer| undecided.is_none() || !matches!(answer, Answer::Allow { .. } | Answer::AllowAlways));
        match by_mode {
            // If the only option that permits the call is for the whole session, mode `full` selects it.
            Some(answer @ Answer::Allow { .. })
                if mode == PermissionMode::Full && !self.reply_to(pending, &answer).allows =>
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

    /// Sends the response for an answer, and reports the decision.
    pub(super) fn reply_with(
        &mut self,
        source: RequestSource,
        pending: &Pending,
        answer: &Answer,
        actions: &mut Actions,
    ) {
        let reply = self.reply_to(pending, answer);
        let option_id = reply.option.as_ref().map(|option| option.option_id.clone());
        let changes = matches!(answer, Answer::Allow { input: Some(_) });
        let message = match answer {
            Answer::Deny { message } => message.as_deref(),
            _ => changes.then_some(UNCHANGEABLE),
        };
        if reply.allows {
            let decision = reply.decision();
            self.calls.allow(&pending.call, decision == PermissionDecision::AllowAlways);
        }
        let (decision, message) = (reply.decision(), message.map(UntrustedText::from));
        actions.push(match source {
            RequestSource::Caller(request) => Action::Session(SessionAction::Answered(Box::new(AppliedAnswer {
                request,
                decision,
                option_id,
                message: message.clone(),
            }))),
            RequestSource::Automatic(request, by) => {
                let mut answered = PermissionAnswered::automatic(request, decision, by);
                (answered.option_id, answered.message) = (option_id, message.clone());
                Action::Emit(answered.into())
            }
        });
        if changes {
            actions.push(warning(WarningCode::OptionIgnored, format!("{UNCHANGEABLE}; the call was denied")));
        }
        let why = match answer {
            Answer::Deny { message: Some(message) } => message,
            _ => "The user denied the call.",
        };
        self.reply(pending, &reply, why, actions);
    }

    fn reply_to(&self, pending: &Pending, answer: &Answer) -> Reply {
        pending.reply(answer, |option| self.dialect.option_rank(option))
    }

    /// Sends the response to a request. The agent may not report the end of a denied call, so its result is emitted here.
    pub(super) fn reply(&mut self, pending: &Pending, reply: &Reply, why: &str, actions: &mut Actions) {
        actions.push(Action::Process(ProcessAction::Write(self.caller.answer(&pending.id, &reply.result))));
        if !reply.allows && self.turn.is_some() {
            let mut events = Vec::new();
            self.calls.deny(&pending.call, why, &*self.dialect, &mut events);
            emit(events, actions);
        }
    }

    /// Cancels all pending requests.
    pub(super) fn cancel_requests(&mut self, actions: &mut Actions) {
        for (id, question) in self.pending.take_questions() {
            if let Some(turn) = &mut self.turn {
                turn.has_cancelled_requests |= turn.is_interrupted;
            }
            actions.push(Action::Session(SessionAction::Withdraw(id)));
            let line = self.caller.answer(&question.id, &Question::cancelled());
            actions.push(Action::Process(ProcessAction::Write(line)));
        }
        for (id, pending) in self.pending.take_all() {
            if let Some(turn) = &mut self.turn {
                turn.has_cancelled_requests |= turn.is_interrupted;
            }
            actions.push(Action::Session(SessionAction::Withdraw(id)));
            self.reply(&pending, &permissions::cancelled(), "interrupted", actions);
        }
    }
}
