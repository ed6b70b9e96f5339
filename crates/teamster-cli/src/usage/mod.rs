//! The usage journal, and `teamster usage`, which sums it.
//!
//! - [`entry`]: one line of the journal; [`journal`]: appends lines; [`reader`]: reads them.
//! - [`totals`]: the sums by day, agent, model or directory; [`report`]: prints them.
//! - [`command`]: `teamster usage`.
//!
//! The journal is off unless it is configured.
//!
//! Invariants: a line contains no text of a prompt or an answer; a journal that cannot be written never fails a run; one
//! line that is cut or of another program does not hide others.

mod command;
mod entry;
mod journal;
mod reader;
mod report;
mod totals;

pub(crate) use command::{UsageArgs, main};
pub(crate) use journal::Journal;
