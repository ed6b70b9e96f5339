//! The state of the time limits of a turn.

use teamster_types::request::Limits;
use tokio::time::Instant;

use super::watchdog::Watchdog;
use crate::driver::alarm::Alarm;

/// The time limits of a turn.
pub(super) struct LimitTimer {
    pub(super) watchdog: Watchdog,
    pub(super) deadline: Option<Instant>,
    pub(super) alarm: Alarm,
    /// When the input was read that is being handled.
    pub(super) now: Instant,
    /// When a reached limit is enforced. Pending output is read until then.
    pub(super) enforced_at: Option<Instant>,
    /// Late alarms since the last activity of the agent.
    pub(super) late_alarms: u8,
}

impl LimitTimer {
    pub(super) fn new(limits: &Limits, started: Instant) -> Self {
        Self {
            watchdog: Watchdog::new(started),
            deadline: deadline(limits, started),
            alarm: Alarm::default(),
            now: started,
            enforced_at: None,
            late_alarms: 0,
        }
    }

    /// Notes that the agent works.
    pub(super) fn activity(&mut self) {
        self.watchdog.activity(self.now);
        // An agent that writes without end must not delay a limit that was reached.
        if self.enforced_at.is_none() {
            self.late_alarms = 0;
        }
    }
}

/// Returns the deadline of a run or turn that started at this time. `None` if there is none.
pub(super) fn deadline(limits: &Limits, started: Instant) -> Option<Instant> {
    started.checked_add(limits.deadline).filter(|_| !limits.deadline.is_zero())
}
