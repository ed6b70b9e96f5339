//! Drives AI agent CLIs as supervised subprocesses and gives one stream of events with one meaning.
//!
//! ```no_run
//! use teamster::event::Event;
//! use teamster::{RunRequest, Runtime};
//!
//! # async fn example() -> Result<(), teamster::RunError> {
//! let runtime = Runtime::new();
//! let mut run = runtime.run("claude", RunRequest::new("Say hello"))?;
//! while let Some(event) = run.next().await {
//!     match event {
//!         // The model's text as it is; `escaped()` is for a terminal, where it could move the cursor.
//!         Event::Text(delta) => print!("{}", delta.text.as_str()),
//!         Event::Done(done) => println!("\nsession {:?}", done.result.session_id),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`Runtime`] starts runs; [`Registry`] knows the agents by name.
//! - [`Session`] is a conversation of many turns, each a [`Run`]; [`Opening`] says how it is opened.
//! - [`Run`] is the stream of one run; [`Control`] interrupts or aborts it from elsewhere.
//! - [`Ledger`] knows the live runs on disk; what a crash left is swept with the first run of a [`Runtime`].
//! - `tools` (with the feature `tools`) serves tools written in Rust to any agent.
//! - [`Journals`] note what runs change in configuration files of the user's, where they are asked to.
//! - [`event`] and [`request`] are the vocabulary, [`agent`] the trait for agents of your own.
//!
//! What is promised of every run, whatever the CLI does:
//! - exactly one `done`, last;
//! - no process of the run outlives it, and dropping a [`Run`] ends its process tree;
//! - what the CLI wrote before its end is not lost, and a process that keeps its pipe open delays the end by at most
//!   the drain period;
//! - memory is bounded, however slow the consumer;
//! - silence is bounded, phase by phase ([`request::Limits`]).
//!
//! Invariant: this crate knows no agent's output; it introduces agents (`teamster-agents`) to processes
//! (`teamster-process`).

mod adapters;
pub mod backend;
#[cfg(feature = "tools")]
mod callers;
#[cfg(not(feature = "tools"))]
#[path = "no_callers.rs"]
mod callers;
mod command;
mod driver;
mod gate;
mod inspect;
mod registry;
mod run;
mod runtime;
mod session;
mod stamp;
mod tokio_check;
#[cfg(feature = "tools")]
pub mod tools;
mod turns;

pub use adapters::{EventStream, Only, WholeMessages};
pub use backend::{Backend, QueryResult};
pub use command::{Applied, CommandError};
pub use driver::pool::Spares;
pub use gate::{AgentStats, RuntimeStats};
pub use inspect::{Inspection, VersionStatus};
pub use registry::{Registry, UnknownAgent};
pub use run::{Control, Run, Stamped};
pub use runtime::{RunError, Runtime};
pub use session::{AnswerError, Opening, SendError, Sent, Session};
pub use stamp::StampedEvent;
pub use teamster_agents::agent::{self, Agent};
pub use teamster_agents::{launch, protocol, rules, transcript};
pub use teamster_config::{self as config, Journals};
pub use teamster_process::ledger::{self, Ledger};
pub use teamster_process::{Limitation, Signal, Supervisor, SupervisorError};
pub use teamster_process::{limits, startup};
pub use teamster_types::event::{self, Event, RunResult};
pub use teamster_types::request::{self, RunRequest};
pub use teamster_types::{json, recording, text};
pub use tokio_check::TokioError;
