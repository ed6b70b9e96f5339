//! Answers to requests of the agent: who gave them, and how the stream reports them.

use std::time::{Duration, SystemTime};

use teamster_agents::protocol::{Action, Command, Input};
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

/// A request that waits.
#[derive(Debug, Default)]
pub(super) struct Open {
    until: Option<Instant>,
    bytes: usize,
    /// `None` for a question.
    permission: Option<Box<PermissionRequest>>,
}

impl Open {
    pub(super) fn new(event: &Event, limit: Duration) -> Self {
        let until = (!limit.is_zero()).then(|| Instant::now() + limit);
        Self { until, bytes: size::in_memory(event), permission: permission(event) }
    }

    /// How many bytes the request has, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When it will have waited for too long.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether the request lists the option that an answer chooses, if it chooses one.
    pub(super) fn lists(&self, answer: &Answer) -> bool {
        let Answer::Option { option_id } = answer else { return true };
        self.permission.as_ref().is_some_and(|request| request.options.iter().any(|one| one.option_id == *option_id))
    }

    /// The ids of the options that it lists.
    pub(super) fn options(&self) -> Vec<UntrustedText> {
        let options = self.permission.iter().flat_map(|request| &request.options);
        options.map(|option| option.option_id.clone()).collect()
    }

    pub(super) fn answered(self, request: RequestId, answer: Answer, by: AnsweredBy) -> Given {
        Given { request, answer, by, permission: self.permission, is_asked: true }
    }
}

/// The deadline of a request that waits from now on for so long at most, to the millisecond.
pub(super) fn deadline(limit: Duration) -> Option<UntrustedText> {
    let at = SystemTime::now().checked_add(limit).filter(|_| !limit.is_zero())?;
    let at = OffsetDateTime::from(at);
    at.replace_millisecond(at.millisecond()).ok()?.format(&Rfc3339).ok().map(Into::into)
}

/// An answer on its way to the agent.
#[derive(Clone, Debug)]
pub(in crate::driver) struct Given {
    pub(in crate::driver) request: RequestId,
    answer: Answer,
    by: AnsweredBy,
    permission: Option<Box<PermissionRequest>>,
    /// Whether the request was emitted.
    is_asked: bool,
}

impl Given {
    pub(in crate::driver) fn of(request: RequestId, answer: Answer, by: AnsweredBy) -> Self {
        Self { request, answer, by, permission: None, is_asked: true }
    }

    /// The same, to a request that is not emitted.
    pub(super) fn unasked(self, event: &Event) -> Self {
        Self { permission: permission(event), is_asked: false, ..self }
    }

    /// The answer for the protocol.
    pub(in crate::driver) fn input(&self) -> Input<'_> {
        Input::Command(self.command())
    }

    pub(in crate::driver) fn command(&self) -> Command<'_> {
        Command::Answer { request: &self.request, answer: &self.answer }
    }

    /// The event that reports the answer, when the protocol has said what is to be done. The transcript passes it on if a permission
    /// request waits for it.
    pub(in crate::driver) fn event(&self, actions: &[Action]) -> Event {
        let taken = actions.iter().find_map(|action| match action {
            Action::Answered(taken) if taken.request == self.request => Some(taken),
            _ => None,
        });
        let (decision, option_id) = match taken {
            Some(taken) => (taken.decision.clone(), taken.option_id.clone()),
            None => self.decision(),
        };
        let allows = matches!(decision, PermissionDecision::Allow | PermissionDecision::AllowAlways);
        let mut answered = PermissionAnswered::new(self.request.clone(), decision, self.by.clone());
        answered.option_id = option_id;
        answered.message = match &self.answer {
            Answer::Deny { message: Some(message) } => Some(message.as_str().into()),
            _ => taken.and_then(|taken| taken.message.clone()),
        };
        answered.input = self.changed_input().filter(|_| allows);
        answered.request = self.permission.clone().filter(|_| !self.is_asked);
        answered.into()
    }

    /// What the answer is, if the agent takes it as it is.
    fn decision(&self) -> (PermissionDecision, Option<UntrustedText>) {
        let options = self.permission.as_ref().map(|request| &request.options);
        let decision = match &self.answer {
            Answer::Allow { .. } => PermissionDecision::Allow,
            Answer::AllowAlways => {
                let is_always = |kind: &PermissionOptionKind| *kind == PermissionOptionKind::AllowAlways;
                let can_last = options.is_none_or(|options| options.iter().any(|option| is_always(&option.kind)));
                if can_last { PermissionDecision::AllowAlways } else { PermissionDecision::Allow }
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

    /// What the tool is to be called with instead of what it was.
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
