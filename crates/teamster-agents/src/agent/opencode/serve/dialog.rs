//! What the agent asks its user (`permission.asked`, `question.asked`), and the answers.
//!
//! Invariants: an answer is sent once, for a request that waits, and allows nothing that was not asked for; in a run, where
//! nobody can be asked, everything is denied. A denial always says why: without a word 1.18.33 ends the turn.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::calls::Calls;
use super::stream::Called;
use super::wire::{Asked, AskedItem, Permission, Replied};
use crate::agent::permission::{self, options, without_option};
use crate::bounded::Bounded;
use crate::protocol::{Action, SessionAction, Taken};
use teamster_types::event::{
    AnsweredBy, Event, PermissionDecision, PermissionRequest, Question, QuestionItem, QuestionOption, RequestId,
    ToolId, Warning, WarningCode,
};
use teamster_types::request::Answer;

type Actions = Vec<Action>;

/// Requests that wait.
#[derive(Debug, Default)]
pub(super) struct Dialog {
    open: BTreeMap<String, Waiting>,
    /// Those whose call has not told its arguments yet, by their ids.
    held: Bounded<String, Permission>,
}

#[derive(Debug)]
enum Waiting {
    Permission,
    /// What it asks, in order.
    Question(Vec<String>),
}

impl Dialog {
    /// Keeps a request until its call has told its arguments, which it does at once. Returns those that wait for too long, since
    /// too many are kept.
    pub(super) fn hold(&mut self, permission: Permission) -> Vec<Permission> {
        let bytes = permission.bytes();
        let excess = self.held.insert(permission.id.clone(), permission, bytes);
        excess.into_iter().map(|(_, permission)| permission).collect()
    }

    /// Requests that were held for this call, or for any.
    pub(super) fn held(&mut self, call: Option<&str>) -> Vec<Permission> {
        let fits = |held: &Permission| call.is_none_or(|call| held.tool.as_ref().is_some_and(|tool| tool.call == call));
        let ids: Vec<_> = self.held.iter().filter(|(_, held)| fits(held)).map(|(id, _)| id.clone()).collect();
        ids.iter().filter_map(|id| self.held.remove(id)).collect()
    }

    /// The agent waits for leave to call a tool.
    pub(super) fn ask(
        &mut self,
        permission: Permission,
        called: Option<&Called>,
        parent_tool_id: Option<ToolId>,
    ) -> Action {
        self.open.insert(permission.id.clone(), Waiting::Permission);
        Action::Emit(event(permission, called, parent_tool_id))
    }

    /// The agent wants its user to choose.
    pub(super) fn question(&mut self, asked: Asked) -> Action {
        let request_id = RequestId::from(asked.id.as_str());
        let words = asked.questions.iter().map(|item| item.question.clone()).collect();
        self.open.insert(asked.id, Waiting::Question(words));
        let questions = asked.questions.into_iter().map(question).collect();
        Action::Emit(Event::Question(Box::new(Question { request_id, questions })))
    }

    /// Somebody else has answered: with a denial 1.18.33 denies all that the session asks, with leave for the session
    /// it grants all that is like it.
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
        if let (Waiting::Permission, Some(decision)) = (waiting, decision) {
            let request = RequestId::from(id);
            actions.push(Action::Session(SessionAction::Answered(Box::new(Taken {
                request,
                decision,
                option_id: None,
                message: None,
            }))));
        }
        actions.push(Action::Session(SessionAction::Withdraw(RequestId::from(id))));
    }

    /// Sends the answer to a request that waits.
    pub(super) fn answer(&mut self, id: &RequestId, answer: &Answer, calls: &mut Calls, actions: &mut Actions) {
        match self.open.remove(id.as_str()) {
            Some(Waiting::Permission) => {
                let body = permission(id, &without_option(answer), actions);
                actions.extend(calls.answer("permission", id.as_str(), &body));
            }
            Some(Waiting::Question(questions)) => {
                actions.extend(calls.answer("question", id.as_str(), &choice(&questions, answer)));
            }
            None => {}
        }
    }

    /// Nothing waits any more: the turn is over.
    pub(super) fn clear(&mut self, actions: &mut Actions) {
        self.held.take();
        let open = std::mem::take(&mut self.open);
        actions
            .extend(open.into_keys().map(|id| Action::Session(SessionAction::Withdraw(RequestId::from(id.as_str())))));
    }
}

