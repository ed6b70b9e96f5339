//! Runs of Gemini CLI: one process per run, with its lines or its document as output.

mod document;
mod failure;
mod launch;
mod prompt;
mod protocol;
mod tools;
mod usage;
mod wire;

use super::mcp;
use crate::agent::Plan;
use crate::agent::mcp::Health;
use teamster_types::request::{RequestError, RunRequest};

/// Plans a run.
pub(super) fn run(request: &RunRequest) -> Result<Plan, RequestError> {
    let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
    let launch = launch::launch(request, &servers.names)?;
    Ok(Plan { launch, protocol: Box::new(protocol::OneShot::new(request, servers)) })
}
