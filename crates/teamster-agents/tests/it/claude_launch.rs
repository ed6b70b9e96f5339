//! The exact arguments and variables with which Claude Code is started.

use std::collections::BTreeMap;
use std::num::NonZero;

use teamster_agents::agent::{Agent as _, claude::Claude};
use teamster_agents::launch::{Arg, Launch};
use teamster_types::request::{
    AgentInterface, Conversation, McpServer, OutputMode, PermissionMode, ProjectTrust, RunRequest,
};

fn shown(arg: &Arg) -> String {
    match arg {
        Arg::Text(text) => text.clone(),
        Arg::PathOf { before, file, after } => format!("{before}<{file}>{after}"),
    }
}

fn run(change: impl FnOnce(&mut RunRequest)) -> Launch {
    let mut request = RunRequest::new("the prompt");
    change(&mut request);
    Claude.plan(&request).unwrap().launch
}

fn session(change: impl FnOnce(&mut RunRequest)) -> Launch {
    let mut request = RunRequest::default();
    change(&mut request);
    Claude.plan_session(&request).unwrap().unwrap().launch
}

fn arguments(launch: &Launch) -> String {
    launch.args.iter().map(shown).collect::<Vec<_>>().join(" ")
}

const STREAM: &str = "-p --input-format stream-json --output-format stream-json --verbose --include-hook-events --include-partial-messages";
const ASK: &str = "--permission-mode=default --disallowedTools=EnterWorktree";

fn check(launches: impl IntoIterator<Item = (Launch, String)>) {
    for (launch, expected) in launches {
        assert_eq!(arguments(&launch), expected);
        assert!(!arguments(&launch).contains("the prompt"), "others can read arguments");
        assert!(!arguments(&launch).contains("--mcp-config"), "there are no servers");
    }
}

#[test]
fn the_arguments_of_a_run_are_exactly_these() {
    let id = "00000000-0000-4000-8000-000000000001";
    let exec = |request: &mut RunRequest| request.interface = AgentInterface::Exec;
    check([
        (run(|_| {}), format!("{STREAM} {ASK}")),
        (
            run(|request| request.output = OutputMode::Messages),
            format!("{STREAM} {ASK}").replace(" --include-partial-messages", ""),
        ),
        (
            run(exec),
            format!("-p --output-format stream-json --verbose --include-hook-events --include-partial-messages {ASK}"),
        ),
        (
            run(|request| {
                exec(request);
                request.output = OutputMode::Batch;
            }),
            format!("-p --output-format json {ASK}"),
        ),
        (
            run(|request| request.conversation = Conversation::Resume(id.into())),
            format!("{STREAM} --resume={id} {ASK}"),
        ),
        (
            run(|request| request.conversation = Conversation::Fork(id.into())),
            format!("{STREAM} --resume={id} --fork-session {ASK}"),
        ),
        (run(|request| request.conversation = Conversation::Continue), format!("{STREAM} --continue {ASK}")),
        (
            run(|request| {
                request.model = Some("opus".into());
                request.effort = Some("high".into());
                request.system_prompt = Some("Be brief.".into());
                request.max_turns = NonZero::new(3);
                request.max_budget_usd = Some(0.5);
            }),
            format!(
                "{STREAM} --model=opus --effort=high --system-prompt-file=<system-prompt.txt> --max-turns=3 \
                 --max-budget-usd=0.5 {ASK}"
            ),
        ),
    ]);
}

#[test]
fn the_arguments_for_permissions_and_sessions_are_exactly_these() {
    let no_edits =
        "--disallowedTools=Edit --disallowedTools=Write --disallowedTools=NotebookEdit --disallowedTools=EnterWorktree";
    check([
        (
            run(|request| request.permissions.mode = PermissionMode::Full),
            format!("{STREAM} --dangerously-skip-permissions"),
        ),
        (
            run(|request| request.permissions.mode = PermissionMode::ReadOnly),
            format!("{STREAM} --permission-mode=default {no_edits} --disallowedTools=Bash"),
        ),
        (
            run(|request| request.permissions.mode = PermissionMode::Edit),
            format!("{STREAM} {ASK} --permission-prompt-tool stdio --disallowedTools=AskUserQuestion"),
        ),
        (
            run(|request| {
                request.permissions.allow = vec!["Read".into(), "Bash(git diff:*)".into()];
                request.permissions.deny = vec!["WebFetch".into()];
                request.add_dirs = vec!["/srv/data".into()];
            }),
            format!(
                "{STREAM} {ASK} --allowedTools=Read --allowedTools=Bash(git diff:*) --disallowedTools=WebFetch \
                 --add-dir=/srv/data"
            ),
        ),
        (
            run(|request| request.project_trust = ProjectTrust::Untrusted),
            format!("{STREAM} {ASK} --setting-sources=user --strict-mcp-config"),
        ),
        (
            run(|request| request.cli_args = vec!["--debug-file=/tmp/x".into()]),
            format!("{STREAM} {ASK} --debug-file=/tmp/x"),
        ),
        (session(|_| {}), format!("{STREAM} {ASK} --replay-user-messages --permission-prompt-tool stdio")),
        (
            session(|request| request.permissions.mode = PermissionMode::ReadOnly),
            format!("{STREAM} --permission-mode=default {no_edits} --disallowedTools=Bash --replay-user-messages"),
        ),
    ]);
}

#[test]
fn servers_are_named_in_a_private_file() {
    let launch = run(|request| {
        let server: McpServer = serde_json::from_str(r#"{"command": "calc"}"#).unwrap();
        request.mcp_servers.insert("calc".into(), server);
    });
    assert!(arguments(&launch).contains(" --mcp-config=<mcp.json>"), "{}", arguments(&launch));
}

fn variables(launch: &Launch) -> BTreeMap<&str, Option<String>> {
    launch.env.iter().map(|(name, value)| (name.as_str(), value.as_ref().map(shown))).collect()
}

#[test]
fn the_variables_of_a_run_are_exactly_these_and_none_is_a_credential() {
    let set = |names: &[(&'static str, &str)]| -> BTreeMap<&str, Option<String>> {
        names.iter().map(|(name, value)| (*name, Some((*value).to_owned()))).collect()
    };
    let common = [("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"), ("CLAUDE_CODE_DISABLE_CRON", "1")];
    assert_eq!(variables(&run(|_| {})), set(&common));
    assert_eq!(variables(&run(|request| request.output = OutputMode::Messages)), set(&common));
    assert_eq!(variables(&run(|request| request.project_trust = ProjectTrust::Untrusted)), set(&common));
    assert_eq!(variables(&session(|_| {})), set(&common));
    let launch = run(|request| _ = request.env.insert("MY_VARIABLE".into(), "x".into()));
    assert_eq!(variables(&launch), set(&[&common[..], &[("MY_VARIABLE", "x")]].concat()));
    let launch = run(|request| {
        let server: McpServer = serde_json::from_str(r#"{"command": "calc"}"#).unwrap();
        request.mcp_servers.insert("calc".into(), server);
    });
    assert_eq!(variables(&launch), set(&[&common[..], &[("MCP_CONNECTION_NONBLOCKING", "0")]].concat()));
    let launch = session(|request| request.background_tasks = true);
    let mut expected = set(&[("CLAUDE_CODE_DISABLE_CRON", "1"), ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1")]);
    expected.insert("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", None);
    assert_eq!(variables(&launch), expected);
}
