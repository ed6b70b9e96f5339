//! The agents: for each a folder with its launch, its protocol and the facts they rest on.
//!
//! A new agent is one folder here that implements [`Agent`]; nothing else changes.

pub mod acp;
mod capabilities;
pub mod claude;
pub mod codex;
mod failure;
pub mod gemini;
mod keys;
mod limit;
mod line;
mod mcp;
pub mod opencode;
mod permission;
mod rpc;

pub use capabilities::{Capabilities, Feature, Support};
pub use failure::{FailureRow, Matcher, Source};
pub use keys::{OwnKeys, WITHHELD_KEYS};

use std::path::Path;

use crate::launch::Launch;
use crate::protocol::Protocol;
use teamster_types::request::{RequestError, RunRequest};

/// An agent CLI that Teamster can drive.
pub trait Agent: Send + Sync {
    /// Its name in Teamster, in lower case.
    fn name(&self) -> &str;

    /// Its program, where a request names none: a name that is looked up in PATH, or a path.
    fn program(&self) -> Option<&Path> {
        self.capabilities().map(|capabilities| Path::new(capabilities.program))
    }

    /// What the agent can do: requests are checked against it before [`plan`](Self::plan) is asked, and what is ignored
    /// is told in a warning. `None` where the agent checks requests itself.
    fn capabilities(&self) -> Option<&'static Capabilities> {
        None
    }

    /// Plans a run: how to start the CLI, and the state machine that understands it.
    ///
    /// The request has been validated, and its attachments have been read.
    ///
    /// # Errors
    /// When the agent cannot do what the request needs.
    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError>;

    /// Plans a session: a process that lives through many turns. `None` where the agent has no such form: then each turn
    /// is a run of its own, which goes on with the conversation.
    ///
    /// The request has been validated as a session's frame: it has no prompt.
    ///
    /// # Errors
    /// When the agent cannot do what the request needs.
    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        _ = request;
        Ok(None)
    }
}

/// A run that could be started.
pub struct Plan {
    /// How to start the CLI.
    pub launch: Launch,
    /// What understands it.
    pub protocol: Box<dyn Protocol>,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Plan").field("launch", &self.launch).finish_non_exhaustive()
    }
}
