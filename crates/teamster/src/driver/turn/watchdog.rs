//! The watchdog: limits on the silence of an agent, for each phase of its work. Pure: the time is an argument.

use std::time::Duration;

use teamster_types::request::Limits;
use tokio::time::Instant;

/// The phase of the agent's work. Each phase has its own limit on silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The agent has emitted nothing so far.
    Starting,
    /// The agent works, or waits for its model.
    Working,
    /// The agent has reported its outcome and should exit.
    AfterOutcome,
}

/// Measures the silence of an agent.
#[derive(Debug)]
pub(super) struct Watchdog {
    phase: Phase,
    since: Instant,
}

/// What to do when the silence has reached its limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchdogAction {
    /// Fail the run with this message.
    Fail(String),
    /// Terminate the process, which has reported its outcome.
    Terminate,
}

impl Watchdog {
    pub(super) fn new(now: Instant) -> Self {
        Self { phase: Phase::Starting, since: now }
    }

    /// Notes that the agent works. If it has reported an outcome before, that was not its last one.
    pub(super) fn activity(&mut self, now: Instant) {
        self.phase = Phase::Working;
        self.since = now;
    }

    /// Notes that the agent lives. After its outcome this does not delay its exit.
    pub(super) fn alive(&mut self, now: Instant) {
        if self.phase != Phase::AfterOutcome {
            self.activity(now);
        }
    }

    /// Notes that the agent has reported its outcome.
    pub(super) fn outcome(&mut self, now: Instant) {
        self.phase = Phase::AfterOutcome;
        self.since = now;
    }

    /// Restarts the measurement, because the driver has not read the agent's output until now.
    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// Returns the time at which the silence reaches its limit. `None` if the limit is off.
    pub(super) fn due(&self, limits: &Limits, tool: Option<&str>) -> Option<Instant> {
        let limit = self.limit(limits, tool).0;
        (!limit.is_zero()).then(|| self.since + limit)
    }

    /// Returns what to do when the silence has reached its limit.
    pub(super) fn action(&self, limits: &Limits, tool: Option<&str>) -> WatchdogAction {
        let (limit, name) = self.limit(limits, tool);
        let seconds = limit.as_secs_f64();
        match (self.phase, tool) {
            (Phase::AfterOutcome, _) => WatchdogAction::Terminate,
            (Phase::Starting, _) => {
                WatchdogAction::Fail(format!("the agent was silent for {seconds} s after its start ({name})"))
            }
            (Phase::Working, Some(tool)) => {
                WatchdogAction::Fail(format!("the agent was silent for {seconds} s while its tool {tool} ran ({name})"))
            }
            (Phase::Working, None) => WatchdogAction::Fail(format!("the agent was silent for {seconds} s ({name})")),
        }
    }

    /// Returns the current limit and its name.
    pub(super) fn limit(&self, limits: &Limits, tool: Option<&str>) -> (Duration, &'static str) {
        match (self.phase, tool) {
            (Phase::Starting, _) => (limits.startup, "limit: startup"),
            (Phase::AfterOutcome, _) => (limits.after_result, "limit: after result"),
            (Phase::Working, Some(_)) => (limits.tool, "limit: tool"),
            (Phase::Working, None) => (limits.silence, "limit: silence"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        let mut limits = Limits::default();
        limits.startup = Duration::from_secs(1);
        limits.silence = Duration::from_secs(2);
        limits.tool = Duration::from_secs(3);
        limits.after_result = Duration::from_secs(4);
        limits
    }

    #[test]
    fn each_phase_has_its_own_limit_and_its_message_names_it() {
        let (limits, start) = (limits(), Instant::now());
        let mut watchdog = Watchdog::new(start);
        assert_eq!(watchdog.due(&limits, None), Some(start + limits.startup));
        assert!(matches!(watchdog.action(&limits, None), WatchdogAction::Fail(text) if text.contains("startup")));
        watchdog.alive(start);
        assert_eq!(watchdog.due(&limits, None), Some(start + limits.silence));
        assert_eq!(watchdog.due(&limits, Some("Bash")), Some(start + limits.tool));
        let WatchdogAction::Fail(text) = watchdog.action(&limits, Some("Bash")) else { panic!() };
        assert_eq!(text, "the agent was silent for 3 s while its tool Bash ran (limit: tool)");
        watchdog.outcome(start);
        assert_eq!(watchdog.due(&limits, Some("Bash")), Some(start + limits.after_result));
        assert_eq!(watchdog.action(&limits, None), WatchdogAction::Terminate);
    }

    #[test]
    fn after_the_outcome_only_new_work_delays_the_exit() {
        let (limits, start) = (limits(), Instant::now());
        let later = start + Duration::from_secs(1);
        let mut watchdog = Watchdog::new(start);
        watchdog.outcome(start);
        watchdog.alive(later);
        assert_eq!(watchdog.due(&limits, None), Some(start + limits.after_result));
        watchdog.activity(later);
        assert_eq!(watchdog.due(&limits, None), Some(later + limits.silence));
    }

    #[test]
    fn a_limit_of_zero_is_off() {
        let mut limits = limits();
        limits.startup = Duration::ZERO;
        assert_eq!(Watchdog::new(Instant::now()).due(&limits, None), None);
    }
}
