//! Events outside the driver: their time and run, their size in memory, and views of a stream of them.

pub(crate) mod backlog;
pub(crate) mod queue;
pub(crate) mod size;
pub(crate) mod stamped;
pub(crate) mod views;
