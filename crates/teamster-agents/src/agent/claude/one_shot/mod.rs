//! The one-shot interfaces: `-p` with a plain prompt on standard input, whose output is one document (batch) or lines (exec).

use super::control;
use crate::launch::{Launch, Stdin};
use teamster_types::request::{AgentInterface, Conversation, OutputMode, PromptMode, RequestError, RunRequest};

/// The maximum length of an argument on Linux is 128 KiB. This leaves room for the flag.
const MAX_ARGUMENT_BYTES: usize = 100 * 1024;

/// Whether the CLI reads one prompt as plain text, and no further input.
pub(super) fn is_one_shot(request: &RunRequest) -> bool {
    request.output == OutputMode::Batch || request.interface == AgentInterface::Exec
}

/// The warning that a one-shot run of 2.1.276 or newer may have used another system prompt.
pub(super) const KEPT_SYSTEM_PROMPT: &str = "this version of the CLI keeps the system prompt with which the session was started; another \
    one has an effect in streaming output with mode auto";

/// Whether the run resumes a session with a system prompt, and cannot request that it replaces the stored one: 2.1.197 rejects the
/// flag for it, and only the session mode has the `initialize` request.
pub(super) fn may_keep_system_prompt(request: &RunRequest) -> bool {
    is_one_shot(request) && request.conversation != Conversation::New && control::has_system_prompt(request)
}

/// Adds the flags of the batch document.
pub(super) fn batch_output(launch: &mut Launch, request: &RunRequest) {
    launch.arg("--output-format").arg("json");
    if !request.mcp_servers.is_empty() {
        // The document is then a list of all lines. The first line reports servers that failed.
        launch.arg("--verbose");
    }
}

/// Allows the edits of the mode `edit`, since the CLI cannot request permission.
pub(super) fn allow_edits(launch: &mut Launch, request: &RunRequest) {
    launch.flag("--allowedTools", "Edit(./**)");
    // These characters have a meaning in a rule. Edits in such directories are not allowed.
    let is_plain =
        |dir: &str| dir.starts_with('/') && !dir.contains(['*', '?', '[', ']', '!', '\\', '(', ')', ',', '#']);
    for dir in request.add_dirs.iter().filter_map(|dir| dir.to_str()).filter(|dir| is_plain(dir)) {
        launch.flag("--allowedTools", format_args!("Edit(/{}/**)", dir.trim_end_matches('/')));
    }
}

/// Passes the prompt on standard input, and the schema as an argument.
pub(super) fn prompt(launch: &mut Launch, request: &RunRequest) -> Result<(), RequestError> {
    let reject = |option, why: &str| {
        let why = format!("{why}; use streaming output in mode auto");
        Err(RequestError::Unsupported { agent: "claude".to_owned(), option, why })
    };
    if request.prompt_mode == PromptMode::Literal {
        return reject("a literal prompt in batch or exec mode", "plain text is always interpreted");
    }
    if !request.attachments.is_empty() {
        return reject("attachments in batch or exec mode", "the prompt is plain text there");
    }
    if let Some(schema) = &request.schema {
        let schema = schema.to_string();
        if schema.len() > MAX_ARGUMENT_BYTES {
            return reject("a schema of this length in batch or exec mode", "it is an argument there");
        }
        launch.flag("--json-schema", schema);
    }
    // Standard input may have 10 MB, and may contain NUL bytes (recording `edge_nul`), in contrast to an argument.
    launch.stdin = Stdin::Write(request.prompt.clone().into_bytes());
    Ok(())
}
