//! What the driver promises of every run, whatever the CLI does. The fake agent plays the CLI.
//!
//! A name is a promise. Where a limit must not be what ends a run, it is [`lab::LONG`], which no test waits for; a bound
//! on a test is a failure, never a measure.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod agents;
mod answers;
mod bounds;
mod cancelling;
mod config_files;
mod disk;
mod dropping;
mod end_model;
mod end_orders;
mod ends;
mod grandchildren;
mod lab;
mod lines;
mod many;
mod own_turns;
mod places;
mod private;
mod queue;
mod recordings;
mod retries;
mod rules;
mod secrets;
mod server;
mod sessions;
mod slow;
mod spares;
mod start;
mod stdin;
mod stopping;
mod sweeping;
mod watchdog;
