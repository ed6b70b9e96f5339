//! One turn: what the model has done in it, when it is over, and what it came to.
//!
//! 1.18.33 says that a session is idle more than once: after an abort and after some failures first while the last message is
//! still open, and again when it is settled; and what was said twice may come late. So a turn ends with the first `session.idle`
//! after which nothing of it is open, and that follows something of its own.

use serde_json::Value;
use time::OffsetDateTime;

use super::super::reason::{goes_on, is_answer, stop_reason};
use super::super::tally::Tally;
use super::super::wire::ErrorBody;
use super::super::{failure, reason};
use super::steering::Steering;
use super::wire::MessageInfo;
use crate::agent::limit::rejected_until;
use crate::bounded::Ids;
use crate::protocol::{Action, Outcome};
use teamster_types::event::{ErrorCode, Event, Failure, StopReason};
use teamster_types::json::RawJson;

/// A turn that runs.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) tally: Tally,
    /// Parts of tools whose call was told; and whose result.
    pub(super) called: Ids,
    pub(super) finished: Ids,
    /// Ids of calls that were told.
    pub(super) ids: Ids,
    pub(super) work: Work,
    /// What was said within it.
    pub(super) steering: Steering,
    pub(super) interrupted: bool,
    /// The agent was asked to stop.
    pub(super) is_aborted: bool,
    /// Why we stop it.
    pub(super) limit: Option<(Failure, Option<StopReason>)>,
    last: Option<Settled>,
    /// An error without a message.
    error: Option<ErrorBody>,
    unfinished: u32,
}

/// What the agent says of its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing yet.
    #[default]
    Upcoming,
    Busy,
    /// It is over, unless more is to be done.
    Idle,
}

/// The last message of the model, when it was whole.
#[derive(Debug)]
struct Settled {
    id: String,
    finish: Option<String>,
    error: Option<(ErrorBody, Option<OffsetDateTime>)>,
    structured: Option<RawJson>,
    model: Option<String>,
}

impl Turn {
    /// A message of the model is whole. A summary of the conversation is no answer.
    pub(super) fn settle(&mut self, info: MessageInfo) {
        if info.summary == Some(Value::Bool(true)) && info.error.is_none() {
            return;
        }
        let nanoseconds = info.time.completed.map(|milliseconds| i128::from(milliseconds) * 1_000_000);
        let at = nanoseconds.and_then(|at| OffsetDateTime::from_unix_timestamp_nanos(at).ok());
        let model = info.provider.zip(info.model).map(|(provider, model)| format!("{provider}/{model}"));
        self.last = Some(Settled {
            id: info.id,
            finish: info.finish,
            error: info.error.map(|error| (error, at)),
            structured: info.structured,
            model,
        });
    }

    pub(super) fn fail(&mut self, error: ErrorBody) {
        // The first one names the cause best; what comes of an abort is none.
        if error.name != "MessageAbortedError" {
            self.error.get_or_insert(error);
        }
    }

    /// Whether the session, which is idle now, is so because this turn is over.
    pub(super) fn is_over(&self) -> bool {
        let is_stopped = self.is_stopped() || (self.is_aborted && self.has_begun());
        let is_heard = is_stopped || !self.steering.is_unheard();
        (self.last.is_some() || is_stopped) && is_heard && !self.steering.is_unseen()
    }

    /// Whether the agent leaves unanswered what it has heard.
    fn is_stopped(&self) -> bool {
        self.error.is_some() || self.last.as_ref().is_some_and(|last| last.error.is_some() || last.structured.is_some())
    }

    /// Whether the agent has begun to work on it.
    pub(super) fn has_begun(&self) -> bool {
        self.work != Work::Upcoming
    }

    /// The newest message of the model: what comes of older ones belongs to turns before.
    pub(super) fn newest(&self) -> Option<&str> {
        self.last.as_ref().map(|last| last.id.as_str())
    }

    /// A call of the model has ended for this reason. Gives the failure if that is one too many.
    pub(super) fn step(&mut self, reason: &str) -> Option<Failure> {
        self.unfinished = if reason == "unknown" { self.unfinished + 1 } else { 0 };
        (self.unfinished >= reason::UNFINISHED_STEPS).then(reason::unfinished)
    }

    /// What the turn came to.
    pub(super) fn outcome(&self, wants_schema: bool, logs: &str, actions: &mut Vec<Action>) -> Outcome {
        let settled = self.last.as_ref();
        let finish = settled.and_then(|last| last.finish.as_deref());
        let structured = settled.and_then(|last| last.structured.clone());
        let error = settled.and_then(|last| last.error.as_ref());
        let is_whole = error.is_none() && (structured.is_some() || finish.is_some_and(is_answer));
        let mut outcome = Outcome { model: settled.and_then(|last| last.model.clone()), ..self.tally.outcome(None) };
        outcome.stop_reason = finish.and_then(stop_reason);
        if let Some((failure, reason)) = &self.limit {
            (outcome.failure, outcome.stop_reason) = (Some(failure.clone()), reason.clone());
        } else if self.interrupted && !is_whole {
            (outcome.interrupted, outcome.stop_reason) = (true, Some(StopReason::Cancelled));
        } else if is_whole {
            if structured.is_some() {
                outcome.stop_reason = Some(StopReason::EndTurn);
            } else if wants_schema {
                let text = "the model gave no output that follows the schema";
                outcome.failure = Some(Failure::new(ErrorCode::StructuredOutput, text));
            }
            outcome.structured_output = structured;
        } else if let Some((error, at)) =
            error.map(|(error, at)| (error, *at)).or(self.error.as_ref().map(|error| (error, None)))
        {
            let judgement = failure::of_error(error, logs);
            if judgement.failure.code == ErrorCode::RateLimit {
                let until = at.and_then(|at| failure::resets_at(&error.data, at));
                actions.extend(until.map(|until| Action::Emit(rejected_until(until))));
            }
            judgement.apply_to(&mut outcome);
        } else {
            outcome.failure = Some(reason::unanswered(finish, !self.tally.denials.is_empty()));
        }
        outcome
    }

    /// Whether the agent would go on after this reason.
    pub(super) fn would_go_on(reason: &str) -> bool {
        goes_on(reason)
    }
}

/// The events of a tool's call, once.
pub(super) fn once(told: &mut Ids, part: &str, event: Event) -> Option<Action> {
    told.add(part.to_owned()).then_some(Action::Emit(event))
}
