//! The `codex exec` interface: one run per process, with its lines as output.

mod launch;
mod protocol;
mod wire;

use super::mcp;
use crate::agent::Plan;
use crate::agent::mcp::Health;
use teamster_types::request::{RequestError, RunRequest};

/// Plans a run.
pub(super) fn run(request: &RunRequest) -> Result<Plan, RequestError> {
    let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
    let launch = launch::launch(request, &servers.names)?;
    let protocol = Box::new(protocol::Exec::new(request, servers));
    Ok(Plan { launch, protocol })
}
