//! The one-shot interface of OpenCode: cases that no recording has, and where values of a request may occur. Also the
//! arguments of the server interface.

use std::num::NonZeroU32;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_agents::agent::{Agent, opencode::OpenCode};
use teamster_agents::launch::{Arg, Launch, Stdin};
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{ErrorCode, Event, RunResult, StopReason, WarningCode};
use teamster_types::request::{
    AgentInterface, Attachment, Conversation, McpServer, McpTransport, PermissionMode, ProjectTrust, RequestError,
    RunRequest,
};

use crate::drive::{Driver, Step, events};
use crate::subject::{SUBJECTS, Subject};

const SESSION: &str = "ses_one";

fn subject() -> &'static Subject {
    SUBJECTS.iter().find(|subject| subject.agent.name() == "opencode").unwrap()
}

fn request(change: impl FnOnce(&mut RunRequest)) -> RunRequest {
    let mut request = RunRequest::new("x");
    request.interface = AgentInterface::Exec;
    change(&mut request);
    request
}

fn plain() -> RunRequest {
    request(|_| {})
}

fn line(kind: &str, part: &Value) -> Value {
    json!({"type": kind, "timestamp": 1, "sessionID": SESSION, "part": part})
}

fn start(message: &str) -> Value {
    line("step_start", &json!({"messageID": message}))
}

fn text(message: &str, text: &str) -> Value {
    line("text", &json!({"messageID": message, "text": text}))
}

fn finish(reason: &str) -> Value {
    line("step_finish", &json!({"reason": reason, "cost": 0.5, "tokens": {"input": 1, "output": 2, "reasoning": 3}}))
}

fn error(name: &str, data: &Value) -> Value {
    json!({"type": "error", "sessionID": SESSION, "error": {"name": name, "data": data}})
}

fn replay(request: &RunRequest, lines: &[Value], exit: ExitReport<'_>) -> Vec<Step> {
    let mut driver = Driver::start_of(subject(), request);
    for line in lines {
        driver.handle(Input::Line(line.to_string().as_bytes()));
    }
    driver.end(&End { exit: Some(exit), ..End::default() })
}

fn exit(code: i32) -> ExitReport<'static> {
    ExitReport { code: Some(code), ..ExitReport::default() }
}

fn result(steps: &[Step]) -> RunResult {
    let Some(Event::Done(done)) = events(steps).pop() else { panic!("no done") };
    done.result
}

fn stopped(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Stop))
}

fn warned(steps: &[Step], code: &WarningCode) -> bool {
    events(steps).iter().any(|event| matches!(event, Event::Warning(warning) if warning.code == *code))
}

#[test]
fn an_answer_of_another_session_is_stopped_before_any_output() {
    for conversation in [Conversation::Resume("ses_two".into()), Conversation::Fork(SESSION.into())] {
        let request = request(|r| r.conversation = conversation.clone());
        let steps = replay(&request, &[start("m"), text("m", "Hello."), finish("stop")], exit(0));
        assert!(stopped(&steps) && warned(&steps, &WarningCode::SessionMismatch), "{conversation:?}");
        let result = result(&steps);
        assert_eq!((result.error_code, result.text.as_str()), (Some(ErrorCode::Protocol), ""));
    }
}

#[test]
fn the_limit_of_turns_stops_only_a_run_that_would_continue() {
    let request = request(|r| r.max_turns = NonZeroU32::new(2));
    let steps = replay(&request, &[start("a"), finish("tool-calls"), start("b"), finish("tool-calls")], exit(0));
    assert!(stopped(&steps));
    assert_eq!(result(&steps).error_code, Some(ErrorCode::MaxTurns));
    assert_eq!(result(&steps).stop_reason, Some(StopReason::MaxTurns));
    let steps =
        replay(&request, &[start("a"), finish("tool-calls"), start("b"), text("b", "Done."), finish("stop")], exit(0));
    assert!(!stopped(&steps) && !result(&steps).is_error);
}

