//! The promises of the gateway's engine, on the fake agent and a real SQLite store.

mod agents;
mod answers;
mod continuation;
mod crashes;
mod ends;
mod exposition;
mod metrics;
mod outages;
mod permissions;
mod retries;
mod sessions;
mod steering;
mod test_gateway;
#[cfg(feature = "otlp")]
mod traces;
