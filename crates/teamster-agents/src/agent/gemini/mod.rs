//! Gemini CLI, as seen in version 0.61.0.
//!
//! A session is one process that speaks ACP (`live`). A run is one headless process: `--output-format stream-json`, the prompt on standard input. What the CLI takes only from
//! its settings goes by a stand-in for the user's home, whose files stay as they are. Batch mode gives one document, on
//! standard output, or on standard error when the run failed.

mod capabilities;
mod document;
mod failure;
mod launch;
mod live;
mod log;
mod mcp;
mod outcome;
mod policy;
mod prompt;
mod protocol;
mod settings;
mod tools;
mod wire;

use super::acp::Client;
use super::mcp::Health;
use super::{Agent, Capabilities, Plan};
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

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::launch(request, &servers.names)?;
        Ok(Plan { launch, protocol: Box::new(protocol::Headless::new(request, servers)) })
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        // It counts calls of the model over all turns, and cannot tell which session is the newest: runs can.
        if request.max_turns.is_some() || request.conversation == Conversation::Continue {
            return Ok(None);
        }
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::session(request, &servers.names)?;
        let live = Box::new(live::Live::new(servers, request.prompt_mode));
        // Its MCP servers stand in its settings, as those of a run do.
        let client = Client::new(live, request, Vec::new(), true)?;
        Ok(Some(Plan { launch, protocol: Box::new(client) }))
    }
}

/// What Gemini CLI cannot do, and only the request's own values tell.
fn unsupported(option: &'static str, why: impl Into<String>) -> RequestError {
    RequestError::Unsupported { agent: "gemini".to_owned(), option, why: why.into() }
}