/// A permission request, as an event.
fn event(permission: Permission, called: Option<&Called>, parent_tool_id: Option<ToolId>) -> Event {
    let Permission { id, permission, patterns, mut metadata, always, .. } = permission;
    if metadata.as_object().is_none_or(serde_json::Map::is_empty) {
        metadata = json!({ "patterns": patterns });
    }
    let request_id = RequestId::from(id.as_str());
    let options = options(!always.is_empty());
    let input = called.and_then(|called| called.input.clone()).unwrap_or_else(|| metadata.into());
    let tool_name = called.map_or(permission.as_str(), |called| called.name.as_str());
    Event::PermissionRequest(Box::new(PermissionRequest {
        tool_id: called.map(|called| called.id.clone()),
        kind: called.map(|called| called.kind.clone()),
        server: called.and_then(|called| called.server.clone()),
        parent_tool_id,
        targets: patterns.into_iter().map(Into::into).collect(),
        options,
        permission: Some(permission.as_str().into()),
        ..PermissionRequest::new(request_id, tool_name, input)
    }))
}

/// In a run nobody can be asked.
pub(super) fn refuse(permission: Permission, called: Option<&Called>, calls: &mut Calls) -> [Option<Action>; 2] {
    let why = "This run cannot ask for permission.";
    let reply = calls.answer("permission", &permission.id, &deny(why));
    let request = event(permission, called, None);
    [permission::automatic_answer(request, PermissionDecision::Deny, AnsweredBy::Unattended, why), reply]
}

/// More is asked than can wait.
pub(super) fn refuse_excess(permission: Permission, calls: &mut Calls) -> [Option<Action>; 2] {
    let why = "Too many requests wait.";
    let reply = calls.answer("permission", &permission.id, &deny(why));
    let request = event(permission, None, None);
    [permission::automatic_answer(request, PermissionDecision::Deny, AnsweredBy::Limit, why), reply]
}

/// In a run nobody can choose.
pub(super) fn decline(asked: &Asked, calls: &mut Calls) -> Option<Action> {
    let questions: Vec<_> = asked.questions.iter().map(|item| item.question.clone()).collect();
    calls.answer("question", &asked.id, &declined(&questions, "Nobody can be asked in this run."))
}

fn permission(id: &RequestId, answer: &Answer, actions: &mut Actions) -> Value {
    match answer {
        Answer::Allow { input: None } => json!({ "reply": "once" }),
        Answer::Allow { input: Some(_) } => {
            let text = "OpenCode takes no other arguments for a call: it was denied";
            let (request, decision) = (id.clone(), PermissionDecision::Deny);
            let taken = Taken { request, decision, option_id: None, message: Some(text.into()) };
            actions.push(Action::Session(SessionAction::Answered(Box::new(taken))));
            actions.push(Action::Emit(Warning::new(WarningCode::OptionIgnored, text).into()));
            deny("The user wants other arguments, and cannot give them here.")
        }
        Answer::AllowAlways => json!({ "reply": "always" }),
        Answer::Deny { message } => deny(message.as_deref().unwrap_or("The user said no.")),
        Answer::Choose(_) | Answer::Option { .. } => deny("That is no answer to a permission request."),
    }
}

fn deny(message: &str) -> Value {
    let message = if message.trim().is_empty() { "The user said no." } else { message };
    json!({ "reply": "reject", "message": message })
}

/// Labels or words for each question. Who does not choose says so: a rejection would end the turn.
fn choice(questions: &[String], answer: &Answer) -> Value {
    match answer {
        Answer::Choose(chosen) => {
            let of = |question: &String| chosen.get(question).cloned().unwrap_or_default();
            json!({ "answers": questions.iter().map(of).collect::<Vec<_>>() })
        }
        Answer::Deny { message: Some(message) } => declined(questions, message),
        // Leave is no choice.
        _ => declined(questions, "The user did not choose."),
    }
}

fn declined(questions: &[String], why: &str) -> Value {
    json!({ "answers": questions.iter().map(|_| [why]).collect::<Vec<_>>() })
}

/// The question is its own id.
fn question(item: AskedItem) -> QuestionItem {
    let AskedItem { question, options, multiple } = item;
    let options = options.into_iter();
    QuestionItem {
        id: question.clone().into(),
        text: question.into(),
        options: options
            .map(|option| QuestionOption {
                label: option.label.into(),
                description: option.description.map(Into::into),
            })
            .collect(),
        multiple,
    }
}
