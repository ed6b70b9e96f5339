//! The `opencode run` interface: one run per process, with its lines as output.
//!
//! It serves runs in `mode: exec`, runs with extra CLI arguments (which are those of `opencode run`), and runs whose background
//! processes are kept.

mod launch;
mod protocol;
mod wire;

use super::error::unsupported;
use super::mcp;
use crate::agent::Plan;
use crate::agent::mcp::Health;
use teamster_types::request::{RequestError, RunRequest};

/// Plans a run.
pub(super) fn run(request: &RunRequest) -> Result<Plan, RequestError> {
    let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
    if request.schema.is_some() {
        return Err(unsupported("schema", "`opencode run` cannot enforce a schema; the server interface can"));
    }
    let launch = launch::launch(request, &servers.names)?;
    let protocol = Box::new(protocol::OneShot::new(request, servers));
    Ok(Plan { launch, protocol })
}
