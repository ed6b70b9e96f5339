//! Open requests of the agent, and the answers to them.

use std::time::{Duration, SystemTime};

use teamster_agents::protocol::{Action, AppliedAnswer, Command, Input, SessionAction};
use teamster_types::event::{
    AnsweredBy, Event, PermissionAnswered, PermissionDecision, PermissionOptionKind, PermissionRequest, RequestId,
};
use teamster_types::json::RawJson;
use teamster_types::request::Answer;
use teamster_types::text::UntrustedText;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use crate::events::size;

/// A request of the agent that waits for an answer.
#[derive(Debug, Default)]
pub(super) struct OpenRequest {
    deadline: Option<Instant>,
    bytes: usize,
    /// `None` for a question.
    permission: Option<Box<PermissionRequest>>,
}

impl OpenRequest {
    /// Creates a request that waits from now on. A limit of zero means no deadline.
    pub(super) fn new(event: &Event, limit: Duration) -> Self {
        let deadline = (!limit.is_zero()).then(|| Instant::now() + limit);
        Self { deadline, bytes: size::in_memory(event), permission: permission(event) }
    }

    /// Returns the estimated size of the request in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether the request lists the option that the answer chooses. True if the answer chooses none.
    pub(super) fn lists(&self, answer: &Answer) -> bool {
        let Answer::Option { option_id } = answer else { return true };
        self.permission.as_ref().is_some_and(|request| request.options.iter().any(|one| one.option_id == *option_id))
    }

    /// Returns the ids of the options that the request lists.
    pub(super) fn options(&self) -> Vec<UntrustedText> {
        let options = self.permission.iter().flat_map(|request| &request.options);
        options.map(|option| option.option_id.clone()).collect()
    }

    pub(super) fn answered(self, request: RequestId, answer: Answer, by: AnsweredBy) -> GivenAnswer {
        GivenAnswer { request, answer, by, permission: self.permission, was_emitted: true }
    }
}

/// Returns the request that an event makes to the caller.
pub(super) fn request_of(event: &Event) -> Option<&RequestId> {
    match event {
        Event::PermissionRequest(request) => Some(&request.request_id),
        Event::Question(question) => Some(&question.request_id),
        _ => None,
    }
}

/// Returns the deadline of a request that is emitted now, in RFC 3339 with milliseconds. A limit of zero means no deadline.
pub(super) fn deadline(limit: Duration) -> Option<UntrustedText> {
    let at = SystemTime::now().checked_add(limit).filter(|_| !limit.is_zero())?;
    let at = OffsetDateTime::from(at);
    at.replace_millisecond(at.millisecond()).ok()?.format(&Rfc3339).ok().map(Into::into)
}

/// An answer to a request of the agent, on its way to the agent.
#[derive(Clone, Debug)]
pub(super) struct GivenAnswer {
    pub(super) request: RequestId,
    answer: Answer,
    by: AnsweredBy,
    permission: Option<Box<PermissionRequest>>,
    /// Whether the request was emitted to the caller.
    was_emitted: bool,
}

impl GivenAnswer {
    /// Creates a denial.
    pub(super) fn deny(request: RequestId, reason: &str, by: AnsweredBy) -> Self {
        Self::new(request, Answer::Deny { message: Some(reason.to_owned()) }, by)
    }

    pub(super) fn new(request: RequestId, answer: Answer, by: AnsweredBy) -> Self {
        Self { request, answer, by, permission: None, was_emitted: true }
    }

    /// Marks the request as one that is answered without being emitted.
    pub(super) fn without_request(self, event: &Event) -> Self {
        Self { permission: permission(event), was_emitted: false, ..self }
    }

    /// Returns the answer for the protocol.
    pub(super) fn input(&self) -> Input<'_> {
        Input::Command(Command::Answer { request: &self.request, answer: &self.answer })
    }

    /// Returns the event that reports the answer. `actions` are the protocol's reaction to the answer. The transcript emits the
    /// event if a permission request waits for it.
    pub(super) fn event(&self, actions: &[Action]) -> PermissionAnswered {
        let applied = self.applied(actions);
        let (decision, option_id) = match applied {
            Some(applied) => (applied.decision.clone(), applied.option_id.clone()),
            None => self.decision(),
        };
        let allows = matches!(decision, PermissionDecision::Allow | PermissionDecision::AllowAlways);
        let mut answered = PermissionAnswered::new(self.request.clone(), decision, self.by.clone());
        answered.option_id = option_id;
        answered.message = match &self.answer {
            Answer::Deny { message: Some(message) } => Some(message.as_str().into()),
            _ => applied.and_then(|applied| applied.message.clone()),
        };
        answered.input = self.changed_input().filter(|_| allows);
        answered.request = self.permission.clone().filter(|_| !self.was_emitted);
        answered
    }

    /// Returns the answer as the agent applies it, if that differs from this answer.
    fn applied<'a>(&self, actions: &'a [Action]) -> Option<&'a AppliedAnswer> {
        actions.iter().find_map(|action| match action {
            Action::Session(SessionAction::Answered(applied)) if applied.request == self.request => Some(&**applied),
            _ => None,
        })
    }

    /// Returns the decision and the option of the answer, if the agent applies it unchanged.
    fn decision(&self) -> (PermissionDecision, Option<UntrustedText>) {
        let options = self.permission.as_ref().map(|request| &request.options);
        let decision = match &self.answer {
            Answer::Allow { .. } => PermissionDecision::Allow,
            Answer::AllowAlways => {
                let is_always = |kind: &PermissionOptionKind| *kind == PermissionOptionKind::AllowAlways;
                let has_always = options.is_none_or(|options| options.iter().any(|option| is_always(&option.kind)));
                if has_always { PermissionDecision::AllowAlways } else { PermissionDecision::Allow }
            }
            Answer::Option { option_id } => {
                let mut listed = options.into_iter().flatten();
                let option = listed.find(|option| option.option_id == *option_id);
                let decision = match option.map(|option| &option.kind) {
                    Some(PermissionOptionKind::AllowOnce) => PermissionDecision::Allow,
                    Some(PermissionOptionKind::AllowAlways) => PermissionDecision::AllowAlways,
                    Some(PermissionOptionKind::RejectAlways) => PermissionDecision::DenyAlways,
                    Some(PermissionOptionKind::Other(kind)) => PermissionDecision::from(kind.as_str()),
                    _ => PermissionDecision::Deny,
                };
                return (decision, Some(option_id.as_str().into()));
            }
            _ => PermissionDecision::Deny,
        };
        (decision, None)
    }

    /// Returns the new input of the tool, if the answer changes it.
    fn changed_input(&self) -> Option<RawJson> {
        let Answer::Allow { input: Some(input) } = &self.answer else { return None };
        let is_same = self.permission.as_ref().is_some_and(|request| request.input == *input);
        (!is_same).then(|| RawJson::from(input))
    }
}

fn permission(event: &Event) -> Option<Box<PermissionRequest>> {
    match event {
        Event::PermissionRequest(request) => Some(request.clone()),
        _ => None,
    }
}
