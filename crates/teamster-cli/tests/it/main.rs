//! What the command promises to a shell and to programs. A shell script plays the agent's CLI; what it says are
//! recorded runs.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod agents;
mod chat;
mod command;
mod doctor;
mod ends;
mod fake;
mod formats;
mod inputs;
mod logging;
mod merge_restore;
mod recordings;
mod session;
mod signals;
mod surroundings;
mod umask;
