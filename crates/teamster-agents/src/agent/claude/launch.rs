//! The arguments and variables with which Claude Code 2.1.197 is started.
//!
//! Variadic flags also take the arguments that follow (`--allowedTools X PROMPT`), so every value is passed as `--flag=value`. Texts
//! are passed in private files or on standard input, never as arguments, which other users of the machine can read.

use super::one_shot::{self, is_one_shot};
use super::{mcp, session_id};
use crate::agent::mcp::Names;
use crate::launch::{Launch, Stdin};
use teamster_types::request::{
    Conversation, OutputMode, PermissionMode, ProjectTrust, RequestError, RunRequest, UserMcpServers,
};

/// Tools that 2.1.197 allows in every mode although they change the project: it creates a branch and a folder.
const WITHOUT_REQUEST: &[&str] = &["EnterWorktree"];

pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    if request.max_tokens.is_some() && request.output != OutputMode::Stream {
        return Err(RequestError::Unsupported {
            agent: "claude".to_owned(),
            option: "max_tokens",
            why: "only streaming output reports tokens in time".to_owned(),
        });
    }
    let program = request.cli_path.clone().unwrap_or_else(|| "claude".into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    launch.arg("-p");
    output(&mut launch, request);
    launch.refused = session_id::invalid(&request.conversation);
    conversation(&mut launch, &request.conversation);
    model(&mut launch, request);
    permissions(&mut launch, request, names);
    mcp::servers(&mut launch, request, names)?;
    trust(&mut launch, request);
    for argument in &request.cli_args {
        launch.arg(argument.as_str());
    }
    environment(&mut launch, request);
    if is_one_shot(request) {
        one_shot::prompt(&mut launch, request)?;
    }
    Ok(launch)
}

/// Plans the process of a run.
pub(super) fn run(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = launch(request, names)?;
    if request.permissions.mode == PermissionMode::Edit && !is_one_shot(request) {
        // The CLI requests permission for edits, and the protocol answers. A run has no user who could answer a question.
        launch.arg("--permission-prompt-tool").arg("stdio");
        launch.flag("--disallowedTools", "AskUserQuestion");
    }
    Ok(launch)
}

/// Plans the process of a session, which requests permissions on its streams.
pub(super) fn session(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = launch(request, names)?;
    // Reports when the model receives a prompt that was sent during a turn.
    launch.arg("--replay-user-messages");
    // In mode `read-only` the CLI requests nothing, and denies.
    if request.permissions.mode != PermissionMode::ReadOnly {
        launch.arg("--permission-prompt-tool").arg("stdio");
    }
    Ok(launch)
}

fn output(launch: &mut Launch, request: &RunRequest) {
    if request.output == OutputMode::Batch {
        return one_shot::batch_output(launch, request);
    }
    if !is_one_shot(request) {
        // A session of one turn. If stdin stays open until the result was read, the CLI does not drop the end of its output (the test
        // `a_big_answer_is_whole_for_a_slow_consumer` covers it), and an interrupt can be requested.
        launch.stdin = Stdin::Open;
        launch.arg("--input-format").arg("stream-json");
    }
    for part in ["--output-format", "stream-json", "--verbose"] {
        launch.arg(part);
    }
    // Only a hook's own output names the reason for which it stopped the agent.
    launch.arg("--include-hook-events");
    if request.output == OutputMode::Stream {
        launch.arg("--include-partial-messages");
    }
}

fn conversation(launch: &mut Launch, conversation: &Conversation) {
    match conversation {
        Conversation::New => {}
        Conversation::Resume(id) => {
            launch.flag("--resume", id.as_str());
        }
        Conversation::Fork(id) => {
            launch.flag("--resume", id.as_str()).arg("--fork-session");
        }
        Conversation::Continue => {
            launch.arg("--continue");
        }
        Conversation::ForkNewest => {
            launch.arg("--continue").arg("--fork-session");
        }
    }
}

