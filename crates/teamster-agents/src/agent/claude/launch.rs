//! How Claude Code 2.1.197 is started.
//!
//! Variadic flags swallow what follows them (`--allowedTools X PROMPT`), so every value goes as `--flag=value`. Texts go
//! by private file or by standard input, never by argv, which other users of the machine can read.

use super::mcp;
use crate::agent::mcp::Names;
use crate::launch::{Launch, Stdin};
use teamster_types::request::{
    AgentInterface, Conversation, OutputMode, PermissionMode, ProjectTrust, PromptMode, RequestError, RunRequest,
    UserMcpServers,
};

/// What 2.1.197 allows in every mode, though it changes the project: a branch and a folder for it.
const NEVER_ASKED_FOR: &[&str] = &["EnterWorktree"];

/// An argument may be 128 KiB long; this leaves room for its flag.
const LONGEST_ARGUMENT: usize = 100 * 1024;

pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    if request.max_tokens.is_some() && request.output != OutputMode::Stream {
        return Err(RequestError::Unsupported {
            agent: "claude".to_owned(),
            option: "--max-tokens",
            why: "tokens are told in time in streaming output alone".to_owned(),
        });
    }
    let program = request.cli_path.clone().unwrap_or_else(|| "claude".into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    launch.arg("-p");
    output(&mut launch, request);
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
        plain_prompt(&mut launch, request)?;
    }
    Ok(launch)
}

/// Whether the CLI gets one prompt, as plain text, and is not spoken to after that.
pub(super) fn is_one_shot(request: &RunRequest) -> bool {
    request.output == OutputMode::Batch || request.interface == AgentInterface::Exec
}

/// A run.
pub(super) fn run(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = launch(request, names)?;
    if request.permissions.mode == PermissionMode::Edit && !is_one_shot(request) {
        // The CLI requests permission for edits, and the protocol answers. A run has no user who could answer a question.
        launch.arg("--permission-prompt-tool").arg("stdio");
        launch.flag("--disallowedTools", "AskUserQuestion");
    }
    Ok(launch)
}

/// A session: the same process, which asks over its streams where a run could only deny.
pub(super) fn session(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let mut launch = launch(request, names)?;
    // Reports when the model receives a prompt that was sent during a turn.
    launch.arg("--replay-user-messages");
    // What is to be read only asks for nothing: it denies.
    if request.permissions.mode != PermissionMode::ReadOnly {
        launch.arg("--permission-prompt-tool").arg("stdio");
    }
    Ok(launch)
}

fn output(launch: &mut Launch, request: &RunRequest) {
    if request.output == OutputMode::Batch {
        launch.arg("--output-format").arg("json");
        if !request.mcp_servers.is_empty() {
            // The document becomes a list of all lines: the first one tells of servers that failed.
            launch.arg("--verbose");
        }
        return;
    }
    if !is_one_shot(request) {
        // A session of one turn: with stdin open until the result was read, the CLI does not drop the end of its output
        // (trap 1 of the facts), the prompt stays out of argv, and an interrupt can be asked for.
        launch.stdin = Stdin::Open;
        launch.arg("--input-format").arg("stream-json");
    }
    for part in ["--output-format", "stream-json", "--verbose"] {
        launch.arg(part);
    }
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
    // A resumed process counts from zero, and each turn that has a budget of its own has a process of its own.
    let budgets = [request.max_budget_usd, request.max_session_budget_usd];
    if let Some(budget) = budgets.into_iter().flatten().reduce(f64::min) {
        launch.flag("--max-budget-usd", budget);
    }
}