#[test]
fn the_budget_stops_a_run_that_would_continue() {
    let request = request(|r| r.max_budget_usd = Some(0.9));
    let steps = replay(&request, &[start("a"), finish("tool-calls"), start("b"), finish("tool-calls")], exit(0));
    assert!(stopped(&steps));
    assert_eq!(result(&steps).error_code, Some(ErrorCode::Budget));
    assert_eq!(result(&steps).num_turns, Some(2));
}

#[test]
fn a_run_is_stopped_after_three_answers_without_a_finish_reason() {
    let lines: Vec<Value> = (0..9).flat_map(|_| [start("m"), finish("unknown")]).collect();
    let steps = replay(&plain(), &lines, exit(0));
    assert!(stopped(&steps));
    assert_eq!(result(&steps).num_turns, Some(3));
    assert_eq!(result(&steps).error_code, Some(ErrorCode::Provider));
}

#[test]
fn exit_code_0_is_no_success_without_an_answer() {
    for lines in [&[][..], &[start("m")], &[start("m"), finish("tool-calls")], &[start("m"), finish("unknown")]] {
        let result = result(&replay(&plain(), lines, exit(0)));
        assert_eq!(result.error_code, Some(ErrorCode::Protocol), "{lines:?}");
    }
}

#[test]
fn usage_and_cost_are_totals_and_reasoning_counts_as_output() {
    let lines = [start("a"), finish("tool-calls"), start("b"), text("b", "Hi."), finish("stop")];
    let result = result(&replay(&plain(), &lines, exit(0)));
    let usage = result.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.reasoning_tokens), (2, 10, Some(6)));
    assert_eq!(result.total_cost_usd, Some(1.0));
}

#[test]
fn a_repeated_answer_is_emitted_once() {
    let lines = [start("m"), text("m", "Half"), start("m"), text("m", "Whole."), finish("stop")];
    let steps = replay(&plain(), &lines, exit(0));
    assert!(warned(&steps, &WarningCode::Retrying));
    assert_eq!(result(&steps).text, "Whole.");
}

#[test]
fn an_interrupt_keeps_the_usage_and_a_complete_answer() {
    let end = |lines: &[Value]| {
        let mut driver = Driver::start_of(subject(), &plain());
        for line in lines {
            driver.handle(Input::Line(line.to_string().as_bytes()));
        }
        driver.handle(Input::Interrupt);
        let exit = ExitReport { signal: Some("SIGINT"), ..ExitReport::default() };
        result(&driver.end(&End { exit: Some(exit), ..End::default() }))
    };
    let incomplete = end(&[start("a"), finish("tool-calls"), start("b")]);
    assert!(incomplete.aborted);
    assert_eq!((incomplete.num_turns, incomplete.stop_reason), (Some(1), Some(StopReason::Cancelled)));
    assert!(!end(&[start("a"), text("a", "All."), finish("stop")]).is_error);
}

