//! One turn: what the model has done, whether the turn is over, and its outcome.
//!
//! 1.18.33 can report several times that a session is idle. After an abort and some failures, the first report precedes the end
//! of the last message, and repeated reports may be late. So a turn ends with the first `session.idle` that follows work of this
//! turn and after which no message is incomplete.

use serde_json::Value;
use time::OffsetDateTime;

use super::super::usage::UsageTotals;
use super::super::wire::ErrorBody;
use super::super::{failure, finish_reason};
use super::steering::PendingSteers;
use super::wire::MessageInfo;
use crate::agent::limit::rejected_until;
use crate::bounded::Ids;
use crate::protocol::{Action, Outcome};
use teamster_types::event::{ErrorCode, Event, Failure, StopReason};
use teamster_types::json::RawJson;

/// A turn in progress.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) totals: UsageTotals,
    /// The tool parts whose call was emitted.
    pub(super) emitted_calls: Ids,
    /// The tool parts whose result was emitted.
    pub(super) emitted_results: Ids,
    /// The ids of emitted calls.
    pub(super) call_ids: Ids,
    pub(super) work: Work,
    pub(super) steers: PendingSteers,
    pub(super) interrupted: bool,
    /// Whether an abort was sent to the agent.
    pub(super) is_aborted: bool,
    /// The limit for which the turn is stopped.
    pub(super) limit: Option<(Failure, Option<StopReason>)>,
    last: Option<CompletedMessage>,
    /// The error of the session, which belongs to no message.
    error: Option<ErrorBody>,
    unfinished_steps: u32,
}

/// The status of the agent's work on a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Work {
    #[default]
    NotStarted,
    Busy,
    /// It has ended, unless there is more to do.
    Idle,
}

/// The last complete message of the model.
#[derive(Debug)]
struct CompletedMessage {
    id: String,
    finish: Option<String>,
    error: Option<(ErrorBody, Option<OffsetDateTime>)>,
    structured: Option<RawJson>,
    model: Option<String>,
}

impl Turn {
    /// Records a complete message of the model. A summary of the conversation is no answer.
    pub(super) fn message_completed(&mut self, info: MessageInfo) {
        if info.summary == Some(Value::Bool(true)) && info.error.is_none() {
            return;
        }
        let nanoseconds = info.time.completed.map(|milliseconds| i128::from(milliseconds) * 1_000_000);
        let at = nanoseconds.and_then(|at| OffsetDateTime::from_unix_timestamp_nanos(at).ok());
        let model = info.provider.zip(info.model).map(|(provider, model)| format!("{provider}/{model}"));
        self.last = Some(CompletedMessage {
            id: info.id,
            finish: info.finish,
            error: info.error.map(|error| (error, at)),
            structured: info.structured,
            model,
        });
    }

    /// Records an error of the session. The first one names the cause best, and an abort is not a cause.
    pub(super) fn session_failed(&mut self, error: ErrorBody) {
        if error.name != "MessageAbortedError" {
            self.error.get_or_insert(error);
        }
    }

    /// Returns whether the turn is over, if the session is idle.
    pub(super) fn is_over(&self) -> bool {
        let is_stopped = self.is_stopped() || (self.is_aborted && self.has_started());
        let is_answered = is_stopped || !self.steers.has_unanswered();
        (self.last.is_some() || is_stopped) && is_answered && !self.steers.has_unconfirmed()
    }

    /// Returns whether the agent stopped, and leaves recorded prompts unanswered.
    fn is_stopped(&self) -> bool {
        self.error.is_some() || self.last.as_ref().is_some_and(|last| last.error.is_some() || last.structured.is_some())
    }

    /// Returns whether the agent has started to work on the turn.
    pub(super) fn has_started(&self) -> bool {
        self.work != Work::NotStarted
    }

    /// Returns the id of the newest message of the model. Output of messages up to this one belongs to this turn or an earlier one.
    pub(super) fn newest_message(&self) -> Option<&str> {
        self.last.as_ref().map(|last| last.id.as_str())
    }

    /// Counts consecutive steps without a finish reason. Returns a failure if there are too many.
    pub(super) fn count_unfinished(&mut self, reason: &str) -> Option<Failure> {
        self.unfinished_steps = if reason == "unknown" { self.unfinished_steps + 1 } else { 0 };
        (self.unfinished_steps >= finish_reason::MAX_UNFINISHED_STEPS).then(finish_reason::unfinished)
    }

    /// Returns the outcome of the turn. `logs` is the text of the logged errors.
    pub(super) fn outcome(&self, requires_schema: bool, logs: &str, actions: &mut Vec<Action>) -> Outcome {
        let last = self.last.as_ref();
        let finish = last.and_then(|last| last.finish.as_deref());
        let structured = last.and_then(|last| last.structured.clone());
        let error = last.and_then(|last| last.error.as_ref());
        let is_complete = error.is_none() && (structured.is_some() || finish.is_some_and(finish_reason::is_final));
        let mut outcome = Outcome { model: last.and_then(|last| last.model.clone()), ..self.totals.outcome(None) };
        outcome.stop_reason = finish.and_then(finish_reason::stop_reason);
        if let Some((failure, reason)) = &self.limit {
            (outcome.failure, outcome.stop_reason) = (Some(failure.clone()), reason.clone());
        } else if self.interrupted && !is_complete {
            (outcome.interrupted, outcome.stop_reason) = (true, Some(StopReason::Cancelled));
        } else if is_complete {
            if structured.is_some() {
                outcome.stop_reason = Some(StopReason::EndTurn);
            } else if requires_schema {
                let text = "the model returned no output that follows the schema";
                outcome.failure = Some(Failure::new(ErrorCode::StructuredOutput, text));
            }
            outcome.structured_output = structured;
        } else if let Some((error, at)) =
            error.map(|(error, at)| (error, *at)).or(self.error.as_ref().map(|error| (error, None)))
        {
            let classification = failure::of_error(error, logs);
            if classification.failure.code == ErrorCode::RateLimit {
                let until = at.and_then(|at| failure::resets_at(&error.data, at));
                actions.extend(until.map(|until| Action::Emit(rejected_until(until))));
            }
            classification.apply_to(&mut outcome);
        } else {
            outcome.failure = Some(finish_reason::no_answer(finish, !self.totals.denials.is_empty()));
        }
        outcome
    }
}

/// Returns the action that emits an event of a tool part, once per part.
pub(super) fn emit_once(emitted: &mut Ids, part: &str, event: Event) -> Option<Action> {
    emitted.add(part.to_owned()).then_some(Action::Emit(event))
}
