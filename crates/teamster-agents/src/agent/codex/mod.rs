//! Codex, tested with version 0.169.0.
//!
//! It has two interfaces. `app_server::serves` selects one for a request.
//! - `app_server` (`codex app-server`): sessions, and runs by default. It reports deltas, permission requests, the usage of each
//!   turn, and named failures.
//! - `exec` (`codex exec --json`): requests that only this interface can serve, such as batch runs. The prompt is standard
//!   input. Messages, reasoning and tool calls are reported when they are complete. The last line is `turn.completed` or
//!   `turn.failed`.

mod app_server;
mod exec;

mod answer;
mod capabilities;
mod config;
mod credential;
mod error;
mod failure;
mod items;
mod mcp;
mod mentions;
mod notices;
mod prompt;
mod session_store;
mod startup;
mod thread;
mod tools;

use super::{Agent, Capabilities, CredentialPlaces, Plan, SessionStore};
use teamster_types::event::Credential;
use teamster_types::request::{RequestError, RunRequest};

/// The agent `codex`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn capabilities(&self) -> Option<&'static Capabilities> {
        Some(&capabilities::CAPABILITIES)
    }

    fn session_store(&self) -> Option<SessionStore> {
        Some(SessionStore::Files(&session_store::STORE))
    }

    fn credential(&self, request: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Credential> {
        credential::find(request, places)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        if app_server::serves(request) {
            return app_server::run(request);
        }
        exec::run(request)
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        app_server::serves(request).then(|| app_server::session(request)).transpose()
    }
}