#[test]
fn errors_are_classified_by_their_fields_first() {
    let api = |status: u64, body: &str| json!({"message": "m", "statusCode": status, "isRetryable": true, "responseBody": body});
    let table = [
        (error("APIError", &api(401, "")), ErrorCode::Auth, false),
        (error("APIError", &api(402, "")), ErrorCode::Budget, false),
        (error("APIError", &api(429, "")), ErrorCode::RateLimit, true),
        (error("APIError", &api(429, r#"{"error": {"code": "insufficient_quota"}}"#)), ErrorCode::Budget, false),
        (error("APIError", &api(422, "")), ErrorCode::InvalidRequest, false),
        (error("APIError", &api(503, "")), ErrorCode::Overloaded, true),
        (error("APIError", &api(529, "")), ErrorCode::Overloaded, true),
        (error("APIError", &json!({"message": "m", "metadata": {"code": "ECONNRESET"}})), ErrorCode::Connection, true),
        (error("APIError", &api(502, "")), ErrorCode::Provider, true),
        (error("ContextOverflowError", &json!({"message": "m"})), ErrorCode::ContextWindow, false),
        (error("ContentFilterError", &json!({"message": "m"})), ErrorCode::Provider, false),
        (error("SomethingNew", &json!({})), ErrorCode::Provider, false),
    ];
    for (line, code, retryable) in table {
        let steps = replay(&plain(), std::slice::from_ref(&line), exit(1));
        assert_eq!(result(&steps).error_code, Some(code), "{line}");
        let retryable_in_event = events(&steps).into_iter().find_map(|event| match event {
            Event::Error(failure) => failure.retryable,
            _ => None,
        });
        assert_eq!(retryable_in_event, Some(retryable), "{line}");
    }
}

#[test]
fn unknown_lines_are_ignored_and_broken_lines_are_warnings() {
    let lines =
        [json!({"type": "tomorrow"}), start("m"), line("text", &json!({"no": 1})), text("m", "Done."), finish("stop")];
    let steps = replay(&plain(), &lines, exit(0));
    assert!(warned(&steps, &WarningCode::MalformedLine));
    assert!(!result(&steps).is_error);
}

#[test]
fn a_failed_server_in_the_log_is_reported_at_once() {
    let mut driver = Driver::start_of(subject(), &plain());
    driver.handle(Input::Diagnostic(b"level=WARN message=\"server unavailable\" key=calc type=local status=failed"));
    assert!(warned(&driver.steps, &WarningCode::McpServerFailed));
}

#[test]
fn a_schema_is_rejected_if_it_cannot_be_enforced_and_a_batch_is_not() {
    let capabilities = OpenCode.capabilities().unwrap();
    let mut with_schema = request(|r| r.schema = Some(json!({})));
    assert!(matches!(OpenCode.plan(&with_schema), Err(RequestError::Unsupported { .. })));
    with_schema.interface = AgentInterface::Auto;
    assert!(OpenCode.plan(&with_schema).is_ok());
    let batch = request(|r| r.output = teamster_types::request::OutputMode::Batch);
    assert_eq!(capabilities.check("opencode", &batch), Ok(Vec::new()));
}

const SECRET: &str = "MADE-UP-SECRET";

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "--help",
            "-",
            "--",
            "a b",
            "$(id)",
            "`id`",
            "'",
            "\"",
            "\\",
            "\n",
            "{env:HOME}",
            "{file:/etc/passwd}",
            "*",
            "../../x",
            "/",
            "ses_1",
            "--auto",
            "},\"permission\":\"allow\"",
            "漢字",
            "x=y",
            "{",
            "}",
            "%s",
        ])
        .prop_map(str::to_owned),
        ".{0,20}",
    ]
}

prop_compose! {
    fn any_request()(
        (prompt, system, append) in (hostile(), proptest::option::of(hostile()), proptest::option::of(hostile())),
        (model, effort, session) in
            (proptest::option::of(hostile()), proptest::option::of(hostile()), proptest::option::of(hostile())),
        (allow, deny) in (proptest::collection::vec(hostile(), 0..3), proptest::collection::vec(hostile(), 0..3)),
        (fork, mode, untrusted) in (any::<bool>(), select(vec![
            PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full,
        ]), any::<bool>()),
        (command, arg, key, name) in (hostile(), hostile(), hostile(), hostile()),
        (dir, file) in (hostile(), hostile()),
        servers in any::<bool>(),
    ) -> RunRequest {
        request(|r| {
            r.prompt = prompt;
            r.system_prompt = system;
            r.append_system_prompt = append;
            r.model = model;
            r.effort = effort;
            r.conversation = match session {
                Some(id) if fork => Conversation::Fork(id.into()),
                Some(id) => Conversation::Resume(id.into()),
                None => Conversation::New,
            };
            r.permissions.mode = mode;
            r.permissions.allow = allow;
            r.permissions.deny = deny;
            if untrusted {
                r.project_trust = ProjectTrust::Untrusted;
            }
            r.cwd = Some("/work".into());
            r.add_dirs = vec![dir.into()];
            r.attachments = vec![Attachment::Data { name: file, data: b"text".to_vec() }];
            if servers {
                let plain = McpServer::stdio(command).args([arg]).env(key.clone(), SECRET);
                r.mcp_servers.insert("plain".into(), plain);
                r.mcp_servers.insert(name, McpServer::http("http://h").header(key, SECRET));
            }
        })
    }
}

