//! The promises of the gateway's engine, on the fake agent and a real SQLite store.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod agents;
mod answers;
mod authors;
mod continuation;
mod crashes;
mod discord;
mod ends;
mod exposition;
mod leases;
mod live;
mod metrics;
mod outages;
mod permissions;
mod retries;
mod sessions;
mod slack;
mod steering;
mod telegram;
mod test_gateway;
#[cfg(feature = "otlp")]
mod traces;
