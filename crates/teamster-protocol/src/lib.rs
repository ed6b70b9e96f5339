//! The pure half of Teamster: what agents say, what callers ask, and one state machine for each agent CLI.
//!
//! Everything that differs between agents is here, as data and pure functions. A protocol is told what happened and
//! says what should be done; the driver (in the crate `teamster`) does it.
//!
//! ```
//! use teamster_protocol::agent::{Agent, claude::Claude};
//! use teamster_protocol::protocol::{Action, Input};
//! use teamster_protocol::request::RunRequest;
//!
//! let request = RunRequest::new("Say hello");
//! request.validate()?;
//! let mut plan = Claude.plan(&request)?;
//! let mut actions = Vec::new();
//! plan.protocol.handle(Input::Started, &mut actions);
//! assert!(matches!(&actions[..], [Action::Write(_), ..])); // the prompt goes to standard input
//! # Ok::<(), teamster_protocol::request::RequestError>(())
//! ```
//!
//! - [`event`]: the vocabulary of the stream.
//! - [`text`], [`json`]: text and JSON that an agent wrote, passed on as they are.
//! - [`request`]: what a caller asks for, validated when it is made.
//! - [`launch`]: how a CLI is to be started, as plain data.
//! - [`protocol`]: the seam between agents and the driver.
//! - [`transcript`]: the rules of the stream, kept for every agent in one place.
//! - [`agent`]: the agents themselves.
//!
//! Invariants: nothing here touches files, sockets, clocks, environment variables or processes (lints ban them);
//! nothing here waits; no input from outside can make it panic.

mod bounded;
mod names;

pub mod agent;
pub mod event;
pub mod json;
pub mod launch;
pub mod protocol;
pub mod recording;
pub mod request;
pub mod text;
pub mod transcript;
