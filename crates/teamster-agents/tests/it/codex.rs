//! Codex: the request of a recorded run, where the values of a request can end up, and what no recorded run shows.

use proptest::prelude::*;
use serde_json::{Value, json};
use teamster_agents::agent::{Agent, codex::Codex};
use teamster_agents::launch::{Arg, Launch, Stdin};
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{ErrorCode, Event, RunResult, StopReason, WarningCode};
use teamster_types::request::{
    AgentInterface, Conversation, McpServer, PermissionMode, ProjectTrust, PromptMode, RunRequest,
};

use crate::capture::Capture;
use crate::drive::{Driver, Step, events};
use crate::requests::{SECRET, any_request};
use crate::subject::{SUBJECTS, Subject};

/// What a caller would have asked for.
pub(crate) fn request(capture: &Capture) -> RunRequest {
    let mut request = RunRequest::new("recorded");
    if capture.has(&["app-server"]) {
        return app_request(capture, request);
    }
    request.interface = AgentInterface::Exec;
    let words = capture.argv.iter().map(String::as_str);
    // Behind `--` stands a prompt, whatever it looks like.
    let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
    let subcommand = words.iter().position(|word| ["resume", "fork"].contains(word));
    let id = subcommand.and_then(|at| words[at..].iter().find(|word| is_uuid(word)));
    request.conversation = match (subcommand.map(|at| words[at]), id) {
        (Some("fork"), Some(id)) => Conversation::Fork((*id).into()),
        (Some(_), Some(id)) => Conversation::Resume((*id).into()),
        // By name, which we refuse, or the newest.
        (Some(_), None) => Conversation::Continue,
        (None, _) => Conversation::New,
    };
    request
}

/// What the recorded app-server was asked for; which thread stands in the note.
fn app_request(capture: &Capture, mut request: RunRequest) -> RunRequest {
    request.model = Some("gpt-5.5".to_owned());
    request.conversation = match capture.note.as_deref().and_then(|note| note.split_once(' ')) {
        Some(("resume", id)) => Conversation::Resume(id.into()),
        Some(("fork", id)) => Conversation::Fork(id.into()),
        _ => Conversation::New,
    };
    if capture.name.starts_with("app_mcp") {
        for name in ["demo", "bad", "worse"] {
            request.mcp_servers.insert(name.to_owned(), McpServer::stdio(name).required());
        }
    }
    if capture.name == "app_mcp_failed" {
        request.mcp_servers.insert("bad".to_owned(), McpServer::stdio("bad"));
    }
    request
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.matches('-').count() == 4
}

const ID: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3c";
const OTHER: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3d";

fn subject() -> &'static Subject {
    SUBJECTS.iter().find(|subject| subject.agent.name() == "codex").unwrap()
}

/// Runs these lines to an exit.
fn run(request: &RunRequest, lines: &[Value], exit: ExitReport<'_>) -> Vec<Step> {
    let mut driver = Driver::start_of(subject(), request);
    for line in lines {
        driver.tell(Input::Line(line.to_string().as_bytes()));
    }
    driver.end(&End { exit: Some(exit), ..End::default() })
}

fn result(steps: &[Step]) -> RunResult {
    match events(steps).last() {
        Some(Event::Done(done)) => done.result.clone(),
        other => panic!("{other:?} is no done"),
    }
}

fn exit(code: i32, stderr: &str) -> ExitReport<'_> {
    ExitReport { code: Some(code), signal: None, stderr }
}

fn started(thread: &str) -> Value {
    json!({"type": "thread.started", "thread_id": thread})
}

fn item(item: &Value) -> Value {
    json!({"type": "item.completed", "item": item})
}

fn message(text: &str) -> Value {
    item(&json!({"id": "item_9", "type": "agent_message", "text": text}))
}

fn completed() -> Value {
    let usage = json!({
        "input_tokens": 10, "cached_input_tokens": 4, "cache_write_input_tokens": 3, "output_tokens": 5,
        "reasoning_output_tokens": 1,
    });
    json!({"type": "turn.completed", "usage": usage})
}

/// For the one-shot form; the other one has tests of its own (`app_server`).
fn exec() -> RunRequest {
    let mut request = RunRequest::new("x");
    request.interface = AgentInterface::Exec;
    request
}

fn with(conversation: Conversation) -> RunRequest {
    let mut request = exec();
    request.conversation = conversation;
    request
}

