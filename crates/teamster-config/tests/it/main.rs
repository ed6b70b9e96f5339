//! Promises of the crate, as a caller sees them.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

mod documents;
mod files;
mod generate;
mod lab;
mod overlap;
mod properties;
