//! The clock of the gateway. Decisions get the time as an argument.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use teamster_store::{Day, Timestamp};

/// Returns the time. Tests replace it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Reads the clock of the system.
    pub fn system() -> Self {
        Self::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
        })
    }

    /// Reads the time with this function.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// Returns the day in UTC, for budgets and usage.
    pub fn today(&self) -> Day {
        day(self.now())
    }
}

/// Returns the day of a time in UTC.
pub(crate) fn day(at: Timestamp) -> Day {
    Day::new(i32::try_from(at.as_millis().div_euclid(86_400_000)).unwrap_or(i32::MAX))
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Clock")
    }
}
