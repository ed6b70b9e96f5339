//! What is known about the end of a turn that the app-server may not report.

use std::time::Duration;

/// How long a turn that seems to have ended may be silent before the record is read.
const GRACE: Duration = Duration::from_secs(2);

/// The maximum time between two readings, while the record shows that the turn runs.
const MAX_INTERVAL: Duration = Duration::from_mins(1);

/// What is known about the end of the running turn.
#[derive(Debug, Default)]
pub(super) struct TurnEnd {
    /// The thread reports that it does not work.
    pub(super) is_idle: bool,
    /// Whether the timer is set.
    pub(super) has_timer: bool,
    /// Whether the record was requested.
    pub(super) is_reading: bool,
    /// How often the record showed that the turn runs, since its last sign of life.
    pub(super) readings: u32,
    /// The turn whose end was last read in the record. A late report of its end is ignored.
    pub(super) read: Option<String>,
}

/// Where the record is read. Threads that are not stored have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// `thread/turns/list`: only the last turn.
    LastTurn,
    /// `thread/read`: the whole thread. 0.169.0 needs it for the first turn of a thread, for which it has no list.
    Thread,
}

impl TurnEnd {
    /// A turn starts, or the running one shows that it works.
    pub(super) fn is_working(&mut self) {
        (self.is_idle, self.readings) = (false, 0);
    }

    /// Returns how long the turn may be silent before the record is read.
    pub(super) fn interval(&self) -> Duration {
        GRACE.saturating_mul(1 << self.readings.min(5)).min(MAX_INTERVAL)
    }
}
