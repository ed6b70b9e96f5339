//! The channel with a real receiver, and its HTTP endpoint.
#![expect(clippy::unwrap_used, reason = "a failure of a test is a panic")]

mod receiver;
mod receiving;
mod sending;
