//! Gemini CLI, tested with version 0.61.0.
//!
//! - A session is one process that uses ACP (`session`).
//! - A run is one process without ACP (`one_shot`). The prompt is standard input. The output is lines (`stream-json`), or in batch
//!   mode one document.
//!
//! Some options exist only in the settings. They are passed in a shadow home, and the user's files do not change (`settings`).

mod session;
mod session_store;

mod one_shot;

mod capabilities;
mod credential;
mod error;
mod failure;
mod launch;
mod log;
mod mcp;
mod policy;
mod settings;
mod tools;

use super::acp::Client;
use super::mcp::Health;
use super::{Agent, Capabilities, CredentialPlaces, Plan, SessionStore};
use teamster_types::event::Credential;
use teamster_types::request::{Conversation, RequestError, RunRequest};

/// The agent `gemini`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Agent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn capabilities(&self) -> Option<&'static Capabilities> {
        Some(&capabilities::CAPABILITIES)
    }

    fn session_store(&self) -> Option<SessionStore> {
        Some(SessionStore::Files(&session_store::STORE))
    }

    fn credential(&self, _: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Credential> {
        credential::find(places)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        one_shot::run(request)
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        // The CLI counts model calls over all turns, and ACP does not identify the newest session. Runs support both options.
        if request.max_turns.is_some()
            || matches!(request.conversation, Conversation::Continue | Conversation::ForkNewest)
        {
            return Ok(None);
        }
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::session(request, &servers.names)?;
        let dialect = Box::new(session::GeminiDialect::new(servers, request.prompt_mode));
        // The settings contain the MCP servers, as for runs.
        let client = Client::new(dialect, request, Vec::new(), true)?;
        Ok(Some(Plan { launch, protocol: Box::new(client) }))
    }
}
