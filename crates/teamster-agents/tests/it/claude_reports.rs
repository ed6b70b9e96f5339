//! What a turn of Claude Code reports beside its text: its session, why it stopped, its to-do list and rejected credentials.

use serde_json::{Value, json};
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{ErrorCode, Event, RunResult, StopReason};
use teamster_types::request::{Conversation, RunRequest};

use crate::drive::{Driver, Step, events};

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

fn steps(request: &RunRequest, lines: &[Value], exit: ExitReport<'_>) -> Vec<Step> {
    let mut driver = Driver::start(request);
    for line in lines {
        driver.handle(Input::Line(line.to_string().as_bytes()));
    }
    driver.end(&End { exit: Some(exit), ..End::default() })
}

fn run(lines: &[Value]) -> Vec<Event> {
    events(&steps(&RunRequest::new("x"), lines, ExitReport { code: Some(0), ..ExitReport::default() }))
}

fn result(events: &[Event]) -> &RunResult {
    match events.last() {
        Some(Event::Done(done)) => &done.result,
        other => panic!("expected done, not {other:?}"),
    }
}

fn init(key: &str) -> Value {
    json!({"type": "system", "subtype": "init", "session_id": SESSION, "apiKeySource": key, "model": "m"})
}

fn delta(text: &str) -> Value {
    let event = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    json!({"type": "stream_event", "session_id": SESSION, "event": event})
}

fn message_delta(stop_reason: &str) -> Value {
    let event = json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 3}});
    json!({"type": "stream_event", "session_id": SESSION, "event": event})
}

fn success(fields: &Value) -> Value {
    let mut line = json!({"type": "result", "subtype": "success", "is_error": false, "result": "fine"});
    line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    line
}

fn text(text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"type": "assistant", "session_id": SESSION, "message": {"id": "m", "content": content}})
}

#[test]
fn a_cut_stream_without_init_keeps_the_session_of_its_lines() {
    let killed = ExitReport { signal: Some("SIGKILL"), ..ExitReport::default() };
    for lines in [&[delta("Hel")][..], &[text("Hello")], &[message_delta("end_turn"), delta("x")]] {
        let events = events(&steps(&RunRequest::new("x"), lines, killed));
        assert!(matches!(&events[0], Event::Init(init) if init.session_id.as_str() == SESSION), "{events:?}");
        assert_eq!(result(&events).session_id.as_ref().map(teamster_types::event::SessionId::as_str), Some(SESSION));
    }
}

#[test]
fn a_line_before_init_does_not_replace_it() {
    let hook = json!({"type": "system", "subtype": "hook_started", "session_id": SESSION});
    let events = run(&[hook, init("none"), text("Hi"), success(&json!({}))]);
    let inits: Vec<_> = events.iter().filter(|event| matches!(event, Event::Init(_))).collect();
    assert!(matches!(inits[..], [Event::Init(init)] if init.model.is_some()), "{inits:?}");
}

#[test]
fn another_session_than_the_requested_one_is_noticed_in_any_line() {
    let mut request = RunRequest::new("x");
    request.conversation = Conversation::Resume("00000000-0000-4000-8000-000000000002".into());
    let steps = steps(&request, &[delta("who are you?"), success(&json!({}))], ExitReport::default());
    assert!(steps.iter().any(|step| matches!(step, Step::Stop)));
    let events = events(&steps);
    assert!(!events.iter().any(|event| matches!(event, Event::Text(_))), "{events:?}");
    assert_eq!(result(&events).error_code, Some(ErrorCode::Protocol));
}

#[test]
fn the_stop_reason_is_that_of_the_result_or_of_the_last_message_or_follows_from_the_subtype() {
    let failed = |subtype: &str| json!({"type": "result", "subtype": subtype, "is_error": true, "errors": ["why"]});
    for (lines, expected) in [
        (vec![message_delta("tool_use"), success(&json!({"stop_reason": "end_turn"}))], Some(StopReason::EndTurn)),
        (vec![message_delta("max_tokens"), success(&json!({}))], Some(StopReason::MaxTokens)),
        (vec![message_delta("max_tokens"), success(&json!({"stop_reason": null}))], Some(StopReason::MaxTokens)),
        (vec![success(&json!({}))], Some(StopReason::EndTurn)),
        (vec![failed("error_max_budget_usd")], Some(StopReason::from("error_max_budget_usd"))),
        (vec![failed("error_max_turns")], Some(StopReason::MaxTurns)),
        (vec![failed("success")], None),
        (vec![success(&json!({"terminal_reason": "aborted_streaming"}))], Some(StopReason::Cancelled)),
    ] {
        let events = run(&lines);
        assert_eq!(result(&events).stop_reason, expected, "{lines:?}");
    }
}

