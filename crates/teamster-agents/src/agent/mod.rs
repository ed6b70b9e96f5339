//! The agents: one folder for each, with its launch, its protocol and its capabilities.
//!
//! To add an agent, add a folder whose type implements [`Agent`], and register it in the crate `teamster`.
//!
//! Shared by several agents:
//! - `capabilities`, `keys`, `credential`: what an agent supports, and which credentials it uses.
//! - `failure`: failure tables, and the function that reads them.
//! - `mcp`: names and failures of MCP servers.
//! - `rpc`, `line`, `line_shape`, `json_string`: JSON-RPC, and the reading of JSON lines.
//! - `content`, `permission`, `form`, `limit`: parts of events.
//! - [`session_store`]: where the CLIs store their sessions.

pub mod acp;
mod capabilities;
pub mod claude;
pub mod codex;
mod content;
mod credential;
mod failure;
mod form;
pub mod gemini;
mod json_string;
mod keys;
mod limit;
mod line;
mod line_shape;
mod mcp;
pub mod opencode;
mod permission;
mod rpc;
pub mod session_store;

pub use capabilities::{Capabilities, ConfiguredKeys, EffortLevels, Feature, Support};
pub use credential::CredentialPlaces;
pub use failure::{FailureRow, Matcher, Source};
pub use keys::{OwnKeys, WITHHELD_KEYS};
pub use limit::{LimitEnd, LocalTime, end_of as limit_end};
pub use session_store::SessionStore;

use std::path::Path;

use crate::launch::Launch;
use crate::protocol::Protocol;
use teamster_types::event::Credential;
use teamster_types::request::{RequestError, RunRequest};

/// An agent CLI that Teamster can drive.
pub trait Agent: Send + Sync {
    /// Returns the agent's name in Teamster, in lower case.
    fn name(&self) -> &str;

    /// Returns the program to start if a request names none: a path, or a name that is searched in PATH.
    fn program(&self) -> Option<&Path> {
        self.capabilities().map(|capabilities| Path::new(capabilities.program))
    }

    /// Returns what the agent can do; `None` if the agent checks requests itself.
    ///
    /// A request is checked against it before [`plan`](Self::plan) is called. An option that the agent ignores is reported
    /// as a warning.
    fn capabilities(&self) -> Option<&'static Capabilities> {
        None
    }

    /// Returns how the CLI stores its sessions; `None` if that is unknown.
    fn session_store(&self) -> Option<SessionStore> {
        None
    }

    /// Returns the credential that the CLI will use for a request, if that is certain. It never contains the secret.
    fn credential(&self, request: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Credential> {
        _ = (request, places);
        None
    }

    /// Plans a run: how to start the CLI, and the state machine that interprets its output.
    ///
    /// The request has been validated, and its attachments have been read.
    ///
    /// # Errors
    /// If the agent cannot do what the request needs.
    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError>;

    /// Plans a session, whose process serves many turns. Returns `None` if the agent has no such interface. Then each turn is
    /// a run that resumes the conversation.
    ///
    /// The request has been validated as the options of a session: it has no prompt.
    ///
    /// # Errors
    /// If the agent cannot do what the request needs.
    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        _ = request;
        Ok(None)
    }
}

/// A run that is ready to start.
pub struct Plan {
    /// How to start the CLI.
    pub launch: Launch,
    /// The state machine that interprets its output.
    pub protocol: Box<dyn Protocol>,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Plan").field("launch", &self.launch).finish_non_exhaustive()
    }
}
