//! The promises of the crate to its callers.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

mod documents;
mod files;
mod generate;
mod overlap;
mod properties;
mod test_env;