fn model(launch: &mut Launch, request: &RunRequest) {
    if let Some(model) = &request.model {
        launch.flag("--model", model);
    }
    if let Some(effort) = &request.effort {
        launch.flag("--effort", effort);
    }
    if let Some(text) = &request.system_prompt {
        launch.flag_file("--system-prompt-file", "system-prompt.txt", text.as_str());
    }
    if let Some(text) = &request.append_system_prompt {
        launch.flag_file("--append-system-prompt-file", "append-system-prompt.txt", text.as_str());
    }
    if let Some(turns) = request.max_turns {
        launch.flag("--max-turns", turns);
    }
    // A process that resumes a session counts from zero. A turn with its own budget has its own process.
    let budgets = [request.max_budget_usd, request.max_session_budget_usd];
    if let Some(budget) = budgets.into_iter().flatten().reduce(f64::min) {
        launch.flag("--max-budget-usd", budget);
    }
}

fn permissions(launch: &mut Launch, request: &RunRequest, names: &Names) {
    let denied_by_mode: &[&str] = match request.permissions.mode {
        // In `default` mode, `-p` denies what needs permission.
        PermissionMode::Ask => {
            launch.flag("--permission-mode", "default");
            WITHOUT_REQUEST
        }
        // Deny rules take precedence over the user's own allow rules.
        PermissionMode::ReadOnly => {
            launch.flag("--permission-mode", "default");
            if allows_commands(request) {
                &["Edit", "Write", "NotebookEdit", "EnterWorktree"]
            } else {
                // Without Bash the model gets Glob and Grep.
                &["Edit", "Write", "NotebookEdit", "EnterWorktree", "Bash"]
            }
        }
        PermissionMode::Edit => {
            // In `acceptEdits`, 2.1.197 also runs `rm`, `mv`, `sed` and other commands.
            launch.flag("--permission-mode", "default");
            if is_one_shot(request) {
                one_shot::allow_edits(launch, request);
            }
            // A rule for edits also holds for files to which a command redirects its output.
            if is_one_shot(request) && !allows_commands(request) { &["EnterWorktree", "Bash"] } else { WITHOUT_REQUEST }
        }
        PermissionMode::Full => {
            launch.arg("--dangerously-skip-permissions");
            &[]
        }
    };
    for tool in denied_by_mode {
        launch.flag("--disallowedTools", tool);
    }
    let rule_of = |rule: &String| names.translated(rule).unwrap_or_else(|| rule.clone());
    for rule in &request.permissions.allow {
        launch.flag("--allowedTools", rule_of(rule));
    }
    for rule in &request.permissions.deny {
        launch.flag("--disallowedTools", rule_of(rule));
    }
    for (name, server) in &request.mcp_servers {
        for tool in &server.disabled_tools {
            launch.flag("--disallowedTools", names.tool(name, tool));
        }
    }
    for dir in &request.add_dirs {
        launch.flag("--add-dir", dir.display());
    }
}

fn allows_commands(request: &RunRequest) -> bool {
    request.permissions.allow.iter().any(|rule| rule == "Bash" || rule.starts_with("Bash("))
}

/// Ignores the configuration of an untrusted project. With `-p` the CLI trusts every directory: its settings can run hooks and send
/// the key to another server. The test `no_program_configured_by_an_untrusted_project_runs_at_once_or_later` covers it.
fn trust(launch: &mut Launch, request: &RunRequest) {
    if request.project_trust == ProjectTrust::Untrusted {
        launch.flag("--setting-sources", "user");
    }
    if request.project_trust == ProjectTrust::Untrusted || request.user_mcp_servers == UserMcpServers::LeftOut {
        launch.arg("--strict-mcp-config");
    }
}

fn environment(launch: &mut Launch, request: &RunRequest) {
    const DISABLE: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";
    if request.background_tasks {
        // Removes the user's own value.
        launch.env.insert(DISABLE.to_owned(), None);
        // The CLI then reports when it is idle.
        launch.env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");
    } else {
        // A run ends with its answer. The CLI would kill a background tool 5 s later, or start a second turn.
        launch.env(DISABLE, "1");
    }
    // A scheduled prompt would remain in the project and run when the agent is started there again. No mode requests permission for it.
    launch.env("CLAUDE_CODE_DISABLE_CRON", "1");
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
}
