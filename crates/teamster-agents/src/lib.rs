//! The agents: one state machine for each agent CLI, without I/O.
//!
//! Everything that differs between agents is here, as data and pure functions. A [`Protocol`](protocol::Protocol) receives
//! what happened and returns what must be done. The driver (in the crate `teamster`) does it.
//!
//! ```
//! use teamster_agents::agent::{Agent, claude::Claude};
//! use teamster_agents::protocol::{Action, Input, ProcessAction};
//! use teamster_types::request::RunRequest;
//!
//! let request = RunRequest::new("Greet me");
//! request.validate()?;
//! let mut plan = Claude.plan(&request)?;
//! let mut actions = Vec::new();
//! plan.protocol.handle(Input::Started, &mut actions);
//! assert!(matches!(&actions[..], [Action::Process(ProcessAction::Write(_)), ..])); // the prompt goes to standard input
//! # Ok::<(), teamster_types::request::RequestError>(())
//! ```
//!
//! - [`agent`]: one folder for each agent, and what several agents share.
//! - [`launch`]: how to start a CLI, as plain data.
//! - [`protocol`]: the interface between an agent's state machine and the driver.
//! - [`rules`]: allow and deny rules for tools, applied to an agent's permission requests.
//! - [`transcript`]: the order of events, enforced in one place for all agents.
//!
//! Invariants: nothing here uses files, sockets, clocks, environment variables or processes (lints ban them). Nothing here
//! waits. No input from outside causes a panic.

mod bounded;

pub mod agent;
pub mod launch;
pub mod protocol;
pub mod rules;
pub mod transcript;
