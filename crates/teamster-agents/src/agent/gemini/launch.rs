//! How Gemini CLI 0.61.0 is started.
//!
//! Every value goes as `--flag=value` (`-p -x` would be taken as flags), texts go by private files or standard input. What
//! only the settings can say stands in a merged copy of the user's, in a stand-in for the home (`settings`).

use crate::launch::{Arg, Launch, ShadowEntry, Stdin};
use teamster_types::request::{
    Conversation, McpDelivery, OutputMode, PermissionMode, ProjectTrust, RequestError, RunRequest,
};

use super::settings::STAND_IN;
use super::{log, mcp, policy, prompt, settings, unsupported};
use crate::agent::mcp::Names;

pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = new(request);
    let batch = request.output == OutputMode::Batch;
    launch.flag("--output-format", if batch { "json" } else { "stream-json" });
    conversation(&mut launch, &request.conversation)?;
    let prompt = prompt::of(request)?;
    common(&mut launch, request, names, policy::ESCALATION, prompt.command)?;
    launch.stdin = Stdin::Write(prompt.stdin.into_bytes());
    Ok(launch)
}

/// A process that speaks ACP. Which conversation it goes on with is said there.
pub(super) fn session(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = new(request);
    launch.arg("--acp");
    conversation(&mut Launch::new(""), &request.conversation)?;
    common(&mut launch, request, names, policy::ESCALATION_AND_QUESTIONS, None)?;
    launch.stdin = Stdin::Open;
    Ok(launch)
}

fn new(request: &RunRequest) -> Launch {
    let mut launch = Launch::new(request.cli_path.clone().unwrap_or_else(|| "gemini".into()));
    launch.cwd.clone_from(&request.cwd);
    launch
}

/// What runs and sessions share. `withheld` are tools that no mode allows.
fn common(
    launch: &mut Launch,
    request: &RunRequest,
    names: &Names,
    withheld: &[&str],
    command: Option<(&'static str, ShadowEntry)>,
) -> Result<(), RequestError> {
    if let Some(model) = &request.model {
        launch.flag("--model", model);
    }
    // Folders that are not trusted have no yolo mode; the policy allows everything there.
    let yolo = request.permissions.mode == PermissionMode::Full && request.project_trust == ProjectTrust::Trusted;
    launch.flag("--approval-mode", if yolo { "yolo" } else { "default" });
    // A policy that is not there, or does not parse, is as good as none (perm_policy_bad_file): this one is made here.
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

/// `--resume` takes `latest` and numbers of a list too: only an id that can be nothing else is passed on.
fn conversation(launch: &mut Launch, conversation: &Conversation) -> Result<(), RequestError> {
    match conversation {
        Conversation::New => {}
        Conversation::Resume(id) => {
            let text = id.as_str();
            let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            if !plain || text == "latest" || text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(unsupported("this session id", format!("{text:?} is no id of a session")));
            }
            launch.flag("--resume", text);
        }
        Conversation::Continue => {
            launch.flag("--resume", "latest");
        }
        Conversation::Fork(_) => return Err(unsupported("--fork", "a session is forked by its file")),
    }
    Ok(())
}

/// The flag takes a list.
fn directories(launch: &mut Launch, request: &RunRequest) -> Result<(), RequestError> {
    for dir in &request.add_dirs {
        let text = dir.to_string_lossy();
        if text.contains(',') {
            return Err(unsupported("a directory with a comma", format!("{text:?} would be taken for several")));
        }
        launch.flag("--include-directories", text);
    }
    Ok(())
}

fn environment(launch: &mut Launch, request: &RunRequest) {
    // Otherwise a wrapper starts the CLI again as its child, and ignores signals (trap 7).
    launch.env("GEMINI_CLI_NO_RELAUNCH", "1");
    let trusted = request.project_trust == ProjectTrust::Trusted;
    launch.env("GEMINI_CLI_TRUST_WORKSPACE", if trusted { "true" } else { "false" });
    let home = Arg::PathOf { before: String::new(), file: STAND_IN.into(), after: String::new() };
    launch.env.insert("GEMINI_CLI_HOME".to_owned(), Some(home));
    // Errors on stderr are plain text, without a warning about colours.
    launch.env("NO_COLOR", "1").env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
    // What stands for `$` in the settings, where `$NAME` means a variable.
    launch.env(settings::DOLLAR, "$");
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
