//! The launch of a run of Gemini CLI.

use super::super::launch::{add_common, conversation, new};
use super::super::policy;
use super::prompt;
use crate::agent::mcp::Names;
use crate::launch::{Launch, Stdin};
use teamster_types::request::{OutputMode, RequestError, RunRequest};

/// Returns how to start a run.
pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = new(request);
    let batch = request.output == OutputMode::Batch;
    launch.flag("--output-format", if batch { "json" } else { "stream-json" });
    conversation(&mut launch, &request.conversation)?;
    let prompt = prompt::of(request)?;
    add_common(&mut launch, request, names, policy::ESCALATION, prompt.command)?;
    launch.stdin = Stdin::Write(prompt.stdin.into_bytes());
    Ok(launch)
}
