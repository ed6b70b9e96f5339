//! The channel against the testkit's server of the Bot API.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod buttons;
mod failures;
mod files;
mod log;
mod outcomes;
mod receiving;
mod sending;
mod world;
