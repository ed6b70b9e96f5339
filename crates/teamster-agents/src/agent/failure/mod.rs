//! Failure tables: what the failures of an agent mean, as data.
//!
//! Each agent has a table ([`FailureRow`]). The first row whose matchers all match gives the error code. The order of the
//! rows is the order in which their matchers can be trusted: structured fields and the vendor's status, then the exit
//! code, then text.
//!
//! [`FailureInput`] contains only what the CLI itself reported about the failure. It never contains the model's answer or
//! a tool's output. Text is compared from its start, so that a message that quotes another message does not match.
//!
//! Each row names the recorded runs that show it (`tests/captures`). Tests compare the tables with these runs and generate
//! `docs/errors.md` from them.

mod classify;
mod outcome;
mod table;

pub(in crate::agent) use classify::{Classification, FailureInput, plain_lines};
pub use table::{FailureRow, Matcher, Source};
pub(in crate::agent) use table::{lasting, passing};
