//! The driver's promises for every run, for any behavior of the CLI. The fake agent plays the CLI.
//!
//! A test's name is a promise. A limit that must not end the run is [`test_env::LONG`], which no
//! test reaches. Exceeding a time bound is a failure; the bounds measure nothing.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod agent_turns;
mod answers;
mod cancelling;
mod concurrent_runs;
mod config_files;
mod conversations;
mod custom_agents;
mod dropping;
mod end_model;
mod end_orders;
mod exits;
mod grandchildren;
mod host_lease;
mod idle_processes;
mod leftovers;
mod lines;
mod memory;
mod permits;
mod privacy;
mod queue;
mod recordings;
mod retries;
mod retry_delays;
mod rules;
mod secrets;
mod server;
mod session_faults;
mod session_recovery;
mod sessions;
mod shutdown;
mod slow_consumer;
mod slow_disk;
mod start_failures;
mod stdin;
mod steering;
mod stopping;
mod test_env;
mod timers;
mod warm_up;
mod watchdog;
