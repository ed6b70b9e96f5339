//! The limits of a run: when the next one is reached, and what is done then.
//!
//! Invariant: no limit is judged before everything that the agent wrote until then has been read. The host may have been
//! halted (SIGSTOP, Ctrl-Z) or busy: its timers and the agent's output become ready together, in any order.

use std::time::Duration;

use teamster_agents::transcript::Cause;
use teamster_process::ProcessTree;
use teamster_process::spawn::PIPE_BYTES;
use teamster_types::event::{ErrorCode, Failure, Warning, WarningCode};
use tokio::time::Instant;

use super::{Ending, Reins};
use crate::agent_server::next_event_now;
use crate::driver::log::Wait;
use crate::driver::process::Streams;
use crate::driver::too_late;
use crate::driver::watchdog::Bark;

/// How long pending output is read before a limit is judged.
const SETTLE: Duration = Duration::from_millis(100);

/// An alarm that comes later than this after its time shows that the host was halted or blocked.
const HALTED: Duration = Duration::from_secs(1);

/// How many alarms may be late while the agent does nothing: on a host that is always late, limits hold all the same.
const MOST_HALTS: u8 = 3;

/// How many events of a server are read at once before a limit is judged.
const MOST_EVENTS: usize = 10_000;

impl Reins<'_> {
    /// A limit is reached, as it seems. The first time, pending output is read for a moment; the second time, the limit is
    /// judged. If the host was halted meanwhile, both begin anew.
    pub(super) async fn due(
        &mut self,
        alarm: Instant,
        deadline: Option<Instant>,
        streams: &mut Streams,
        listening: bool,
    ) {
        let late = Instant::now().saturating_duration_since(alarm);
        if listening {
            self.read_pending(streams).await;
        }
        let now = Instant::now();
        let was_halted = late > HALTED && self.halts < MOST_HALTS && matches!(self.ending, Ending::No);
        if was_halted {
            tracing::debug!(?late, "the host was halted or blocked: silence counts anew");
            self.halts += 1;
            self.watchdog.listen_again(now);
        }
        if was_halted || self.judged_at.take().is_none() {
            self.judged_at = Some(now + SETTLE);
            return;
        }
        self.halts = 0;
        self.alarmed(deadline);
    }

    /// Logs what is waited for, when that has changed.
    pub(super) fn log_wait(&mut self, listening: bool) {
        if !matches!(self.ending, Ending::No) {
            return;
        }
        let tool = self.story.transcript.running_tool();
        let wait = if !listening {
            Wait::Consumer
        } else if self.is_awaited() {
            Wait::Answer
        } else {
            let (after, limit) = self.watchdog.limit(self.limits, tool);
            Wait::Agent { limit, after }
        };
        if self.logged != Some(wait) {
            wait.log(tool);
            self.logged = Some(wait);
        }
    }

    /// Reads what the agent has written until now, at most what pipes and channels hold.
    async fn read_pending(&mut self, streams: &mut Streams) {
        let mut left = PIPE_BYTES;
        while left > 0
            && !self.is_answered()
            && let Ok(Some(count @ 1..)) = streams.output.fill_now()
        {
            left = left.saturating_sub(count);
            self.frames(&mut streams.output);
        }
        if !self.is_answered() {
            self.read_events().await;
        }
    }

    /// Reads the events and replies that the agent's server has sent until now.
    pub(super) async fn read_events(&mut self) {
        for _ in 0..MOST_EVENTS {
            let Some(heard) = next_event_now(&mut self.link.server).await else { return };
            self.hear(&heard);
            if self.is_answered() {
                return;
            }
        }
    }

    /// Denies what nobody answered in time.
    fn deny_unanswered(&mut self) {
        let overdue = self.desk.as_mut().map(|desk| desk.overdue(Instant::now())).unwrap_or_default();
        for request in overdue {
            let seconds = self.limits.answer.as_secs_f64();
            let text = format!("nobody answered the request {} within {seconds} s: it was denied", request.as_str());
            self.story.say(Warning::new(WarningCode::Unanswered, text).with("requestId", request.as_str()).into());
            let denied = self.desk.as_mut().and_then(|desk| desk.deny(request, "Nobody answered in time."));
            if let Some(denied) = denied {
                self.asked(denied);
            }
        }
    }

    /// When something is due next.
    pub(super) fn alarm(&self, deadline: Option<Instant>, listening: bool) -> Option<Instant> {
        if self.judged_at.is_some() && !self.is_forced() {
            return self.judged_at;
        }
        let tool = self.story.transcript.running_tool();
        match self.ending {
            Ending::Forced(_) => None,
            Ending::Asked(until) => Some(until),
            Ending::No => {
                // An agent that waits for its caller owes nothing meanwhile.
                let silent = (listening && !self.is_awaited()).then(|| self.watchdog.due(self.limits, tool)).flatten();
                silent.into_iter().chain(deadline).chain(self.desk.as_ref().and_then(|desk| desk.due())).min()
            }
        }
    }

    fn alarmed(&mut self, deadline: Option<Instant>) {
        if let Ending::Asked(until) = self.ending {
            if until <= Instant::now() {
                self.force(None);
            }
            return;
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            tracing::warn!(limit = "deadline", after_s = self.limits.deadline.as_secs_f64(), "a limit was reached");
            return self.ask_to_stop(Cause::Failed(too_late(self.limits)));
        }
        if self.is_awaited() {
            return self.deny_unanswered();
        }
        let tool = self.story.transcript.running_tool();
        if self.watchdog.due(self.limits, tool).is_none_or(|due| due > Instant::now()) {
            return;
        }
        match self.watchdog.bark(self.limits, tool) {
            Bark::Silent(text) => {
                let (after, limit) = self.watchdog.limit(self.limits, tool);
                tracing::warn!(limit, after_s = after.as_secs_f64(), tool, "a limit was reached: the agent was silent");
                self.ask_to_stop(Cause::Failed(Failure::new(ErrorCode::WatchdogTimeout, text)));
            }
            Bark::ExitOverdue => {
                let seconds = self.limits.after_result.as_secs_f64();
                let text = format!("the CLI did not exit within {seconds} s after its result, and was ended");
                self.story.say(Warning::new(WarningCode::ExitForced, text).into());
                self.force(None);
            }
        }
    }
}

/// Whether the leader has exited by now.
pub(super) async fn has_exited(tree: &ProcessTree) -> bool {
    tokio::select! {
        biased;
        _ = tree.exited() => true,
        () = std::future::ready(()) => false,
    }
}
