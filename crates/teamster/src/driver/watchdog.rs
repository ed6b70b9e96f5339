//! How long the agent may be silent, phase by phase. Pure: the time is an argument.

use std::time::Duration;

use teamster_types::request::Limits;
use tokio::time::Instant;

/// What the agent is doing, as far as silence is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has come yet.
    Starting,
    /// It works, or waits for its model.
    Working,
    /// It has given its final word and should exit.
    AfterResult,
}

/// Counts silence while the driver waits for the agent.
#[derive(Debug)]
pub(super) struct Watchdog {
    phase: Phase,
    since: Instant,
}

/// The silence was too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bark {
    /// The run fails, with these words.
    Silent(String),
    /// The final word has come; the process is to be ended.
    ExitOverdue,
}

impl Watchdog {
    pub(super) fn new(now: Instant) -> Self {
        Self { phase: Phase::Starting, since: now }
    }

    /// The agent has shown that it works, and maybe that its last word was not the final one.
    pub(super) fn activity(&mut self, now: Instant) {
        self.phase = Phase::Working;
        self.since = now;
    }

    /// The agent lives. After its final word that is no reason to wait longer.
    pub(super) fn alive(&mut self, now: Instant) {
        if self.phase != Phase::AfterResult {
            self.activity(now);
        }
    }

    /// The agent has given its final word.
    pub(super) fn final_word(&mut self, now: Instant) {
        self.phase = Phase::AfterResult;
        self.since = now;
    }

    /// The driver did not listen until now: the consumer was slow.
    pub(super) fn listen_again(&mut self, now: Instant) {
        self.since = now;
    }

    /// When the silence is too long; `None` where the limit is off.
    pub(super) fn due(&self, limits: &Limits, tool: Option<&str>) -> Option<Instant> {
        let limit = self.limit(limits, tool).0;
        (!limit.is_zero()).then(|| self.since + limit)
    }

    /// What to do about it.
    pub(super) fn bark(&self, limits: &Limits, tool: Option<&str>) -> Bark {
        let (limit, name) = self.limit(limits, tool);
        let seconds = limit.as_secs_f64();
        match (self.phase, tool) {
            (Phase::AfterResult, _) => Bark::ExitOverdue,
            (Phase::Starting, _) => {
                Bark::Silent(format!("the agent said nothing for {seconds} s after its start ({name})"))
            }
            (Phase::Working, Some(tool)) => {
                Bark::Silent(format!("the agent said nothing for {seconds} s while its tool {tool} ran ({name})"))
            }
            (Phase::Working, None) => Bark::Silent(format!("the agent said nothing for {seconds} s ({name})")),
        }
    }

    /// The limit that holds now, and its name.
    pub(super) fn limit(&self, limits: &Limits, tool: Option<&str>) -> (Duration, &'static str) {
        match (self.phase, tool) {
            (Phase::Starting, _) => (limits.startup, "limit: startup"),
            (Phase::AfterResult, _) => (limits.after_result, "limit: after result"),
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
    fn each_phase_has_its_own_limit_and_says_which() {
        let (limits, start) = (limits(), Instant::now());
        let mut watchdog = Watchdog::new(start);
        assert_eq!(watchdog.due(&limits, None), Some(start + limits.startup));
        assert!(matches!(watchdog.bark(&limits, None), Bark::Silent(text) if text.contains("startup")));
        watchdog.alive(start);
        assert_eq!(watchdog.due(&limits, None), Some(start + limits.silence));
        assert_eq!(watchdog.due(&limits, Some("Bash")), Some(start + limits.tool));
        let Bark::Silent(text) = watchdog.bark(&limits, Some("Bash")) else { panic!() };
        assert_eq!(text, "the agent said nothing for 3 s while its tool Bash ran (limit: tool)");
        watchdog.final_word(start);
        assert_eq!(watchdog.due(&limits, Some("Bash")), Some(start + limits.after_result));
        assert_eq!(watchdog.bark(&limits, None), Bark::ExitOverdue);
    }

    #[test]
    fn signs_of_life_after_the_final_word_do_not_put_off_the_exit_but_another_turn_does() {
        let (limits, start) = (limits(), Instant::now());
        let later = start + Duration::from_secs(1);
        let mut watchdog = Watchdog::new(start);
        watchdog.final_word(start);
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
