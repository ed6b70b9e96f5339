//! A process, as the system shows it.
//!
//! A number names one process only for its life, so a process is always meant by number and start time together.

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
