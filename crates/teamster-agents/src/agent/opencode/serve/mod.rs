//! The server interface of OpenCode (`opencode serve`): sessions, and plain runs as one turn.
//!
//! 1. The CLI prints the address of its server.
//! 2. A session is created, found or forked, and its events are read.
//! 3. A prompt is sent. Its turn ends when the session is idle.
//!
//! The server does not exit by itself, so it is stopped after the run or session.

mod calls;
mod launch;
mod log_errors;
mod messages;
mod prompt;
mod protocol;
mod requests;
mod steering;
mod tool_calls;
mod turn;
mod wire;

use super::mcp;
use super::permissions::Approver;
use crate::agent::Plan;
use crate::agent::mcp::Health;
use protocol::ServeProtocol;
use teamster_types::request::{AgentInterface, OrphanPolicy, RequestError, RunRequest};

/// Returns whether the server can serve this request. Otherwise `one_shot` serves it: extra arguments are those of `opencode
/// run`, and background processes can be kept only if the CLI exits by itself.
pub(super) fn serves(request: &RunRequest) -> bool {
    request.interface != AgentInterface::Exec && request.cli_args.is_empty() && request.orphans != OrphanPolicy::Keep
}

/// Plans a run, which is one turn of a session.
pub(super) fn run(request: &RunRequest) -> Result<Plan, RequestError> {
    let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
    let launch = launch::launch(request, &servers.names, Approver::None)?;
    let protocol = Box::new(ServeProtocol::run(request, servers)?);
    Ok(Plan { launch, protocol })
}

/// Plans a session.
pub(super) fn session(request: &RunRequest) -> Result<Plan, RequestError> {
    let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
    let launch = launch::launch(request, &servers.names, Approver::Caller)?;
    let protocol = Box::new(ServeProtocol::session(request, servers)?);
    Ok(Plan { launch, protocol })
}
