//! Claude Code, as seen in version 2.1.197.
//!
//! A run is one turn of the CLI's stream-json session mode: the prompt goes to standard input as a line of JSON, stdin
//! stays open until the result has been read, and an interrupt is a control request. Batch mode is the plain one-shot
//! launch with a single JSON document at the end; its document goes through the same state machine.

mod capabilities;
mod control;
mod dialog;
mod edits;
mod failure;
mod launch;
mod mcp;
mod message;
mod notices;
mod outcome;
mod protocol;
mod tools;
mod wire;

use super::mcp::Health;
use super::{Agent, Capabilities, Plan};
use teamster_types::request::{RequestError, RunRequest};

/// The agent `claude`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claude;

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn capabilities(&self) -> Option<&'static Capabilities> {
        Some(&capabilities::CAPABILITIES)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::run(request, &servers.names)?;
        let protocol = Box::new(protocol::Stream::new(request, servers)?);
        Ok(Plan { launch, protocol })
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::session(request, &servers.names)?;
        let protocol = Box::new(protocol::Stream::session(request, servers));
        Ok(Some(Plan { launch, protocol }))
    }
}
