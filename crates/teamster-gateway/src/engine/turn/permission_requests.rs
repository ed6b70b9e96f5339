//! Permission requests and questions of a running agent: they are stored, and answered from the store.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use teamster::event::{AnsweredBy, Event, PermissionAnswered};
use teamster::request::Answer;
use teamster_store::{
    Effects, Json, NewEvent, NewPermission, PermissionClosing, PermissionId, PermissionOutcome, Progress, Timestamp,
};
use tokio::time::Instant;
use uuid::Uuid;

use super::attempt::{Attempt, Stopped};
use super::context::TurnError;
use super::open_requests::OpenRequest;
use crate::channels::deliveries;
use crate::event::rfc3339;
use crate::failpoints::failpoint;
use crate::hooks::HookEvent;

/// The time before the agent's own limit in which an answer is no longer accepted, so that the agent does not decide first.
const MARGIN: Duration = Duration::from_secs(2);

impl Attempt<'_> {
    /// Stores a request of the agent, and shows it in the chat.
    pub(super) async fn request_permission(&mut self, event: Event, at: Timestamp) -> Result<(), TurnError> {
        self.flush().await?;
        let (request, questions) = match &event {
            Event::Question(question) => {
                let ids = question.questions.iter().map(|question| question.id.as_str().to_owned()).collect();
                (question.request_id.clone(), Some(ids))
            }
            Event::PermissionRequest(request) => (request.request_id.clone(), None),
            _ => return Ok(()),
        };
        let shared = self.context.shared();
        let id = PermissionId::new(Uuid::now_v7());
        let timeout = shared.config.timing.permission_timeout;
        let deadline = shared.clock.now().after(timeout.checked_sub(MARGIN).unwrap_or(timeout / 2));
        let body = stored_body(&event, id, deadline)?;
        let logged = NewEvent {
            kind: if questions.is_some() { "question" } else { "permission_request" }.to_owned(),
            turn: Some(self.context.claim.turn.id),
            at,
            body: Json::of(&body)?,
        };
        let tool_name = body.get("toolName").and_then(Value::as_str).unwrap_or("question").to_owned();
        let approvers = self.approvers(questions.is_some())?;
        let conversation = &self.context.claim.conversation;
        let turn = self.context.claim.turn.id;
        let recipient = self.context.recipient();
        let deliveries = match &event {
            Event::Question(question) => deliveries::question_prompt(&recipient, id, question)?,
            Event::PermissionRequest(request) => deliveries::permission_prompt(&recipient, id, request, &approvers)?,
            _ => Vec::new(),
        };
        let new = NewPermission { id, body: Json::of(&with_approvers(body, &approvers))?, deadline };
        let effects = Effects { events: vec![logged], deliveries };
        let lease = self.context.lease();
        let store = || shared.store.request_permission(lease, new.clone(), effects.clone(), shared.clock.now());
        self.context.persist(store).await?;
        failpoint!("permission.requested");
        self.context.gateway.announce_growth(conversation.id);
        shared.hooks.notify(HookEvent::PermissionRequested {
            conversation_id: conversation.id.to_string(),
            turn_id: turn.to_string(),
            request_id: id.to_string(),
            tool_name,
        });
        // An agent may use an id again.
        self.requests.answered.remove(&request);
        self.requests.open.insert(request, OpenRequest { id, questions });
        self.context.slot.release();
        Ok(())
    }

    /// Returns who may answer a request. An answer to a question permits nothing: it is another message of the author.
    fn approvers(&self, is_question: bool) -> Result<Vec<String>, TurnError> {
        let mut approvers = self.open.as_ref().map(|open| open.settings.approvers.clone()).unwrap_or_default();
        let author = self.context.author_id()?;
        if is_question && !approvers.contains(&author) {
            approvers.push(author);
        }
        Ok(approvers)
    }

    /// Passes answers from the store on to the agent.
    pub(super) async fn apply_answers(&mut self) -> Result<(), TurnError> {
        self.requests.last_check = Some(Instant::now());
        for (request, OpenRequest { id, questions }) in self.requests.open.clone() {
            let found = match self.context.shared().store.permission(id).await {
                Err(error) if error.is_outage() => {
                    tracing::warn!(%error, request = %id, "the answers cannot be read; they are read again later");
                    continue;
                }
                found => found?,
            };
            let Some(closing) = found.and_then(|permission| permission.closing) else { continue };
            self.requests.open.remove(&request);
            self.requests.answered.insert(request.clone());
            if questions.is_none() && is_allowed(closing.outcome) {
                // The tool may run from now on, whatever the log shows after a crash.
                self.buffer.raise(Progress::Tools);
                self.context.append(Vec::new(), Vec::new(), Progress::Tools).await?;
            }
            let answer = answer_of(closing.outcome, closing.message, questions.as_deref());
            if let Some(open) = &self.open
                && let Err(error) = open.session.answer(request, answer).await
            {
                tracing::warn!(%error, request = %id, "the agent did not accept the answer");
            }
        }
        self.reclaim_slot();
        Ok(())
    }

    /// Takes the agent's confirmation of an answer, or an answer without a person.
    pub(super) async fn permission_answered(
        &mut self,
        answered: PermissionAnswered,
        at: Timestamp,
    ) -> Result<(), TurnError> {
        if self.requests.answered.contains(&answered.request_id) {
            return Ok(());
        }
        let Some(OpenRequest { id, .. }) = self.requests.open.remove(&answered.request_id) else {
            // A rule or the mode has answered; the event contains the request.
            self.buffer.push(Event::from(answered), at)?;
            return Ok(());
        };
        self.flush().await?;
        let outcome = match answered.by {
            AnsweredBy::Timeout | AnsweredBy::Limit => PermissionOutcome::TimedOut,
            _ => PermissionOutcome::TurnEnded,
        };
        let closing = self.context.closing(id, outcome)?;
        let shared = self.context.shared();
        let lease = self.context.lease();
        let close = || shared.store.close_permissions(lease, vec![closing.clone()], shared.clock.now());
        self.context.persist(close).await?;
        self.context.gateway.announce_growth(self.context.claim.conversation.id);
        self.requests.answered.insert(answered.request_id);
        self.reclaim_slot();
        if answered.by == AnsweredBy::Timeout && self.stopped.is_none() {
            self.stopped = Some(Stopped::Unanswered);
            if let Some(run) = &self.run {
                run.control().interrupt();
            }
        }
        Ok(())
    }

    fn reclaim_slot(&self) {
        if self.requests.open.is_empty() {
            self.context.slot.reclaim();
        }
    }

    /// Closes the requests of an attempt that ends before its turn: an agent that was killed takes no answers.
    pub(super) async fn close_requests(&mut self) -> Result<(), TurnError> {
        let outcome = PermissionOutcome::WorkerLost;
        let closings: Result<Vec<_>, TurnError> =
            self.requests.ids().map(|id| self.context.closing(id, outcome)).collect();
        let (closings, shared, lease) = (closings?, self.context.shared(), self.context.lease());
        if !closings.is_empty() {
            let close = || shared.store.close_permissions(lease, closings.clone(), shared.clock.now());
            self.context.persist(close).await?;
            self.context.gateway.announce_growth(self.context.claim.conversation.id);
        }
        self.requests.open.clear();
        Ok(())
    }

    /// Returns the closings of requests that can no longer be answered.
    pub(super) fn closings(&self) -> Result<Vec<PermissionClosing>, TurnError> {
        self.requests.ids().map(|id| self.context.closing(id, PermissionOutcome::TurnEnded)).collect()
    }
}