/// Our flags without a value. `WITH_VALUE` are those whose value follows `=`.
const FLAGS: &[&str] = &["run", "--format=json", "--thinking", "--print-logs", "--log-level=WARN", "--fork"];
const WITH_VALUE: &[&str] = &["--agent", "--title", "--session", "--model", "--variant"];

fn launch(request: &RunRequest) -> Option<Launch> {
    request.validate().ok()?;
    Some(OpenCode.plan(request).ok()?.launch)
}

/// All arguments of the server.
const SERVER: &[&str] = &["serve", "--hostname=127.0.0.1", "--port=0", "--print-logs", "--log-level=WARN"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_servers_arguments_contain_no_value_of_a_request(mut request in any_request()) {
        request.interface = AgentInterface::Auto;
        let Some(launch) = launch(&request) else { return Ok(()) };
        let expected: Vec<_> = SERVER.iter().map(|&arg| Arg::Text(arg.to_owned())).collect();
        prop_assert_eq!(&launch.args, &expected);
        prop_assert_eq!(&launch.stdin, &Stdin::Closed);
        prop_assert!(launch.server.is_some());
        let config = &launch.json_env["OPENCODE_CONFIG_CONTENT"];
        prop_assert!(!config.contains(SECRET));
    }

    #[test]
    fn no_value_can_become_a_flag_a_file_or_a_key(request in any_request()) {
        let Some(launch) = launch(&request) else { return Ok(()) };
        for arg in &launch.args {
            match arg {
                Arg::Text(text) => {
                    let flag = text.split_once('=').map_or("", |(flag, _)| flag);
                    prop_assert!(FLAGS.contains(&text.as_str()) || WITH_VALUE.contains(&flag), "{}", text);
                    prop_assert!(!text.contains(SECRET) && !text.contains('\0'));
                }
                Arg::PathOf { before, after, .. } => prop_assert_eq!((before.as_str(), after.as_str()), ("--file=", "")),
            }
        }
        prop_assert_eq!(&launch.stdin, &Stdin::Write(request.prompt.clone().into_bytes()));
        for file in &launch.files {
            prop_assert!(!file.name.contains('/') && !file.name.starts_with('.') && file.name.len() < 200);
        }
        let config = &launch.json_env["OPENCODE_CONFIG_CONTENT"];
        prop_assert!(!config.contains(SECRET));
        let braces = config.matches("{env:").count() - config.matches("{env:TEAMSTER_FILE_").count();
        let files = config.matches("{file:").count() - config.matches("{file:{env:TEAMSTER_FILE_").count();
        prop_assert_eq!((braces, files), (0, 0), "{}", config);
        let read: Value = serde_json::from_str(config).unwrap();
        prop_assert!(read.as_object().unwrap().keys().all(|key| ["agent", "instructions", "mcp"].contains(&key.as_str())));
        prop_assert!(read["agent"].as_object().unwrap().keys().eq(["teamster"]));
        let rules = &read["agent"]["teamster"]["permission"];
        let named = request.permissions.allow.iter().chain(&request.permissions.deny);
        if !named.into_iter().any(|rule| rule.trim().starts_with('*')) {
            let rest = if request.permissions.mode == PermissionMode::Full { "allow" } else { "deny" };
            prop_assert_eq!(&rules["*"], rest);
        }
        let plain = request.mcp_servers.get("plain").map(|server| &server.transport);
        if let Some(McpTransport::Stdio { command, args, .. }) = plain {
            prop_assert_eq!(&read["mcp"]["plain"]["command"], &json!([command, args[0]]));
        }
    }
}
