//! How Codex 0.169.0 is started.
//!
//! The prompt goes to standard input, behind `-`: as an argument it could be a flag, a subcommand or too long (trap 7).
//! Flags stand between `exec` and its subcommand, since `resume` and `fork` refuse some of them behind it, and are given
//! each time, since a thread remembers none (facts, 4). Values go as `--flag=value` or as quoted TOML.

use std::path::Path;

use super::config::{self, Settings, Table};
use super::mcp::{self, Asks, Told};
use super::prompt::{self, Content, Image};
use super::unsupported;
use crate::agent::mcp::Names;
use crate::launch::{Arg, Launch, Stdin};
use teamster_types::event::SessionId;
use teamster_types::request::{
    Conversation, PermissionMode, ProjectTrust, RequestError, RunRequest, with_instructions,
};

/// Bytes of an argument, its end included, that Linux passes on.
const LONGEST_ARGUMENT: usize = 128 * 1024;

/// Private files of images: a file's name is fixed.
const IMAGES: [&str; 16] = [
    "image-01", "image-02", "image-03", "image-04", "image-05", "image-06", "image-07", "image-08", "image-09",
    "image-10", "image-11", "image-12", "image-13", "image-14", "image-15", "image-16",
];

pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    if request.max_tokens.is_some() {
        return Err(unsupported("--max-tokens in exec mode", "tokens are told there when the run is over"));
    }
    let program = request.cli_path.clone().unwrap_or_else(|| "codex".into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    launch.arg("exec").arg("--json");
    // The process starts there anyway; a relative one would count from there.
    if let Some(cwd) = request.cwd.as_deref().filter(|cwd| cwd.is_absolute()).and_then(Path::to_str) {
        launch.flag("--cd", cwd);
    }
    let prompt = prompt(&mut launch, request)?;
    // `--image` takes as many values as follow: this flag ends them. Any directory may be worked in; what it may decide is
    // said by `project_trust`.
    launch.arg("--skip-git-repo-check");
    let mut settings = Settings::default();
    bounded(&mut settings);
    model(&mut launch, &mut settings, request);
    permissions(&mut launch, request);
    mcp::servers(&mut launch, &mut settings, request, names, Told::ByLog, Asks::ForNothing)?;
    trust(&mut settings, request)?;
    literal(&mut settings, request, &prompt)?;
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
        let why = "what is added to the system prompt, MCP servers and skills go by argv";
        return Err(unsupported("an option of this length", why));
    }
    Ok(launch)
}

/// A refused connection would be tried again for ever (facts, 5). As a key and not as `--disable`, so that a version without
/// it starts all the same.
pub(super) fn bounded(settings: &mut Settings) {
    settings.set("features.unbounded_connection_retries", "false");
}

/// What goes to standard input; images become private files.
fn prompt(launch: &mut Launch, request: &RunRequest) -> Result<String, RequestError> {
    let words = with_instructions(prompt::instructions(request), &request.prompt);
    let Content { mut text, images } = prompt::content(&words, &request.attachments)?;
    let mut files = IMAGES.iter();
    for Image { name, data, .. } in images {
        let file = files.next().ok_or_else(|| prompt::wrong(name, "there are too many images"))?;
        launch.flag_file("--image", file, data);
    }
    if text.starts_with('\u{feff}') {
        // The first one is taken for a byte order mark, and is gone.
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
            // Unquoted: an absolute path is never TOML, and what is not TOML is taken as it is.
            launch.flag_file("--config=model_instructions_file", "instructions.md", whole(system, more.as_deref()));
        }
        // There is no file for it: the prompt that it is added to is the CLI's own.
        (None, Some(more)) => settings.set("developer_instructions", config::string(more)),
        (None, None) => {}
    }
    if let Some(schema) = &request.schema {
        launch.flag_file("--output-schema", "schema.json", schema.to_string());
    }
}

