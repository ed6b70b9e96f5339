//! The launch of `codex exec` 0.169.0.
//!
//! The prompt goes to standard input, because as an argument it could be read as a flag or a subcommand, or be too long. Flags are
//! written before the subcommand, because `resume` and `fork` reject some of them. They are written for each run, because a thread
//! does not store them. Values are written as `--flag=value` or as quoted TOML.

use std::path::Path;

use super::super::config::{self, Settings, Table};
use super::super::error::unsupported;
use super::super::mcp::{self, ApprovalRequests, FailureChannel};
use super::super::prompt::{self, Content, Image};
use super::super::{startup, thread};
use crate::agent::mcp::Names;
use crate::launch::{Arg, Launch, Stdin};
use teamster_types::request::{
    Conversation, PermissionMode, ProjectTrust, RequestError, RunRequest, with_instructions,
};

/// The maximum bytes of an argument on Linux, with its terminating zero byte.
const LONGEST_ARGUMENT: usize = 128 * 1024;

/// The names of the private files of images.
const IMAGES: [&str; 16] = [
    "image-01", "image-02", "image-03", "image-04", "image-05", "image-06", "image-07", "image-08", "image-09",
    "image-10", "image-11", "image-12", "image-13", "image-14", "image-15", "image-16",
];

/// Returns how to start `codex exec` for this request.
pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    if request.max_tokens.is_some() {
        return Err(unsupported("max_tokens in exec mode", "it reports tokens only at the end of the run"));
    }
    let program = request.cli_path.clone().unwrap_or_else(|| "codex".into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    launch.arg("exec").arg("--json");
    // The process starts in this directory, so a relative path would be resolved twice.
    if let Some(cwd) = request.cwd.as_deref().filter(|cwd| cwd.is_absolute()).and_then(Path::to_str) {
        launch.flag("--cd", cwd);
    }
    let prompt = prompt(&mut launch, request)?;
    // `--image` takes all values up to the next flag, which is this one. `project_trust` decides what the directory may
    // configure, so any directory is allowed.
    launch.arg("--skip-git-repo-check");
    let mut settings = Settings::default();
    startup::limit_connection_retries(&mut settings);
    model(&mut launch, &mut settings, request);
    permissions(&mut launch, request);
    mcp::servers(&mut launch, &mut settings, request, names, FailureChannel::Log, ApprovalRequests::NotSent)?;
    startup::distrust_project(&mut settings, request)?;
    disable_mentioned_skills(&mut settings, request, &prompt)?;
    settings.flags(&mut launch);
    for argument in &request.cli_args {
        launch.arg(argument.as_str());
    }
    conversation(&mut launch, &request.conversation)?;
    launch.arg("-");
    launch.stdin = Stdin::Write(prompt.into_bytes());
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
    let too_long = |arg: &Arg| matches!(arg, Arg::Text(text) if text.len() >= LONGEST_ARGUMENT);
    if launch.args.iter().any(too_long) {
        let why = "the addition to the system prompt, MCP servers and skills are arguments, whose length is limited";
        return Err(unsupported("an option of this length", why));
    }
    Ok(launch)
}

/// Returns the bytes for standard input. Images become private files.
fn prompt(launch: &mut Launch, request: &RunRequest) -> Result<String, RequestError> {
    let text = with_instructions(prompt::instructions(request), &request.prompt);
    let Content { mut text, images } = prompt::content(&text, &request.attachments)?;
    let mut files = IMAGES.iter();
    for Image { name, data, .. } in images {
        let file = files.next().ok_or_else(|| prompt::invalid_attachment(name, "there are too many images"))?;
        launch.flag_file("--image", file, data);
    }
    if text.starts_with('\u{feff}') {
        // The CLI removes the first one as a byte order mark.
        text.insert(0, '\u{feff}');
    }
    Ok(text)
}

fn model(launch: &mut Launch, settings: &mut Settings, request: &RunRequest) {
    if let Some(model) = &request.model {
        launch.flag("--model", model);
    }
    if let Some(effort) = &request.effort {
        settings.set("model_reasoning_effort", config::string(effort));
    }
    match (&request.system_prompt, &request.append_system_prompt) {
        (Some(system), more) => {
            // Not quoted: an absolute path is never TOML, and the CLI uses a value that is not TOML as text.
            let text = prompt::system_prompt(system, more.as_deref());
            launch.flag_file("--config=model_instructions_file", "instructions.md", text);
        }
        // There is no option that reads it from a file.
        (None, Some(more)) => settings.set("developer_instructions", config::string(more)),
        (None, None) => {}
    }
    if let Some(schema) = &request.schema {
        launch.flag_file("--output-schema", "schema.json", schema.to_string());
    }
}

/// Sets the sandbox. `exec` never requests permission: an action that the sandbox forbids fails.
fn permissions(launch: &mut Launch, request: &RunRequest) {
    match request.permissions.mode {
        PermissionMode::ReadOnly | PermissionMode::Ask => {
            // Otherwise a rule of the user that allows a command would run it outside the sandbox.
            launch.flag("--sandbox", "read-only").arg("--ignore-rules");
        }
        PermissionMode::Edit => {
            launch.flag("--sandbox", "workspace-write");
        }
        PermissionMode::Full => {
            launch.arg("--dangerously-bypass-approvals-and-sandbox");
        }
    }
    let is_read_only = matches!(request.permissions.mode, PermissionMode::ReadOnly | PermissionMode::Ask);
    if request.project_trust == ProjectTrust::Untrusted && !is_read_only {
        launch.arg("--ignore-rules");
    }
    for dir in &request.add_dirs {
        launch.flag("--add-dir", dir.display());
    }
}

/// Disables by name each skill that the prompt mentions. The CLI has no option to disable all skills.
fn disable_mentioned_skills(settings: &mut Settings, request: &RunRequest, text: &str) -> Result<(), RequestError> {
    if !prompt::is_literal(request) {
        return Ok(());
    }
    let names = prompt::skills(text)?;
    if !names.is_empty() {
        let disabled =
            |name: &str| Table::default().entry("name", config::string(name)).entry("enabled", "false").to_string();
        let entries: Vec<String> = names.into_iter().map(disabled).collect();
        settings.set("skills.config", format_args!("[{}]", entries.join(",")));
    }
    Ok(())
}

fn conversation(launch: &mut Launch, conversation: &Conversation) -> Result<(), RequestError> {
    match conversation {
        Conversation::New => {}
        Conversation::Resume(id) => {
            launch.arg("resume").arg(thread::parse_id("conversation=resume", id)?);
        }
        Conversation::Fork(id) => {
            launch.arg("fork").arg(thread::parse_id("conversation=fork", id)?);
        }
        // If this directory has no thread, the CLI starts a new one.
        Conversation::Continue => {
            launch.arg("resume").arg("--last");
        }
        // `exec fork` of 0.169.0 has no `--last`.
        Conversation::ForkNewest => {
            return Err(unsupported("conversation=fork", "`exec` forks a session only by its id"));
        }
    }
    Ok(())
}
