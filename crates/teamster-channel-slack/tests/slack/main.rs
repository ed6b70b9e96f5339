//! The channel against the testkit's server of Slack.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod buttons;
mod commands;
mod connections;
mod failures;
mod files;
mod log;
mod outcomes;
mod receiving;
mod sending;
mod world;
