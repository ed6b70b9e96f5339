//! The launch of the app-server, and the configuration of its thread.
//!
//! Settings that decide which configuration files are read are arguments of the process, which reads some before a thread exists.
//! All others are parameters of the thread.

use serde_json::{Map, Value};

use super::super::config::{self, Settings};
use super::super::error::unsupported;
use super::super::mcp::{self, ApprovalRequests, FailureChannel};
use super::super::startup;
use super::thread_request::{Approver, Confinement};
use crate::agent::mcp::Names;
use crate::launch::{Launch, Stdin};
use teamster_types::request::{RequestError, RunRequest};

/// Returns how to start the app-server, and the configuration of its thread.
pub(super) fn launch(
    request: &RunRequest,
    names: &Names,
    approver: Approver,
) -> Result<(Launch, Map<String, Value>), RequestError> {
    let program = request.cli_path.clone().unwrap_or_else(|| "codex".into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    launch.stdin = Stdin::Open;
    launch.arg("app-server");
    let mut process = Settings::default();
    startup::limit_connection_retries(&mut process);
    startup::distrust_project(&mut process, request)?;
    process.flags(&mut launch);
    let mut thread = Settings::default();
    if let Some(effort) = &request.effort {
        thread.set("model_reasoning_effort", config::string(effort));
    }
    Confinement::of(request, approver).configure(request, &mut thread)?;
    let approvals = match approver {
        Approver::Caller => ApprovalRequests::Sent,
        Approver::None => ApprovalRequests::NotSent,
    };
    mcp::servers(&mut launch, &mut thread, request, names, FailureChannel::Protocol, approvals)?;
    for argument in &request.cli_args {
        launch.arg(argument.as_str());
    }
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
    let config = thread
        .to_json()
        .ok_or_else(|| unsupported("this request", "it contains a value that cannot be written as TOML"))?;
    Ok((launch, config))
}
