//! A process, as the system shows it.
//!
//! A number names one process only for its life, so a process is always meant by number and start time together.

use serde::{Deserialize, Serialize};

use crate::sys;

/// The start time of a process that the system does not show.
pub(crate) const UNKNOWN_START: u64 = u64::MAX;

/// One process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    /// How its program's name begins.
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) parent: i32,
    /// When it was started, in the system's own unit.
    pub(crate) start: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    Stopped,
    /// It has ended, and waits for its parent to look.
    Dead,
}

/// A process for good: its number alone may pass to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// When it was started, in the system's own unit.
    pub(crate) start: u64,
}

impl Process {
    /// The process that has this number now, if the system shows when it was started.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, start: start_of(pid)? })
    }

    /// Whether the process is there and has not ended.
    pub(crate) fn is_alive(self) -> bool {
        sys::stat_of(self.pid).is_some_and(|stat| stat.start == self.start && stat.is_alive())
    }

    /// Like [`of`](Self::of). If the system does not show the start time, no process is found to be this one.
    pub(crate) fn known(pid: i32) -> Self {
        Self::of(pid).unwrap_or(Self { pid, start: 0 })
    }
}

impl Stat {
    pub(crate) fn is_alive(&self) -> bool {
        self.state != State::Dead
    }

    /// Whether the number is this process's still.
    pub(crate) fn is_still(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state == State::Stopped
    }
}

/// When the process with this number was started.
pub(crate) fn start_of(pid: i32) -> Option<u64> {
    sys::stat_of(pid).map(|stat| stat.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_finds_itself() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = sys::snapshot().unwrap().into_iter().find(|stat| stat.pid == own).unwrap();
        assert!(found.is_alive() && found.is_still());
        assert_eq!(start_of(own), Some(found.start));
        assert!(sys::numbers().unwrap().contains(&own));
    }
}
