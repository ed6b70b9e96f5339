//! Codex by its app-server: JSON-RPC in lines over standard streams, one thread a process.
//!
//! The form of sessions, and of plain runs as one turn. Prompts, configuration and instructions go in by standard input, none
//! of them by argv.

mod approvals;
mod form;
mod launch;
mod limits;
mod opening;
mod protocol;
mod tally;
mod turn;
mod wire;

use serde_json::{Value, json};

use super::mcp;
use super::prompt::{self, Content};
use crate::agent::Plan;
use crate::agent::mcp::Health;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use teamster_types::request::{
    AgentInterface, Attachment, Conversation, OutputMode, RequestError, RunRequest, with_instructions,
};

/// Whether the app-server serves this request. The rest is for `exec`: what has no meaning but there.
pub(super) fn serves(request: &RunRequest) -> bool {
    let absolute = request.cwd.as_deref().is_some_and(std::path::Path::is_absolute);
    request.interface != AgentInterface::Exec
        && request.output != OutputMode::Batch
        && are_its_own(&request.cli_args)
        // The directory's threads are asked for by its whole name.
        && (absolute || request.conversation != Conversation::Continue)
        && (absolute || request.add_dirs.iter().all(|dir| dir.is_absolute()))
}

/// Whether these arguments are such as both forms take.
fn are_its_own(arguments: &[String]) -> bool {
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

/// One turn of a thread.
pub(super) fn run(request: &RunRequest) -> Result<Plan, RequestError> {
    let words = with_instructions(prompt::instructions(request), &request.prompt);
    let input = Speech::of(request).input(&words, &request.attachments)?;
    plan(request, Some(input))
}

/// A thread, whose turns come one by one.
pub(super) fn session(request: &RunRequest) -> Result<Plan, RequestError> {
    plan(request, None)
}

fn plan(request: &RunRequest, prompt: Option<Value>) -> Result<Plan, RequestError> {
    let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
    let asker = if prompt.is_some() { opening::Asker::Nobody } else { opening::Asker::Caller };
    let (launch, config) = launch::launch(request, &servers.names, asker)?;
    let opening = opening::Opening::of(request, config, asker)?;
    let protocol = Box::new(protocol::AppServer::new(request, servers, opening, prompt));
    Ok(Plan { launch, protocol })
}

/// How prompts are put.
#[derive(Debug)]
struct Speech {
    literal: bool,
    schema: Option<Value>,
}

impl Speech {
    fn of(request: &RunRequest) -> Self {
        Self { literal: prompt::is_literal(request), schema: request.schema.clone() }
    }

    /// What a turn begins with.
    fn input(&self, text: &str, attachments: &[Attachment]) -> Result<Value, RequestError> {
        let Content { text, images } = prompt::content(text, attachments)?;
        let mut input: Vec<Value> = Vec::new();
        for image in images {
            let data = BASE64_STANDARD.encode(image.data);
            input.push(json!({ "type": "image", "url": format!("data:{};base64,{data}", image.media_type) }));
        }
        if self.literal {
            // 0.169.0 takes a skill that is named so for the one that the words mean, and finds nothing there.
            let named = |name| json!({ "type": "skill", "name": name, "path": NOWHERE });
            input.extend(prompt::skills(&text)?.into_iter().map(named));
        }
        input.push(json!({ "type": "text", "text": text, "text_elements": [] }));
        Ok(input.into())
    }
}

/// A path at which there is nothing.
const NOWHERE: &str = "/nonexistent/teamster";
