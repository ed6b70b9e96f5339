//! Codex, as seen in version 0.169.0.
//!
//! It has two forms. Sessions, and runs that are not asked to be otherwise, go by `codex app-server`: deltas, requests for
//! leave, figures of each turn, failures by name (`app_server`). What has a meaning in the one-shot form alone goes by
//! `codex exec --json`, with the prompt on standard input: each message, each step of reasoning and each tool call comes whole
//! there, and the end is the line `turn.completed` or `turn.failed`. Which form serves a request says `app_server::serves`.

mod answer;
mod app_server;
mod capabilities;
mod config;
mod failure;
mod launch;
mod mcp;
mod mentions;
mod notices;
mod prompt;
mod protocol;
mod thread;
mod tools;
mod wire;

use super::mcp::Health;
use super::{Agent, Capabilities, Plan};
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

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        if app_server::serves(request) {
            return app_server::run(request);
        }
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::launch(request, &servers.names)?;
        let protocol = Box::new(protocol::Exec::new(request, servers));
        Ok(Plan { launch, protocol })
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        app_server::serves(request).then(|| app_server::session(request)).transpose()
    }
}

fn unsupported(option: &'static str, why: impl Into<String>) -> RequestError {
    RequestError::Unsupported { agent: "codex".to_owned(), option, why: why.into() }
}
