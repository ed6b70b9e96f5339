//! The promises of the gateway's engine, on the fake agent and a real SQLite store.

mod answers;
mod authors;
mod continuation;
mod crashes;
mod exposition;
mod leases;
mod live;
mod metrics;
mod permissions;
mod retries;
mod sessions;
mod steering;
mod test_gateway;
#[cfg(feature = "otlp")]
mod traces;