fn retry(status: u64, attempt: u64) -> Value {
    let fields = json!({"attempt": attempt, "max_retries": 10, "retry_delay_ms": 512.5, "error": "unknown"});
    let mut line = json!({"type": "system", "subtype": "api_retry", "session_id": SESSION, "error_status": status});
    line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    line
}

#[test]
fn a_rejected_key_ends_the_run_at_the_first_answer_and_a_login_at_the_second() {
    let end = |lines: &[Value]| {
        let steps =
            steps(&RunRequest::new("x"), lines, ExitReport { signal: Some("SIGKILL"), ..ExitReport::default() });
        let stopped = steps.iter().any(|step| matches!(step, Step::Stop));
        let events = events(&steps);
        let result = result(&events).clone();
        let session = result.session_id.map(|id| id.as_str().to_owned());
        (stopped, result.error_code, result.error.and_then(|failure| failure.retryable), session)
    };
    let rejected = (true, Some(ErrorCode::Auth), Some(false), Some(SESSION.to_owned()));
    let ended = success(&json!({"result": "late"}));
    for source in ["ANTHROPIC_API_KEY", "apiKeyHelper", "/login managed key"] {
        assert_eq!(end(&[init(source), retry(401, 1), ended.clone()]), rejected, "{source}");
    }
    assert_eq!(end(&[init("none"), retry(401, 1), retry(401, 2), ended.clone()]), rejected);
    assert!(!end(&[init("none"), retry(401, 1), ended.clone()]).0, "the CLI may renew the token of a login");
    assert!(!end(&[init("ANTHROPIC_API_KEY"), retry(529, 1), retry(500, 2), ended]).0);
}

/// Returns the lines of a call and of its result.
fn call(id: &str, name: &str, input: &Value, content: &str, details: &Value) -> [Value; 2] {
    let tool = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
    let is_error = content.starts_with("<tool_use_error>");
    let answer = json!([{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}]);
    [
        json!({"type": "assistant", "session_id": SESSION, "message": {"id": id, "content": tool}}),
        json!({"type": "user", "message": {"role": "user", "content": answer}, "tool_use_result": details}),
    ]
}

fn plans(lines: &[[Value; 2]]) -> Vec<String> {
    let lines: Vec<Value> = lines.iter().flatten().cloned().chain([success(&json!({}))]).collect();
    let plan = |event: &Event| match event {
        Event::Plan(plan) => {
            let entries = plan.entries.iter().map(|entry| format!("{} {}", entry.status, entry.content.as_str()));
            Some(entries.collect::<Vec<_>>().join(", "))
        }
        _ => None,
    };
    run(&lines).iter().filter_map(plan).collect()
}

/// The calls and results of 2.1.197.
#[test]
fn the_whole_list_is_a_plan_after_each_change_of_a_task() {
    let created = |id: &str, subject: &str| json!({"task": {"id": id, "subject": subject}});
    let updated = json!({"success": true});
    let update = |id: &str, fields: &Value, content: &str, details: &Value| {
        call(&format!("u{id}{fields}"), "TaskUpdate", fields, content, details)
    };
    let listed = json!({"tasks": [{"id": "7", "subject": "Old", "status": "completed", "blockedBy": []}]});
    let found = plans(&[
        call("1", "TaskCreate", &json!({"subject": "One"}), "Task #1 created successfully: One", &created("1", "One")),
        call("2", "TaskCreate", &json!({"subject": "Two"}), "Task #2 created successfully: Two", &json!("?")),
        update("1", &json!({"taskId": "1", "status": "in_progress"}), "Updated task #1 status", &updated),
        update("9", &json!({"taskId": "9", "status": "completed"}), "Task not found", &json!({"success": false})),
        call("3", "TaskList", &json!({}), "#1 [in_progress] One", &json!({})),
        update("1", &json!({"taskId": "1", "status": "completed", "subject": "One!"}), "Updated task #1", &updated),
        update("2", &json!({"taskId": "2", "status": "deleted"}), "Updated task #2 deleted", &updated),
        call("4", "TaskCreate", &json!({"subject": "No"}), "<tool_use_error>no such tool</tool_use_error>", &json!("")),
        call("5", "TaskList", &json!({}), "#7 [completed] Old", &listed),
    ]);
    assert_eq!(
        found,
        [
            "pending One",
            "pending One, pending Two",
            "in_progress One, pending Two",
            "completed One!, pending Two",
            "completed One!",
            "completed Old",
        ]
    );
}

#[test]
fn a_list_that_is_written_as_a_whole_is_a_plan() {
    let todos = |done: &str| json!({"todos": [{"content": "a", "status": done, "activeForm": "A"}]});
    let found = plans(&[
        call("1", "TodoWrite", &todos("pending"), "Todos have been modified", &json!({})),
        call("2", "TodoWrite", &todos("pending"), "Todos have been modified", &json!({})),
        call("3", "TodoWrite", &todos("completed"), "Todos have been modified", &json!({})),
    ]);
    assert_eq!(found, ["pending a", "completed a"]);
}