fn permissions(launch: &mut Launch, request: &RunRequest, names: &Names) {
    let denied_by_mode: &[&str] = match request.permissions.mode {
        // In `default` mode `-p` denies what it would ask for: a run cannot ask.
        PermissionMode::Ask => {
            launch.flag("--permission-mode", "default");
            NEVER_ASKED_FOR
        }
        // A user's own allow rules cannot lift these: deny rules win.
        PermissionMode::ReadOnly => {
            launch.flag("--permission-mode", "default");
            if allows_commands(request) {
                &["Edit", "Write", "NotebookEdit", "EnterWorktree"]
            } else {
                // Without it the model gets Glob and Grep instead.
                &["Edit", "Write", "NotebookEdit", "EnterWorktree", "Bash"]
            }
        }
        PermissionMode::Edit => {
            // In `acceptEdits` 2.1.197 runs `rm`, `mv`, `sed` and others, too.
            launch.flag("--permission-mode", "default");
            if is_one_shot(request) { edits_of_one_shot(launch, request) } else { NEVER_ASKED_FOR }
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

/// Allows the edits of the mode `edit` where the CLI cannot ask, and returns the tools that are taken away.
fn edits_of_one_shot(launch: &mut Launch, request: &RunRequest) -> &'static [&'static str] {
    launch.flag("--allowedTools", "Edit(./**)");
    // In a rule these would mean something else than themselves: files there are not edited.
    let is_plain =
        |dir: &str| dir.starts_with('/') && !dir.contains(['*', '?', '[', ']', '!', '\\', '(', ')', ',', '#']);
    for dir in request.add_dirs.iter().filter_map(|dir| dir.to_str()).filter(|dir| is_plain(dir)) {
        launch.flag("--allowedTools", format_args!("Edit(/{}/**)", dir.trim_end_matches('/')));
    }
    // A rule for edits also holds for files to which a command redirects its output.
    if allows_commands(request) { NEVER_ASKED_FOR } else { &["EnterWorktree", "Bash"] }
}

fn allows_commands(request: &RunRequest) -> bool {
    request.permissions.allow.iter().any(|rule| rule == "Bash" || rule.starts_with("Bash("))
}

/// In `-p` a foreign folder is trusted: its settings run hooks and can send the key elsewhere (trap 8).
fn trust(launch: &mut Launch, request: &RunRequest) {
    if request.project_trust == ProjectTrust::Untrusted {
        launch.flag("--setting-sources", "user");
    }
    if request.project_trust == ProjectTrust::Untrusted || request.user_mcp_servers == UserMcpServers::LeftOut {
        launch.arg("--strict-mcp-config");
    }
}

fn environment(launch: &mut Launch, request: &RunRequest) {
    const SWITCHED_OFF: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";
    if request.background_tasks {
        // The user's own would win.
        launch.env.insert(SWITCHED_OFF.to_owned(), None);
        // Tells when it will begin no turn before it is told something.
        launch.env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");
    } else {
        // A run ends with its answer. Left in the background, a tool would be killed 5 s after it, or start a second turn
        // (trap 10).
        launch.env(SWITCHED_OFF, "1");
    }
    // A scheduled prompt would stay in the project for whoever starts the agent there next, and no mode asks for it.
    launch.env("CLAUDE_CODE_DISABLE_CRON", "1");
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
}

fn plain_prompt(launch: &mut Launch, request: &RunRequest) -> Result<(), RequestError> {
    let refuse = |option, why: &str| {
        let why = format!("{why}; use streaming output in mode auto");
        Err(RequestError::Unsupported { agent: "claude".to_owned(), option, why })
    };
    if request.prompt_mode == PromptMode::Literal {
        return refuse("a literal prompt in batch or exec mode", "plain text is always interpreted");
    }
    if !request.attachments.is_empty() {
        return refuse("attachments in batch or exec mode", "the prompt is plain text there");
    }
    if let Some(schema) = &request.schema {
        let schema = schema.to_string();
        if schema.len() > LONGEST_ARGUMENT {
            return refuse("a schema of this length in batch or exec mode", "it goes by argv there");
        }
        launch.flag("--json-schema", schema);
    }
    // Plain text up to 10 MB, NUL bytes too (edge_nul), which argv could not hold.
    launch.stdin = Stdin::Write(request.prompt.clone().into_bytes());
    Ok(())
}
