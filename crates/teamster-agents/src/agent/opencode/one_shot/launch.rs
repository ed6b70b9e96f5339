//! The launch of `opencode run`.
//!
//! Texts are standard input or private files, never arguments. The working directory is `PWD`: `--dir` would be resolved
//! relative to it.

use super::super::permissions::Approver;
use super::super::{environment, session};
use crate::agent::mcp::Names;
use crate::launch::{Arg, Launch, PrivateFile, Stdin};
use teamster_types::request::{Attachment, Conversation, RequestError, RunRequest};

/// Returns how to start a run.
pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = environment::program(request);
    launch.arg("run");
    attachments(&mut launch, request)?;
    // Only the log reports an unknown model, or an MCP server that failed.
    for part in ["--format=json", "--thinking", "--print-logs", "--log-level=WARN"] {
        launch.arg(part);
    }
    launch.flag("--agent", environment::AGENT);
    conversation(&mut launch, &request.conversation);
    launch.refused = session::invalid_id(&request.conversation);
    if let Some(model) = &request.model {
        launch.flag("--model", model);
    }
    if let Some(effort) = &request.effort {
        launch.flag("--variant", effort);
    }
    for argument in &request.cli_args {
        launch.arg(argument.as_str());
    }
    environment::add(&mut launch, request, names, Approver::None)?;
    launch.stdin = Stdin::Write(request.prompt.clone().into_bytes());
    Ok(launch)
}

fn conversation(launch: &mut Launch, conversation: &Conversation) {
    match conversation {
        // A new session without a title requests one from the model. No usage figure of the run includes that call.
        Conversation::New => {
            launch.flag("--title", "Teamster");
        }
        Conversation::Resume(id) => {
            launch.flag("--session", id.as_str());
        }
        Conversation::Fork(id) => {
            launch.flag("--session", id.as_str()).arg("--fork");
        }
        Conversation::Continue => {
            launch.flag("--title", "Teamster").arg("--continue");
        }
        Conversation::ForkNewest => {
            launch.flag("--title", "Teamster").arg("--continue").arg("--fork");
        }
    }
}

/// Adds the attachments. `--file` takes all following values; with `=`, and before another flag, it takes one.
fn attachments(launch: &mut Launch, request: &RunRequest) -> Result<(), RequestError> {
    for (index, attachment) in request.attachments.iter().enumerate() {
        let Attachment::Data { name, data } = attachment else {
            let (name, problem) = ("a path".to_owned(), "it has not been read".to_owned());
            return Err(RequestError::Attachment { name, problem });
        };
        let file = format!("{}-{}", index + 1, file_name(name));
        launch.files.push(PrivateFile { name: file.clone().into(), content: data.clone() });
        launch.args.push(Arg::PathOf { before: "--file=".to_owned(), file: file.into(), after: String::new() });
    }
    Ok(())
}

/// Returns the last 100 characters of a name as a path component. Characters other than letters, digits, `-`, `_` and `.` become
/// `_`.
fn file_name(name: &str) -> String {
    let clean: Vec<char> =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    clean.iter().skip(clean.len().saturating_sub(100)).collect()
}
