//! Codex, as seen in version 0.169.0.
//!
//! A run is `codex exec --json`, with the prompt on standard input. Its lines tell each message, each step of reasoning and
//! each tool call whole: there are no deltas. The end is the line `turn.completed` or `turn.failed`; what stands between
//! (`error` lines, reconnects) decides nothing.

mod abilities;
mod config;
mod failure;
mod launch;
mod mcp;
mod mentions;
mod notices;
mod protocol;
mod tools;
mod wire;

use super::mcp::Health;
use super::{Abilities, Agent, Plan};
use crate::request::{RequestError, RunRequest};

/// The agent `codex`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn abilities(&self) -> Option<&'static Abilities> {
        Some(&abilities::ABILITIES)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::launch(request, &servers.names)?;
        let protocol = Box::new(protocol::Exec::new(request, servers));
        Ok(Plan { launch, protocol })
    }
}

fn unsupported(option: &'static str, why: impl Into<String>) -> RequestError {
    RequestError::Unsupported { agent: "codex".to_owned(), option, why: why.into() }
}
