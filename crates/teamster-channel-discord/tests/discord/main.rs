//! The channel against the testkit's server of Discord's gateway and REST API.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod buttons;
mod commands;
mod connections;
mod failures;
mod files;
mod logs;
mod outcomes;
mod receiving;
mod sending;
mod threads;
mod world;
