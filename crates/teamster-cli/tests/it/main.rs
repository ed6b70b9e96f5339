//! The promises of the command to a shell and to programs. A shell script is the agent's CLI. It prints recorded runs.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod agents;
mod chat;
mod command;
mod config;
mod config_set;
mod doctor;
mod doctor_fix;
mod ends;
mod fake;
mod formats;
mod hints;
mod inputs;
mod logging;
mod merge_restore;
mod recordings;
mod screen;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod service;
mod session;
mod sessions;
mod signals;
mod states;
mod status;
mod surroundings;
mod tour;
mod umask;
mod usage;
mod welcome;
#[cfg(feature = "serve")]
mod workers;
mod workspace;
