//! The permission requests and questions of the agent (`permission.asked`, `question.asked`), and the answers.
//!
//! Invariants: an answer is sent once, for a pending request, and allows only what was requested. A run has no approver, so
//! it denies everything. A denial always has a message: without one 1.18.33 ends the turn.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::calls::Calls;
use super::tool_calls::ToolCall;
use super::wire::{AskedQuestion, Permission, QuestionAsked, Replied};
use crate::agent::permission::{self, options, without_option};
use crate::bounded::Bounded;
use crate::protocol::{Action, AppliedAnswer, SessionAction};
use teamster_types::event::{
    AnsweredBy, Event, PermissionDecision, PermissionRequest, Question, QuestionItem, QuestionOption, RequestId,
    ToolId, Warning, WarningCode,
};
use teamster_types::request::Answer;

type Actions = Vec<Action>;

/// The requests that have no answer.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    /// The emitted requests, by their ids.
    open: BTreeMap<String, PendingRequest>,
    /// The permission requests that are not emitted yet, by their ids: the arguments of their calls are unknown.
    held: Bounded<String, Permission>,
}

#[derive(Debug)]
enum PendingRequest {
    Permission,
    /// Its questions, in order.
    Question(Vec<String>),
}

impl PendingRequests {
    /// Holds a permission request until the arguments of its call are known, which is soon. Returns the requests that exceed
    /// the limit.
    pub(super) fn hold(&mut self, permission: Permission) -> Vec<Permission> {
        let bytes = permission.bytes();
        let excess = self.held.insert(permission.id.clone(), permission, bytes);
        excess.into_iter().map(|(_, permission)| permission).collect()
    }

    /// Removes and returns the held requests of one call, or of all calls.
    pub(super) fn take_held(&mut self, call: Option<&str>) -> Vec<Permission> {
        let fits = |held: &Permission| call.is_none_or(|call| held.tool.as_ref().is_some_and(|tool| tool.call == call));
        let ids: Vec<_> = self.held.iter().filter(|(_, held)| fits(held)).map(|(id, _)| id.clone()).collect();
        ids.iter().filter_map(|id| self.held.remove(id)).collect()
    }

    /// Returns the event for a permission request.
    pub(super) fn permission(
        &mut self,
        permission: Permission,
        call: Option<&ToolCall>,
        parent_tool_id: Option<ToolId>,
    ) -> Action {
        self.open.insert(permission.id.clone(), PendingRequest::Permission);
        Action::Emit(permission_event(permission, call, parent_tool_id))
    }

    /// Returns the event for questions to the user.
    pub(super) fn question(&mut self, asked: QuestionAsked) -> Action {
        let request_id = RequestId::from(asked.id.as_str());
        let texts = asked.questions.iter().map(|item| item.question.clone()).collect();
        self.open.insert(asked.id, PendingRequest::Question(texts));
        let questions = asked.questions.into_iter().map(question).collect();
        Action::Emit(Event::Question(Box::new(Question::new(request_id, questions))))
    }

    /// Handles a reply that another source gave. With a denial, 1.18.33 denies all pending requests of the session. With an
    /// approval for the session, it grants all similar requests.
    pub(super) fn withdraw(&mut self, replied: &Replied, actions: &mut Actions) {
        let id = replied.request.as_str();
        self.held.remove(id);
        let Some(waiting) = self.open.remove(id) else { return };
        let decision = match replied.reply.as_deref() {
            Some("once") => Some(PermissionDecision::Allow),
            Some("always") => Some(PermissionDecision::AllowAlways),
            Some("reject") => Some(PermissionDecision::Deny),
            _ => None,
        };
        if let (PendingRequest::Permission, Some(decision)) = (waiting, decision) {
            let request = RequestId::from(id);
            actions.push(Action::Session(SessionAction::Answered(Box::new(AppliedAnswer {
                request,
                decision,
                option_id: None,
                message: None,
            }))));
        }
        actions.push(Action::Session(SessionAction::Withdraw(RequestId::from(id))));
    }

    /// Sends the answer to a pending request.
    pub(super) fn answer(&mut self, id: &RequestId, answer: &Answer, calls: &mut Calls, actions: &mut Actions) {
        match self.open.remove(id.as_str()) {
            Some(PendingRequest::Permission) => {
                let body = permission_reply(id, &without_option(answer), actions);
                actions.extend(calls.answer("permission", id.as_str(), &body));
            }
            Some(PendingRequest::Question(questions)) => {
                actions.extend(calls.answer("question", id.as_str(), &question_reply(&questions, answer)));
            }
            None => {}
        }
    }

    /// Withdraws all requests, because the turn is over.
    pub(super) fn clear(&mut self, actions: &mut Actions) {
        self.held.take();
        let open = std::mem::take(&mut self.open);
        actions
            .extend(open.into_keys().map(|id| Action::Session(SessionAction::Withdraw(RequestId::from(id.as_str())))));
    }
}