/// A system prompt, and what is added to it.
pub(super) fn whole(system: &str, more: Option<&str>) -> String {
    more.map_or_else(|| system.to_owned(), |more| format!("{system}\n\n{more}"))
}

/// In `exec` nothing is ever asked for: what the sandbox does not allow fails.
fn permissions(launch: &mut Launch, request: &RunRequest) {
    match request.permissions.mode {
        PermissionMode::ReadOnly | PermissionMode::Ask => {
            // A rule of the user's that allows a command runs it outside of the sandbox.
            launch.flag("--sandbox", "read-only").arg("--ignore-rules");
        }
        PermissionMode::Edit => {
            launch.flag("--sandbox", "workspace-write");
        }
        PermissionMode::Full => {
            launch.arg("--dangerously-bypass-approvals-and-sandbox");
        }
    }
    let reads = matches!(request.permissions.mode, PermissionMode::ReadOnly | PermissionMode::Ask);
    if request.project_trust == ProjectTrust::Untrusted && !reads {
        launch.arg("--ignore-rules");
    }
    for dir in &request.add_dirs {
        launch.flag("--add-dir", dir.display());
    }
}

/// A trusted directory's `.codex` can start MCP servers and send the key elsewhere (trap 15); in any directory AGENTS.md and
/// skills are read.
pub(super) fn trust(settings: &mut Settings, request: &RunRequest) -> Result<(), RequestError> {
    if request.project_trust == ProjectTrust::Trusted {
        return Ok(());
    }
    let cwd = request.cwd.as_deref().filter(|cwd| cwd.is_absolute());
    let cwd =
        cwd.ok_or_else(|| unsupported("--project-trust untrusted", "the working directory must be named, whole"))?;
    // The user may have trusted any directory above: each one's configuration is a layer.
    let mut projects = Table::default();
    for dir in cwd.ancestors() {
        let dir = dir.to_str().ok_or_else(|| not_utf8(cwd))?;
        projects = projects.entry(dir, Table::default().entry("trust_level", "\"untrusted\""));
    }
    settings.set("projects", projects);
    settings.set("project_doc_max_bytes", 0);
    // Skills of an untrusted directory are offered like all others.
    settings.set("skills.include_instructions", "false");
    Ok(())
}

fn not_utf8(path: &Path) -> RequestError {
    RequestError::NotUtf8 { field: "cwd", value: path.display().to_string() }
}

/// Switches off the skills that the prompt would bring in, by their names: there is no switch for all of them.
fn literal(settings: &mut Settings, request: &RunRequest, text: &str) -> Result<(), RequestError> {
    if !prompt::is_literal(request) {
        return Ok(());
    }
    let names = prompt::skills(text)?;
    if !names.is_empty() {
        let off =
            |name: &str| Table::default().entry("name", config::string(name)).entry("enabled", "false").to_string();
        let entries: Vec<String> = names.into_iter().map(off).collect();
        settings.set("skills.config", format_args!("[{}]", entries.join(",")));
    }
    Ok(())
}

fn conversation(launch: &mut Launch, conversation: &Conversation) -> Result<(), RequestError> {
    match conversation {
        Conversation::New => {}
        Conversation::Resume(id) => {
            launch.arg("resume").arg(thread("--resume", id)?);
        }
        Conversation::Fork(id) => {
            launch.arg("fork").arg(thread("--fork", id)?);
        }
        // Where there is none in this directory it begins a new one by itself.
        Conversation::Continue => {
            launch.arg("resume").arg("--last");
        }
    }
    Ok(())
}

/// Anything but an id is taken for a thread's name, and where there is none of that name for a new thread (trap 5).
pub(super) fn thread(option: &'static str, id: &SessionId) -> Result<String, RequestError> {
    let id = id.as_str();
    let whole = id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if whole { Ok(id.to_ascii_lowercase()) } else { Err(unsupported(option, "a session id is a UUID here")) }
}
