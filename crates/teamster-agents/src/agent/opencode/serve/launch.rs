//! The launch of `opencode serve`.

use super::super::permissions::Approver;
use super::super::{environment, session};
use crate::agent::mcp::Names;
use crate::launch::{Launch, LocalServer};
use teamster_types::request::{RequestError, RunRequest};

/// Returns how to start the server. Its arguments contain nothing of the request.
pub(super) fn launch(request: &RunRequest, names: &Names, approver: Approver) -> Result<Launch, RequestError> {
    let mut launch = environment::program(request);
    // Port 0 is 4096 if that is free, and otherwise any free port.
    for part in ["serve", "--hostname=127.0.0.1", "--port=0", "--print-logs", "--log-level=WARN"] {
        launch.arg(part);
    }
    environment::add(&mut launch, request, names, approver)?;
    let server = LocalServer { user: "opencode", password_variable: "OPENCODE_SERVER_PASSWORD" };
    launch.env("OPENCODE_SERVER_USERNAME", server.user);
    launch.server = Some(server);
    launch.refused = session::invalid_id(&request.conversation);
    Ok(launch)
}