/// Returns the event for a permission request, with what is known of its call.
fn permission_event(permission: Permission, call: Option<&ToolCall>, parent_tool_id: Option<ToolId>) -> Event {
    let Permission { id, permission, patterns, mut metadata, always, .. } = permission;
    if metadata.as_object().is_none_or(serde_json::Map::is_empty) {
        metadata = json!({ "patterns": patterns });
    }
    let request_id = RequestId::from(id.as_str());
    let options = options(!always.is_empty());
    let input = call.and_then(|call| call.input.clone()).unwrap_or_else(|| metadata.into());
    let tool_name = call.map_or(permission.as_str(), |call| call.name.as_str());
    let mut request = PermissionRequest::new(request_id, tool_name, input);
    request.tool_id = call.map(|call| call.id.clone());
    request.kind = call.map(|call| call.kind.clone());
    request.server = call.and_then(|call| call.server.clone());
    request.parent_tool_id = parent_tool_id;
    request.targets = patterns.into_iter().map(Into::into).collect();
    request.options = options;
    request.permission = Some(permission.as_str().into());
    Event::PermissionRequest(Box::new(request))
}

/// Denies a permission request of a run, which has no approver.
pub(super) fn deny_unattended(
    permission: Permission,
    call: Option<&ToolCall>,
    calls: &mut Calls,
) -> [Option<Action>; 2] {
    let why = "This run cannot ask for permission.";
    let reply = calls.answer("permission", &permission.id, &deny(why));
    let request = permission_event(permission, call, None);
    [permission::automatic_answer(request, PermissionDecision::Deny, AnsweredBy::Unattended, why), reply]
}

/// Denies a permission request that exceeds the limit of held requests.
pub(super) fn deny_excess(permission: Permission, calls: &mut Calls) -> [Option<Action>; 2] {
    let why = "Too many requests are pending.";
    let reply = calls.answer("permission", &permission.id, &deny(why));
    let request = permission_event(permission, None, None);
    [permission::automatic_answer(request, PermissionDecision::Deny, AnsweredBy::Limit, why), reply]
}

/// Declines a question in a run, which has no user.
pub(super) fn decline(asked: &QuestionAsked, calls: &mut Calls) -> Option<Action> {
    let questions: Vec<_> = asked.questions.iter().map(|item| item.question.clone()).collect();
    calls.answer("question", &asked.id, &declined(&questions, "This run cannot ask its user."))
}

/// Returns the reply to a permission request.
fn permission_reply(id: &RequestId, answer: &Answer, actions: &mut Actions) -> Value {
    match answer {
        Answer::Allow { input: None } => json!({ "reply": "once" }),
        Answer::Allow { input: Some(_) } => {
            let text = "OpenCode cannot change the arguments of a call, so it was denied";
            let (request, decision) = (id.clone(), PermissionDecision::Deny);
            let taken = AppliedAnswer { request, decision, option_id: None, message: Some(text.into()) };
            actions.push(Action::Session(SessionAction::Answered(Box::new(taken))));
            actions.push(Action::Emit(Warning::new(WarningCode::OptionIgnored, text).into()));
            deny("The user wants other arguments, which is not possible here.")
        }
        Answer::AllowAlways => json!({ "reply": "always" }),
        Answer::Deny { message } => deny(message.as_deref().unwrap_or("The user said no.")),
        Answer::Choose(_) | Answer::Option { .. } => deny("That is not an answer to a permission request."),
    }
}

/// Returns the reply that denies a permission request.
fn deny(message: &str) -> Value {
    let message = if message.trim().is_empty() { "The user said no." } else { message };
    json!({ "reply": "reject", "message": message })
}

/// Returns the labels or texts for each question. A user who does not choose is an answer too: a rejection would end the
/// turn.
fn question_reply(questions: &[String], answer: &Answer) -> Value {
    match answer {
        Answer::Choose(chosen) => {
            let of = |question: &String| chosen.get(question).cloned().unwrap_or_default();
            json!({ "answers": questions.iter().map(of).collect::<Vec<_>>() })
        }
        Answer::Deny { message: Some(message) } => declined(questions, message),
        // A permission is no choice.
        _ => declined(questions, "The user did not choose."),
    }
}

/// Returns the same reply to each question.
fn declined(questions: &[String], why: &str) -> Value {
    json!({ "answers": questions.iter().map(|_| [why]).collect::<Vec<_>>() })
}

/// Returns a question of the event. Its text is its id.
fn question(item: AskedQuestion) -> QuestionItem {
    let AskedQuestion { question, header, options, multiple } = item;
    let options = options.into_iter();
    QuestionItem::new(
        question.clone(),
        question,
        options
            .map(|option| QuestionOption::new(option.label).with_description(option.description.map(Into::into)))
            .collect(),
    )
    .with_multiple(multiple)
    .with_header(header.map(Into::into))
}