#[test]
fn another_thread_than_the_one_asked_for_is_stopped_and_nothing_of_it_is_told() {
    for (conversation, thread) in [
        (Conversation::Resume(ID.into()), OTHER),
        (Conversation::Fork(ID.into()), ID),
        (Conversation::Resume(ID.into()), ""),
    ] {
        let steps = run(&with(conversation), &[started(thread), message("foreign"), completed()], exit(0, ""));
        assert!(steps.iter().any(|step| matches!(step, Step::Stop)));
        let warned =
            |event: &Event| matches!(event, Event::Warning(warning) if warning.code == WarningCode::SessionMismatch);
        assert!(events(&steps).iter().any(warned));
        assert_eq!(result(&steps).error_code, Some(ErrorCode::Protocol));
        assert_eq!(result(&steps).text, "");
    }
}

#[test]
fn the_thread_asked_for_may_answer() {
    for (conversation, thread) in [
        (Conversation::New, OTHER),
        (Conversation::Continue, OTHER),
        (Conversation::Resume(ID.into()), ID),
        (Conversation::Resume(ID.to_uppercase().as_str().into()), ID),
        (Conversation::Fork(ID.into()), OTHER),
    ] {
        let steps = run(&with(conversation), &[started(thread), message("mine"), completed()], exit(0, ""));
        assert_eq!((result(&steps).text.as_str(), result(&steps).is_error), ("mine", false));
        assert_eq!(result(&steps).session_id, Some(thread.into()));
    }
}

#[test]
fn cached_tokens_are_taken_out_of_the_input() {
    let steps = run(&exec(), &[started(ID), message("x"), completed()], exit(0, ""));
    let usage = serde_json::to_value(result(&steps).usage).unwrap();
    let expected = json!({
        "inputTokens": 3, "cacheReadTokens": 4, "cacheWriteTokens": 3, "outputTokens": 5, "reasoningTokens": 1,
    });
    assert_eq!(usage, expected);
}

#[test]
fn an_interrupt_sends_a_signal_and_the_end_without_a_line_is_an_abort() {
    let mut driver = Driver::start_of(subject(), &exec());
    driver.tell(Input::Line(started(ID).to_string().as_bytes()));
    driver.tell(Input::Interrupt);
    assert!(driver.steps.iter().any(|step| matches!(step, Step::Interrupt)));
    let result = result(&driver.end(&End { exit: Some(exit(1, "")), ..End::default() }));
    assert!(result.aborted);
    assert_eq!((result.error_code, result.stop_reason), (Some(ErrorCode::Aborted), Some(StopReason::Cancelled)));
    assert_eq!(result.session_id, Some(ID.into()));
}

#[test]
fn a_schema_needs_a_document_with_its_required_fields() {
    let mut request = exec();
    request.schema = Some(json!({"type": "object", "required": ["a"]}));
    for (answer, follows) in [("{\"a\": 1}", true), ("{}", false), ("[]", false), ("no", false)] {
        let result = result(&run(&request, &[started(ID), message(answer), completed()], exit(0, "")));
        assert_eq!(result.structured_output.is_some(), follows, "{answer}");
        assert_eq!(result.error_code, (!follows).then_some(ErrorCode::StructuredOutput), "{answer}");
    }
}

#[test]
fn a_plan_is_told_each_time_it_changes() {
    let list = |done: bool| json!({"id": "item_0", "type": "todo_list", "items": [{"text": "a", "completed": done}]});
    let line = |kind: &str, done| json!({"type": kind, "item": list(done)});
    let lines = [
        started(ID),
        line("item.started", false),
        line("item.updated", true),
        line("item.completed", true),
        completed(),
    ];
    let steps = run(&exec(), &lines, exit(0, ""));
    let plans: Vec<_> = events(&steps).into_iter().filter(|event| matches!(event, Event::Plan(_))).collect();
    assert_eq!(
        serde_json::to_value(plans).unwrap(),
        json!([
            {"type": "plan", "entries": [{"content": "a", "status": "pending"}]},
            {"type": "plan", "entries": [{"content": "a", "status": "completed"}]},
        ])
    );
}

