//! A process as the system describes it.
//!
//! A pid is reused after the process is gone, so a process is always identified by pid and start
//! time.

use serde::{Deserialize, Serialize};

use crate::{stat::Stat, sys};

/// Identifies a process, even after its pid is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// When it was started, in the system's own unit.
    pub(crate) start: u64,
}

impl Process {
    /// Returns the process that has this pid now, if its start time is known.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, start: start_of(pid)? })
    }

    /// Returns whether the process is alive.
    pub(crate) fn is_alive(self) -> bool {
        sys::stat_of(self.pid).is_some_and(|stat| stat.start == self.start && stat.is_alive())
    }

    /// Like [`of`](Self::of). If the start time is unknown, the result matches no process.
    pub(crate) fn known(pid: i32) -> Self {
        Self::of(pid).unwrap_or(Self { pid, start: 0 })
    }
}

impl Stat {
    /// Returns whether the pid still belongs to this process.
    pub(crate) fn is_still(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

/// Returns the start time of the process with this pid.
pub(crate) fn start_of(pid: i32) -> Option<u64> {
    sys::stat_of(pid).map(|stat| stat.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_contains_this_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = sys::snapshot().unwrap().into_iter().find(|stat| stat.pid == own).unwrap();
        assert!(found.is_alive() && found.is_still());
        assert_eq!(start_of(own), Some(found.start));
        assert!(sys::numbers().unwrap().contains(&own));
    }
}
