//! The event sink: passes the events of a run or turn to its caller.
//!
//! Every event passes, in this order, the transcript (the rules of the stream), the budget, the redactor, the log, the
//! recording and the event queue.

use std::sync::Arc;

use teamster_agents::protocol::{ExitReport, Outcome};
use teamster_agents::transcript::{Cause, End, Transcript};
use teamster_types::event::{Credential, Event, Failure, LeftProcess};
use teamster_types::request::Limits;
use tokio::time::Instant;

use super::budget::Budget;
use super::ended::Ended;
use super::host::Host;
use super::{limit_end, log};
use crate::callers::Callers;
use crate::events::backlog::Bounds;
use crate::events::queue::EventQueue;
use crate::recording::Recording;
use crate::recording::redact::Redactor;
use crate::setup::credential;
use crate::turns::handle::RunHandle;

/// Passes the events of a run or turn to its caller.
pub(super) struct EventSink {
    pub(super) transcript: Transcript,
    pub(super) queue: EventQueue,
    redactor: Arc<Redactor>,
    recording: Option<Recording>,
    /// The credential that the agent will use, if that is certain.
    credential: Option<Credential>,
    callers: Callers,
    budget: Budget,
    /// Why the turn must stop, if it has exceeded its budget.
    over_budget: Option<Failure>,
    /// A buffer for the events that the transcript returns.
    events: Vec<Event>,
    started: Instant,
}

impl EventSink {
    /// Creates the sink of a run or turn that starts now.
    pub(super) fn new(handle: &RunHandle, limits: &Limits, host: &Host, budget: Budget) -> Self {
        Self {
            transcript: Transcript::new(),
            queue: EventQueue::new(handle.events.clone(), Bounds::of(limits)),
            redactor: Arc::default(),
            recording: host.recording.clone(),
            credential: host.credential.clone(),
            callers: host.callers.next_turn(),
            budget,
            over_budget: None,
            events: Vec::new(),
            started: Instant::now(),
        }
    }

    /// Sets the redactor. A process sets the redactor of its secrets before it emits events.
    pub(super) fn set_redactor(&mut self, redactor: Arc<Redactor>) {
        self.redactor = redactor;
    }

    pub(super) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Sets the start of the run or turn to now. Its duration and its deadline do not include the time in the queue.
    pub(super) fn start_clock(&mut self) {
        self.started = Instant::now();
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Emits an event, as the rules of the stream allow.
    pub(super) fn emit(&mut self, event: impl Into<Event>) {
        match self.transcript.push_delta(event.into()) {
            Ok(delta) => self.pass_on_delta(delta),
            Err(mut event) => {
                if let Event::Init(init) = &mut event {
                    init.credential = credential::reported(init.credential.take(), self.credential.as_ref());
                }
                self.transcript.push(event, &mut self.events);
                self.pass_on();
            }
        }
    }

    /// Passes on a delta: most events are deltas. They contain no usage and nothing to redact, and are not logged.
    fn pass_on_delta(&mut self, delta: Option<Event>) {
        let Some(event) = delta else { return };
        if let Some(recording) = &self.recording {
            recording.event(&event, &self.redactor);
        }
        self.queue.push(event);
    }

    /// Sets the agent's outcome.
    pub(super) fn set_outcome(&mut self, outcome: Outcome) {
        if let Some(row) = outcome.classified_by {
            tracing::debug!(matchers = ?row.matchers, code = %row.code, "a row of the failure table matched");
        }
        let has_end = self.transcript.limit().is_some_and(|limit| limit.resets_at.is_some());
        if let Some(end) = outcome.limit_end.as_ref().filter(|_| !has_end)
            && let Some(limit) = limit_end::event(end)
        {
            self.emit(Event::RateLimit(Box::new(limit)));
        }
        self.transcript.set_outcome(outcome);
    }

    /// Makes the turn stop at its next event if the budget is used up already.
    pub(super) fn stop_over_budget(&mut self) {
        self.over_budget = self.budget.refusal();
    }

    /// Takes the failure of a turn that must stop because it has exceeded its budget.
    pub(super) fn take_over_budget(&mut self) -> Option<Failure> {
        self.over_budget.take()
    }

    /// Replaces the budget, because other turns have used it meanwhile.
    pub(super) fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// Takes the budget, with the usage of this turn.
    pub(super) fn take_budget(&mut self) -> Budget {
        std::mem::take(&mut self.budget)
    }

    /// Returns the failure of an attempt. `None` if it succeeded.
    pub(super) fn failure(&self, ended: &Ended) -> Option<Failure> {
        let signal = ended.signal();
        let exit = ended.report(signal.as_deref());
        self.transcript.failure(&End { cause: ended.cause.clone(), exit, left: Vec::new(), duration_ms: 0 })
    }

    /// Retracts the events of a failed attempt. The run is started again.
    pub(super) fn restart(&mut self) {
        self.transcript.start_attempt(&mut self.events);
        self.pass_on();
    }

    /// Emits a warning if the recording is incomplete.
    pub(super) async fn check_recording(&mut self) {
        self.queue.flush();
        if let Some(recording) = self.recording.clone()
            && let Some(warning) = recording.problem().await
        {
            self.emit(warning);
        }
    }

    /// Emits the last events of the stream.
    pub(super) fn end(&mut self, ended: &Ended) {
        let signal = ended.signal().filter(|_| !ended.is_shut_down);
        let mut exit = ended.report(signal.as_deref());
        if let Some(exit) = exit.as_mut().filter(|_| ended.is_shut_down) {
            // The code may only be the answer to the signal of the driver.
            exit.code = exit.code.filter(|code| *code == 0);
        }
        self.close(ended.cause.clone(), exit, ended.left.clone());
    }

    /// Closes the stream. Does nothing if it is closed.
    fn close(&mut self, cause: Option<Cause>, exit: Option<ExitReport<'_>>, left: Vec<LeftProcess>) {
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.transcript.end(&End { cause, exit, left, duration_ms }, &mut self.events);
        self.pass_on();
    }

    fn pass_on(&mut self) {
        for mut event in self.events.drain(..) {
            self.callers.note(&event);
            self.over_budget = self.budget.note(&event).or(self.over_budget.take());
            self.redactor.event(&mut event);
            log::event(&event);
            if let Some(recording) = &self.recording {
                recording.event(&event, &self.redactor);
            }
            self.queue.push(event);
        }
    }
}

/// The driver's task can be dropped at any time, with its Tokio runtime. The process tree is killed by then, and the stream
/// ends as aborted.
impl Drop for EventSink {
    fn drop(&mut self) {
        self.close(Some(Cause::Aborted), None, Vec::new());
    }
}
