//! Enforces the limits of a turn: the deadline, the limits on silence, and the time for answers.
//!
//! Invariant: a limit is enforced only after everything that the agent wrote before it was read. The host may have been
//! stopped (SIGSTOP, Ctrl-Z) or busy. Then its timers and the agent's output become ready together, in any order.

use std::time::Duration;

use teamster_agents::protocol::Input;
use teamster_agents::transcript::Cause;
use teamster_types::event::{AnsweredBy, ErrorCode, Failure, Warning, WarningCode};
use tokio::time::Instant;

use super::TurnDriver;
use super::stopping::Stopping;
use super::watchdog::WatchdogAction;
use crate::agent_server::next_event_now;
use crate::driver::answers::GivenAnswer;
use crate::driver::failures::deadline_exceeded;
use crate::driver::log::Wait;
use crate::driver::process::{AgentOutput, Receiver as _};

/// How long pending output is read before a limit is enforced.
const SETTLE: Duration = Duration::from_millis(100);

/// An alarm that is later than this shows that the host was stopped or blocked.
const HOST_STOPPED: Duration = Duration::from_secs(1);

/// The maximum number of late alarms in a row without activity of the agent. On a host that is always late, limits are enforced
/// all the same.
const MAX_LATE_ALARMS: u8 = 3;

/// The maximum number of server events that are read at once before a limit is enforced.
const MAX_EVENTS: usize = 10_000;

impl TurnDriver<'_> {
    /// Returns the time at which a limit is reached or enforced next. Silence does not count while the driver does not listen, or
    /// while the agent waits for an answer.
    pub(super) fn alarm(&self, listening: bool) -> Option<Instant> {
        if self.timer.enforced_at.is_some() && !self.stopping.is_terminating() {
            return self.timer.enforced_at;
        }
        match self.stopping {
            Stopping::Terminating { .. } => None,
            Stopping::Interrupted { until } => Some(until),
            Stopping::No => {
                let counts_silence = listening && !self.awaits_answer();
                let silence = counts_silence
                    .then(|| self.timer.watchdog.due(self.limits, self.sink.transcript.running_tool()))
                    .flatten();
                let answer = self.session.as_ref().and_then(|session| session.queue.answer_deadline());
                silence.into_iter().chain(self.timer.deadline).chain(answer).min()
            }
        }
    }

    /// Handles an alarm. The first alarm of a limit reads pending output for a moment; the second one enforces the limit. If the
    /// host was stopped meanwhile, both start again.
    pub(super) async fn alarmed(&mut self, alarm: Instant, output: &mut AgentOutput, reads_output: bool) {
        let late = Instant::now().saturating_duration_since(alarm);
        if reads_output {
            self.read_pending(output).await;
        }
        let now = Instant::now();
        let was_stopped =
            late > HOST_STOPPED && self.timer.late_alarms < MAX_LATE_ALARMS && !self.stopping.has_started();
        if was_stopped {
            tracing::debug!(target: "teamster::limits", ?late, "the host was stopped or blocked; the limit on silence starts again");
            self.timer.late_alarms += 1;
            self.timer.watchdog.restart(now);
        }
        if was_stopped || self.timer.enforced_at.take().is_none() {
            self.timer.enforced_at = Some(now + SETTLE);
            return;
        }
        self.timer.late_alarms = 0;
        self.enforce();
    }

    /// Logs what the driver waits for, if that has changed.
    pub(super) fn log_wait(&mut self, listening: bool) {
        if self.stopping.has_started() {
            return;
        }
        let tool = self.sink.transcript.running_tool();
        let wait = if !listening {
            Wait::Consumer
        } else if self.awaits_answer() {
            Wait::Answer
        } else {
            let (after, limit) = self.timer.watchdog.limit(self.limits, tool);
            Wait::Agent { limit, after }
        };
        if self.logged != Some(wait) {
            wait.log(tool);
            self.logged = Some(wait);
        }
    }

    /// Passes the timer of the protocol on, after everything that the agent has written until now.
    pub(super) async fn timer_reached(&mut self, output: &mut AgentOutput) {
        if self.link.timer.restart_if_late() {
            return;
        }
        self.read_pending(output).await;
        if !self.is_turn_ended() && self.link.timer.take_if_due() {
            self.input(Input::TimerElapsed);
        }
    }

    /// Reads what the agent has written until now, at most what pipes and channels hold.
    async fn read_pending(&mut self, output: &mut AgentOutput) {
        output.read_pending_lines(self);
        if !self.is_turn_ended() {
            self.read_server_events(output).await;
        }
    }

    /// Reads the events that the CLI's server has sent until now.
    pub(super) async fn read_server_events(&mut self, output: &mut AgentOutput) {
        for _ in 0..MAX_EVENTS {
            let Some(event) = next_event_now(&mut self.link.server).await else { return };
            output.deliver_event(&event, self);
            if self.is_turn_ended() {
                return;
            }
        }
    }

    /// Enforces the limit that is reached.
    fn enforce(&mut self) {
        let now = Instant::now();
        if let Stopping::Interrupted { until } = self.stopping {
            if until <= now {
                self.terminate(None);
            }
            return;
        }
        if self.timer.deadline.is_some_and(|deadline| deadline <= now) {
            tracing::warn!(limit = "deadline", after_s = self.limits.deadline.as_secs_f64(), "a limit was reached");
            return self.interrupt(Cause::Failed(deadline_exceeded(self.limits)));
        }
        if self.awaits_answer() {
            return self.deny_overdue_requests();
        }
        let tool = self.sink.transcript.running_tool();
        if self.timer.watchdog.due(self.limits, tool).is_none_or(|due| due > now) {
            return;
        }
        let (after, limit) = self.timer.watchdog.limit(self.limits, tool);
        match self.timer.watchdog.action(self.limits, tool) {
            WatchdogAction::Fail(text) => {
                tracing::warn!(limit, after_s = after.as_secs_f64(), tool, "a limit was reached: the agent was silent");
                self.interrupt(Cause::Failed(Failure::new(ErrorCode::WatchdogTimeout, text)));
            }
            WatchdogAction::Terminate => {
                let seconds = self.limits.after_result.as_secs_f64();
                let text = format!("the CLI did not exit within {seconds} s after its result, and was killed");
                self.sink.emit(Warning::new(WarningCode::ExitForced, text));
                self.terminate(None);
            }
        }
    }

    /// Denies the requests that were not answered in time.
    fn deny_overdue_requests(&mut self) {
        let overdue = self.session.as_mut().map(|session| session.queue.take_overdue(Instant::now()));
        for request in overdue.unwrap_or_default() {
            let (id, seconds) = (request.as_str().to_owned(), self.limits.answer.as_secs_f64());
            let text = format!("the request {id} was not answered within {seconds} s and was denied");
            self.sink.emit(Warning::new(WarningCode::Unanswered, text).with("requestId", id));
            let denial = GivenAnswer::deny(request, "The request was not answered in time.", AnsweredBy::Timeout);
            let command = self.session.as_mut().and_then(|session| session.queue.answered(denial));
            if let Some(command) = command {
                self.command(command);
            }
        }
    }
}
