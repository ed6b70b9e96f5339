//! Turns: the caller's control of a turn, the driver's handle to its stream, and the list of a session's turns.

pub(crate) mod control;
pub(crate) mod handle;
pub(crate) mod list;
pub(crate) mod stop;
pub(crate) mod waiting;
