//! The channel with a real receiver, and its HTTP endpoint.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a failure of a test is a panic"
)]

mod receiver;
mod receiving;
mod sending;