/// Returns the event with the gateway's own id and time limit.
fn stored_body(event: &Event, id: PermissionId, deadline: Timestamp) -> serde_json::Result<Value> {
    let mut body = serde_json::to_value(event)?;
    if let Some(fields) = body.as_object_mut() {
        fields.insert("requestId".to_owned(), id.to_string().into());
        fields.insert("deadline".to_owned(), rfc3339(deadline).into());
    }
    Ok(body)
}

fn with_approvers(mut body: Value, approvers: &[String]) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.insert("approvers".to_owned(), approvers.into());
    }
    body
}

const fn is_allowed(outcome: PermissionOutcome) -> bool {
    matches!(outcome, PermissionOutcome::Allowed | PermissionOutcome::AllowedAlways)
}

/// Returns the answer for the agent.
fn answer_of(outcome: PermissionOutcome, message: Option<String>, questions: Option<&[String]>) -> Answer {
    match (outcome, questions) {
        (PermissionOutcome::Allowed | PermissionOutcome::AllowedAlways, Some(questions)) => {
            Answer::Choose(choices(message.as_deref().unwrap_or_default(), questions))
        }
        (PermissionOutcome::Allowed, None) => Answer::Allow { input: None },
        (PermissionOutcome::AllowedAlways, None) => Answer::AllowAlways,
        _ => Answer::Deny { message },
    }
}

/// Reads the answers to questions: an object by question id with texts or lists of texts, or one text for all questions.
fn choices(message: &str, questions: &[String]) -> BTreeMap<String, Vec<String>> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Choice {
        One(String),
        Several(Vec<String>),
    }
    if let Ok(answers) = serde_json::from_str::<BTreeMap<String, Choice>>(message) {
        let list = |choice| match choice {
            Choice::One(text) => vec![text],
            Choice::Several(texts) => texts,
        };
        return answers.into_iter().map(|(id, choice)| (id, list(choice))).collect();
    }
    questions.iter().map(|id| (id.clone(), vec![message.to_owned()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_answers_every_question_and_an_object_each_of_them() {
        let questions = ["a".to_owned(), "b".to_owned()];
        let one = |text: &str| vec![text.to_owned()];
        let all = choices("red", &questions);
        assert_eq!((all["a"].clone(), all["b"].clone()), (one("red"), one("red")));
        let each = choices(r#"{"a": "red", "b": ["x", "y"]}"#, &questions);
        assert_eq!((each["a"].clone(), each["b"].len()), (one("red"), 2));
    }

    #[test]
    fn only_a_person_who_allows_lets_the_agent_continue() {
        use PermissionOutcome::{Allowed, AllowedAlways, Denied, TimedOut, TurnEnded, WorkerLost};
        assert_eq!(answer_of(Allowed, None, None), Answer::Allow { input: None });
        assert_eq!(answer_of(AllowedAlways, None, None), Answer::AllowAlways);
        for outcome in [Denied, TimedOut, WorkerLost, TurnEnded] {
            assert!(matches!(answer_of(outcome, None, None), Answer::Deny { .. }));
            assert!(matches!(answer_of(outcome, None, Some(&[])), Answer::Deny { .. }));
        }
    }
}
