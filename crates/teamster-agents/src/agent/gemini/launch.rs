//! The launch of Gemini CLI 0.61.0.
//!
//! Values are written as `--flag=value`, because `-p -x` would be read as two flags. Texts are private files or standard input.
//! Options that exist only in the settings are in a merged copy of the user's settings, in a shadow home (`settings`).

use crate::launch::{Arg, Launch, ShadowEntry, Stdin};
use teamster_types::request::{Conversation, McpDelivery, PermissionMode, ProjectTrust, RequestError, RunRequest};

use super::error::unsupported;
use super::settings::SHADOW_HOME;
use super::{log, mcp, policy, settings};
use crate::agent::mcp::Names;

/// Returns how to start the ACP process of a session. ACP selects the conversation.
pub(super) fn session(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = new(request);
    launch.arg("--acp");
    conversation(&mut Launch::new(""), &request.conversation)?;
    add_common(&mut launch, request, names, policy::ESCALATION_AND_QUESTIONS, None)?;
    launch.stdin = Stdin::Open;
    Ok(launch)
}

pub(super) fn new(request: &RunRequest) -> Launch {
    let mut launch = Launch::new(request.cli_path.clone().unwrap_or_else(|| "gemini".into()));
    launch.cwd.clone_from(&request.cwd);
    launch
}

/// Adds what runs and sessions have in common. `withheld` are the tools that no mode allows.
pub(super) fn add_common(
    launch: &mut Launch,
    request: &RunRequest,
    names: &Names,
    withheld: &[&str],
    command: Option<(&'static str, ShadowEntry)>,
) -> Result<(), RequestError> {
    if let Some(model) = &request.model {
        launch.flag("--model", model);
    }
    // Yolo mode does not exist in untrusted folders. There the policy allows all tools.
    let yolo = request.permissions.mode == PermissionMode::Full && request.project_trust == ProjectTrust::Trusted;
    launch.flag("--approval-mode", if yolo { "yolo" } else { "default" });
    // The CLI ignores a missing or invalid policy file (`perm_policy_bad_file`). This one is generated.
    launch.flag_file("--policy", "policy.toml", policy::document(&request.permissions, names, withheld)?);
    mcp::strict(launch, request, names);
    directories(launch, request)?;
    for argument in &request.cli_args {
        launch.arg(argument.as_str());
    }
    launch.shadow_home = Some(settings::shadow_home(request, names, command)?);
    environment(launch, request);
    if request.mcp_delivery == McpDelivery::MergeRestore && !request.mcp_servers.is_empty() {
        mcp::merge(launch, request, names)?;
    }
    Ok(())
}

/// Adds the conversation. `--resume` also accepts `latest` and numbers of a list, so only an unambiguous id is accepted.
pub(super) fn conversation(launch: &mut Launch, conversation: &Conversation) -> Result<(), RequestError> {
    match conversation {
        Conversation::New => {}
        Conversation::Resume(id) => {
            let text = id.as_str();
            let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            if !plain || text == "latest" || text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(unsupported("this session id", format!("{text:?} is not the id of a session")));
            }
            launch.flag("--resume", text);
        }
        Conversation::Continue => {
            launch.flag("--resume", "latest");
        }
        Conversation::Fork(_) | Conversation::ForkNewest => {
            return Err(unsupported("conversation=fork", "the CLI can fork a session only by its file"));
        }
    }
    Ok(())
}

/// Adds the directories. The flag takes a comma-separated list.
fn directories(launch: &mut Launch, request: &RunRequest) -> Result<(), RequestError> {
    for dir in &request.add_dirs {
        let text = dir.to_string_lossy();
        if text.contains(',') {
            return Err(unsupported("a directory with a comma", format!("the CLI would split {text:?}")));
        }
        launch.flag("--include-directories", text);
    }
    Ok(())
}

fn environment(launch: &mut Launch, request: &RunRequest) {
    // Otherwise a wrapper starts the CLI as its child and ignores signals.
    launch.env("GEMINI_CLI_NO_RELAUNCH", "1");
    let trusted = request.project_trust == ProjectTrust::Trusted;
    launch.env("GEMINI_CLI_TRUST_WORKSPACE", if trusted { "true" } else { "false" });
    let home = Arg::PathOf { before: String::new(), file: SHADOW_HOME.into(), after: String::new() };
    launch.env.insert("GEMINI_CLI_HOME".to_owned(), Some(home));
    // Plain errors on standard error, without a warning about colors.
    launch.env("NO_COLOR", "1").env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
    // The settings use this variable for `$`, because `$NAME` is replaced there.
    launch.env(mcp::DOLLAR, "$");
    if !request.mcp_servers.is_empty() {
        let (name, value) = log::VARIABLE;
        launch.env(name, value);
    }
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
    if let Some(text) = &request.system_prompt {
        const FILE: &str = "system-prompt.md";
        launch.files.push(crate::launch::PrivateFile { name: FILE.into(), content: text.clone().into_bytes() });
        let path = Arg::PathOf { before: String::new(), file: FILE.into(), after: String::new() };
        launch.env.insert("GEMINI_SYSTEM_MD".to_owned(), Some(path));
    }
}
