//! The state of a process at one moment, as the system reports it.

/// The start time of a process whose start time is unknown.
pub(crate) const UNKNOWN_START: u64 = u64::MAX;

/// The state of one process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    /// The beginning of its program's name.
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
    /// A zombie: it has ended and was not reaped.
    Dead,
}

impl Stat {
    pub(crate) fn is_alive(&self) -> bool {
        self.state != State::Dead
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state == State::Stopped
    }
}
