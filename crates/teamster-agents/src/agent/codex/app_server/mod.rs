//! The app-server interface of Codex: JSON-RPC in lines over standard streams, with one thread per process.
//!
//! It serves sessions, and plain runs as one turn. Prompts, configuration and instructions are standard input, never arguments.

mod approvals;
mod launch;
mod prompt_input;
mod protocol;
mod rate_limits;
mod thread_request;
mod thread_usage;
mod turn;
mod turn_end;
mod wire;

use super::mcp;
use super::prompt;
use crate::agent::Plan;
use crate::agent::mcp::Health;
use prompt_input::PromptEncoder;
use serde_json::Value;
use teamster_types::request::{AgentInterface, Conversation, OutputMode, RequestError, RunRequest, with_instructions};
use thread_request::{Approver, ThreadRequest};

/// Returns whether the app-server can serve this request. Otherwise `exec` serves it.
pub(super) fn serves(request: &RunRequest) -> bool {
    let absolute = request.cwd.as_deref().is_some_and(std::path::Path::is_absolute);
    request.interface != AgentInterface::Exec
        && request.output != OutputMode::Batch
        && are_shared_arguments(&request.cli_args)
        // The newest thread of a directory is searched by its absolute path.
        && (absolute || !matches!(request.conversation, Conversation::Continue | Conversation::ForkNewest))
        && (absolute || request.add_dirs.iter().all(|dir| dir.is_absolute()))
}

/// Returns whether both interfaces accept these arguments.
fn are_shared_arguments(arguments: &[String]) -> bool {
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        let joined = ["--config=", "--enable=", "--disable="].iter().any(|flag| argument.starts_with(flag));
        let takes_a_value = matches!(argument, "-c" | "--config" | "--enable" | "--disable");
        if !(joined || argument == "--strict-config" || takes_a_value && arguments.next().is_some()) {
            return false;
        }
    }
    true
}

/// Plans a run, which is one turn of a thread.
pub(super) fn run(request: &RunRequest) -> Result<Plan, RequestError> {
    let text = with_instructions(prompt::instructions(request), &request.prompt);
    let input = PromptEncoder::new(request).input(&text, &request.attachments)?;
    plan(request, Some(input))
}

/// Plans a session.
pub(super) fn session(request: &RunRequest) -> Result<Plan, RequestError> {
    plan(request, None)
}

fn plan(request: &RunRequest, prompt: Option<Value>) -> Result<Plan, RequestError> {
    let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
    let approver = if prompt.is_some() { Approver::None } else { Approver::Caller };
    let (launch, config) = launch::launch(request, &servers.names, approver)?;
    let thread_request = ThreadRequest::of(request, config, approver)?;
    let protocol = Box::new(protocol::AppServer::new(request, servers, thread_request, prompt));
    Ok(Plan { launch, protocol })
}