#[test]
fn a_search_of_the_web_is_one_call_although_its_item_has_two_ids() {
    let line = |kind: &str, query: &str| {
        format!(
            r#"{{"type":"{kind}","item":{{"id":"item_0","type":"web_search","id":"ws_1","query":"{query}","action":{{"type":"search","query":"{query}"}}}}}}"#
        )
    };
    let mut driver = Driver::start_of(subject(), &exec());
    for line in
        [started(ID).to_string(), line("item.started", ""), line("item.completed", "q"), completed().to_string()]
    {
        driver.tell(Input::Line(line.as_bytes()));
    }
    let events = events(&driver.end(&End { exit: Some(exit(0, "")), ..End::default() }));
    let calls = events.iter().filter_map(|event| match event {
        Event::ToolUse(tool) => Some((tool.tool_id.as_str(), tool.input.as_str())),
        _ => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), [("item_0", r#"{"action":{"query":"q","type":"search"},"query":"q"}"#)]);
}

#[test]
fn a_refused_patch_is_a_denial_though_only_diagnostics_tell() {
    let stderr = "2026-11-21T00:00:00Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by \
                  read-only sandbox; rejected by user approval settings";
    let denials = result(&run(&exec(), &[started(ID), message("x"), completed()], exit(0, stderr))).permission_denials;
    assert_eq!(denials.iter().map(|denial| denial.tool_name.as_str()).collect::<Vec<_>>(), ["file_change"]);
}

#[test]
fn instructions_that_a_resumed_thread_ignores_are_prepended_to_the_prompt() {
    let prompt = |request: &RunRequest| match Codex.plan(request).unwrap().launch.stdin {
        Stdin::Write(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    };
    let mut request = with(Conversation::Resume(ID.into()));
    let plain = prompt(&request);
    request.append_system_prompt = Some("more".to_owned());
    assert_eq!(prompt(&request), format!("<instructions>\nmore\n</instructions>\n\n{plain}"));
    request.system_prompt = Some("all".to_owned());
    assert_eq!(prompt(&request), plain);
    request.system_prompt = None;
    request.conversation = Conversation::New;
    assert_eq!(prompt(&request), plain);
}

/// Flags that stand alone; each of our own making.
const ALONE: &[&str] =
    &["exec", "--json", "--skip-git-repo-check", "--ignore-rules", "--dangerously-bypass-approvals-and-sandbox"];

/// Keys of the configuration that we set.
const KEYS: &[&str] = &[
    "features.unbounded_connection_retries",
    "model_reasoning_effort",
    "developer_instructions",
    "mcp_servers",
    "mcp_optional_startup_grace_ms",
    "shell_environment_policy.set",
    "projects",
    "project_doc_max_bytes",
    "skills.include_instructions",
    "skills.config",
];

/// Every argument is a flag of ours, a value inside `--flag=`, or a file's path; the conversation is last, and then `-`.
fn only_our_flags(launch: &Launch) -> Result<(), String> {
    let texts = launch.args.iter().map(|arg| match arg {
        Arg::Text(text) => text.as_str(),
        Arg::PathOf { before, .. } => before.as_str(),
    });
    let texts: Vec<&str> = texts.collect();
    let Some((&"-", texts)) = texts.split_last() else { return Err("the prompt is not asked for".to_owned()) };
    let texts = match texts {
        [before @ .., "resume", "--last"] => before,
        [before @ .., "resume" | "fork", id] if is_uuid(id) => before,
        all => all,
    };
    for text in texts {
        let known = ALONE.contains(text)
            || ["--cd=", "--model=", "--sandbox=", "--add-dir=", "--image=", "--output-schema="]
                .iter()
                .any(|flag| text.starts_with(flag))
            || *text == "--config=model_instructions_file="
            || KEYS
                .iter()
                .any(|key| text.strip_prefix("--config=").is_some_and(|rest| rest.starts_with(&format!("{key}="))));
        if !known {
            return Err(format!("{text:?} is no flag of ours"));
        }
    }
    Ok(())
}

/// Whether a text is one TOML value of the sort that we write: quotes are closed, brackets match, nothing stands behind.
fn is_one_value(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for (at, c) in text.char_indices() {
        match (quoted, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (true, '"') => quoted = false,
            (true, '\0'..' ' | '\u{7f}') => return false,
            (true, _) => {}
            (false, '"') => quoted = true,
            (false, '{' | '[') => depth += 1,
            (false, '}' | ']') => depth -= 1,
            (false, c) if c.is_ascii_alphanumeric() || "=,._".contains(c) => {}
            (false, _) => return false,
        }
        let over = depth == 0 && !quoted && !c.is_ascii_alphanumeric();
        if over && at + c.len_utf8() != text.len() {
            return false;
        }
    }
    depth == 0 && !quoted
}

fn planned(request: &RunRequest) -> Option<Launch> {
    request.validate().ok()?;
    Some(Codex.plan(request).ok()?.launch)
}

/// What Codex can do of any request.
fn askable() -> impl Strategy<Value = RunRequest> {
    any_request().prop_map(|mut request| {
        request.interface = AgentInterface::Exec;
        request.permissions.allow.clear();
        request.cwd = Some("/made/up \"directory\"".into());
        request.conversation = match request.conversation {
            Conversation::Resume(_) => Conversation::Resume(ID.into()),
            Conversation::Fork(_) => Conversation::Fork(ID.into()),
            other => other,
        };
        request
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_value_can_become_a_flag_or_a_key(request in askable()) {
        if let Some(launch) = planned(&request) {
            prop_assert_eq!(only_our_flags(&launch), Ok(()));
            for arg in &launch.args {
                let Arg::Text(text) = arg else { continue };
                prop_assert!(!text.contains('\0'));
                if let Some((_, value)) = text.strip_prefix("--config=").and_then(|rest| rest.split_once('=')) {
                    prop_assert!(is_one_value(value), "{}", value);
                }
            }
        }
    }

    #[test]
    fn no_secret_and_no_prompt_stands_in_an_argument(request in askable()) {
        let mut request = request;
        request.prompt = format!("PROMPT-OF-THIS-RUN {}", request.prompt);
        request.system_prompt = Some("SYSTEM-OF-THIS-RUN".to_owned());
        if let Some(launch) = planned(&request) {
            for arg in &launch.args {
                let Arg::Text(text) = arg else { continue };
                for hidden in [SECRET, "PROMPT-OF-THIS-RUN", "SYSTEM-OF-THIS-RUN"] {
                    prop_assert!(!text.contains(hidden), "{:?}", text);
                }
            }
            let Stdin::Write(written) = &launch.stdin else { panic!("the prompt goes to standard input") };
            prop_assert!(written.ends_with(request.prompt.as_bytes()));
        }
    }

    #[test]
    fn a_session_that_is_no_id_is_refused(name in ".{0,40}") {
        let conversations = [Conversation::Resume(name.as_str().into()), Conversation::Fork(name.as_str().into())];
        prop_assume!(!is_uuid(&name));
        for conversation in conversations {
            prop_assert!(Codex.plan(&with(conversation)).is_err());
        }
    }
}

fn stdio(env: &[(&str, &str)]) -> McpServer {
    env.iter().fold(McpServer::stdio("x"), |server, (name, value)| server.env(*name, *value))
}

#[test]
fn what_it_cannot_do_is_refused_with_the_reason() {
    let change = |change: fn(&mut RunRequest)| {
        let mut request = exec();
        change(&mut request);
        request
    };
    let table = [
        change(|r| r.permissions.allow = vec!["Bash".into()]),
        change(|r| r.permissions.allow = vec!["mcp__other".into()]),
        change(|r| r.permissions.deny = vec!["command_execution(rm:*)".into()]),
        change(|r| {
            r.mcp_servers = [("a".to_owned(), McpServer::sse("http://x"))].into();
        }),
        change(|r| r.mcp_servers = [("a".to_owned(), stdio(&[("path", "/x")]))].into()),
        change(|r| {
            r.mcp_servers = [("a".to_owned(), stdio(&[("T", "1")])), ("b".to_owned(), stdio(&[("T", "2")]))].into();
        }),
        change(|r| {
            r.mcp_servers = [("a".to_owned(), stdio(&[("T", "1")]))].into();
            r.env = [("T".to_owned(), "2".to_owned())].into();
        }),
        change(|r| r.project_trust = ProjectTrust::Untrusted),
        change(|r| {
            r.prompt = "see [$x](plugin://x)".into();
            r.prompt_mode = PromptMode::Literal;
        }),
        change(|r| r.prompt = "x".repeat((1 << 20) + 1)),
        change(|r| r.append_system_prompt = Some("x".repeat(128 * 1024))),
        change(|r| r.conversation = Conversation::Resume("some name".into())),
    ];
    let texts = table.map(|request| Codex.plan(&request).unwrap_err().to_string()).join("\n");
    insta::assert_snapshot!(texts, @r#"
    codex does not support --allow-tool: only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not "Bash"
    codex does not support --allow-tool: only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not "mcp__other"
    codex does not support --deny-tool: only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not "command_execution(rm:*)": it does not request permission for actions that its sandbox permits, so another rule could not be enforced
    codex does not support an MCP server of type sse: it supports streamable HTTP only; use type http
    codex does not support this environment of an MCP server: server "a", variable path: it would change the agent itself, through whose environment values go to servers
    codex does not support this environment of an MCP server: server "b", variable T: it has another value elsewhere, and all values share one environment
    codex does not support this environment of an MCP server: server "a", variable T: it has another value elsewhere, and all values share one environment
    codex does not support --project-trust untrusted: the working directory must be an absolute path
    codex does not support --prompt-mode literal: the prompt contains a link to a plugin, an app or a skill, which the agent would follow
    codex does not support a prompt of this length: the limit is 1048576 characters, which includes attached texts
    codex does not support an option of this length: the addition to the system prompt, MCP servers and skills are arguments, whose length is limited
    codex does not support --resume: a session id of this agent is a UUID
    "#);
}

#[test]
fn what_it_does_and_does_not_do_is_told_by_its_table() {
    let capabilities = Codex.capabilities().unwrap();
    let mut request = exec();
    request.permissions.mode = PermissionMode::Full;
    assert_eq!(capabilities.check("codex", &request), Ok(Vec::new()));
    request.max_budget_usd = Some(1.0);
    assert!(capabilities.check("codex", &request).is_err());
}
