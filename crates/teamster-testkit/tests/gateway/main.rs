//! The promises of the gateway's engine, on the fake agent and a real SQLite store.

mod answers;
mod authors;
mod crashes;
mod exposition;
mod live;
mod leases;
mod metrics;
mod permissions;
mod retries;
mod sessions;
mod test_gateway;
#[cfg(feature = "otlp")]
mod traces;
