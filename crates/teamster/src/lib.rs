//! Drives AI agent CLIs as supervised subprocesses and emits one event stream with the same meaning for every agent.
//!
//! ```no_run
//! use teamster::request::PermissionMode;
//! use teamster::{Event, RunRequest, Runtime};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let request = RunRequest::new("fix the failing test").with_permission_mode(PermissionMode::Edit);
//!
//!     let runtime = Runtime::new();
//!     let mut run = runtime.run("claude", request)?;
//!     while let Some(event) = run.next().await {
//!         match event {
//!             // `escaped()` is for a terminal; `as_str()` is the exact text.
//!             Event::Text(delta) => print!("{}", delta.text.escaped()),
//!             Event::ToolUse(tool) => println!("[{}]", tool.tool_name.escaped()),
//!             // A failed run is an error from here.
//!             Event::Done(done) => println!("\n{:?}", done.result.into_result()?.usage),
//!             _ => {}
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Guide
//!
//! - A [`Runtime`] starts runs and sessions. One runtime for a program is enough. [`Runtime::builder`] sets limits.
//! - A [`RunRequest`] contains the prompt and its options. An invalid request is an error, and nothing starts.
//! - A [`Run`] is the stream of [`Event`]s of one prompt. [`Run::result`] reads it to its end; a failed run is a
//!   [`RunFailure`]. [`Control`] interrupts or aborts it from elsewhere.
//! - A [`Session`] is a conversation of many turns, each a [`Run`]. [`SessionOptions`] sets its options.
//! - [`event::AnswerView`] holds the answer so far, for bots that edit their message.
//! - [`Backend`] is the smallest interface: one prompt, one reply, configured by the environment.
//! - `sessions` (with the feature `sessions`) lists the sessions that the agents' CLIs store.
//! - `tools` (with the feature `tools`) serves tools written in Rust to any agent.
//! - [`agent`] is for authors of agents; [`Registry`] makes their agents available by name.
//!
//! # What every run guarantees
//!
//! - The stream ends with exactly one `done`.
//! - No process of the run outlives it. Dropping a [`Run`] kills its process tree.
//! - Output that the CLI wrote before its exit is not lost. A process that keeps the CLI's pipes open delays the end by at
//!   most the drain period.
//! - Memory is bounded, however slow the consumer is.
//! - Silence is bounded in each phase of a run ([`request::Limits`]).
//!
//! # What a host must know
//!
//! - **Tokio.** Runs need a Tokio runtime with I/O and time (`enable_all`). Otherwise a call returns
//!   [`RunError::Tokio`]. Call [`Runtime::shutdown`] before the Tokio runtime ends, so that agents can exit by themselves.
//! - **Signals.** A handler of SIGTERM calls [`Runtime::shutdown`], which ends runs and sessions that other tasks hold.
//!   [`Runtime::wait_idle`] ends nothing.
//! - **The supervisor process.** The first run starts the program of this process a second time, as a small supervisor that
//!   kills the agents if this process dies. The library takes over at startup, before `main`, and `main` does not run there.
//!   [`Runtime::warm_up`] starts it ahead of the first run.
//! - **Libraries loaded by other programs** (`cdylib`, plugins, language bindings) cannot be started this way. They name a
//!   supervisor program with [`Supervisor::program`], for example the command `teamster`.
//! - **`panic = "abort"`** is supported: the supervisor kills the agents. With unwinding, a panic in an agent's code is an
//!   error of the run.
//!
//! Invariant: this crate interprets no agent's output. It connects agents (`teamster-agents`) and processes
//! (`teamster-process`).

mod agent_server;
pub mod backend;
mod callers;
pub mod command;
mod driver;
mod errors;
mod events;
mod inspect;
mod live;
mod permits;
pub mod recording;
mod registry;
mod run;
mod runtime;
mod session;
#[cfg(feature = "sessions")]
pub mod sessions;
mod setup;
mod stores;
mod threads;
mod tokio_check;
#[cfg(feature = "tools")]
pub mod tools;
mod turns;

pub use backend::Backend;
pub use driver::warm_pool::WarmPoolConfig;
pub use events::stamped::StampedEvent;
pub use inspect::{Inspection, Readiness, VersionStatus};
pub use live::{ShutdownReport, UnfinishedRun};
pub use permits::{AgentStats, RuntimeStats};
pub use registry::{Registry, UnknownAgent};
pub use run::Run;
pub use runtime::{RunError, Runtime, RuntimeBuilder};
pub use session::{AnswerError, SendError, Sent, Session, SessionOptions};
pub use teamster_config::{self as config, RestoreLog};
pub use teamster_process::{HostLease, LeaseTime, Ledger, Supervisor};
pub use teamster_types::event::{self, Event, RunFailure, RunResult};
pub use teamster_types::request::{self, RunRequest};
pub use teamster_types::{json, text};
pub use tokio_check::TokioError;
pub use turns::control::Control;

/// For authors of agents: the trait [`Agent`](agent::Agent), what it returns, and the agents that come with Teamster.
pub mod agent {
    pub use teamster_agents::agent::*;
    pub use teamster_agents::{launch, protocol, rules, transcript};
}

/// Adapters for the stream of a run.
pub mod stream {
    pub use crate::events::views::{EventStream, Only, WholeMessages};
    pub use crate::run::Stamped;
}

/// Supervision of processes: what the system allows, the ledger of live runs, limits of this process.
pub mod supervision {
    pub use teamster_process::ledger;
    pub use teamster_process::{Limitation, Signal, SpawnError, SupervisorError, limits, startup};
}
