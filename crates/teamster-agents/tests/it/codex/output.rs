//! The output of `exec`: what its lines mean where no recorded run shows it.

use serde_json::{Value, json};
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{ErrorCode, Event, RunResult, StopReason, WarningCode};
use teamster_types::request::{Conversation, RunRequest};

use super::{ID, exec, with};
use crate::drive::{Driver, Step, events};
use crate::subject::{SUBJECTS, Subject};

const OTHER: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3d";

fn subject() -> &'static Subject {
    SUBJECTS.iter().find(|subject| subject.agent.name() == "codex").unwrap()
}

/// Runs these lines and an exit.
fn run(request: &RunRequest, lines: &[Value], exit: ExitReport<'_>) -> Vec<Step> {
    let mut driver = Driver::start_of(subject(), request);
    for line in lines {
        driver.handle(Input::Line(line.to_string().as_bytes()));
    }
    driver.end(&End { exit: Some(exit), ..End::default() })
}

fn result(steps: &[Step]) -> RunResult {
    match events(steps).last() {
        Some(Event::Done(done)) => done.result.clone(),
        other => panic!("{other:?} is not `done`"),
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

#[test]
fn a_run_of_a_wrong_thread_is_stopped_and_its_output_is_not_emitted() {
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
fn the_requested_thread_may_answer() {
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
fn cached_tokens_are_subtracted_from_the_input() {
    let steps = run(&exec(), &[started(ID), message("x"), completed()], exit(0, ""));
    let usage = serde_json::to_value(result(&steps).usage).unwrap();
    let expected = json!({
        "inputTokens": 3, "cacheReadTokens": 4, "cacheWriteTokens": 3, "outputTokens": 5, "reasoningTokens": 1,
    });
    assert_eq!(usage, expected);
}

#[test]
fn an_interrupt_sends_a_signal_and_an_exit_without_a_last_line_is_an_abort() {
    let mut driver = Driver::start_of(subject(), &exec());
    driver.handle(Input::Line(started(ID).to_string().as_bytes()));
    driver.handle(Input::Interrupt);
    assert!(driver.steps.iter().any(|step| matches!(step, Step::Interrupt)));
    let result = result(&driver.end(&End { exit: Some(exit(1, "")), ..End::default() }));
    assert!(result.aborted);
    assert_eq!((result.error_code, result.stop_reason), (Some(ErrorCode::Aborted), Some(StopReason::Cancelled)));
    assert_eq!(result.session_id, Some(ID.into()));
}

#[test]
fn an_answer_must_have_the_required_fields_of_the_schema() {
    let mut request = exec();
    request.schema = Some(json!({"type": "object", "required": ["a"]}));
    for (answer, follows) in [("{\"a\": 1}", true), ("{}", false), ("[]", false), ("no", false)] {
        let result = result(&run(&request, &[started(ID), message(answer), completed()], exit(0, "")));
        assert_eq!(result.structured_output.is_some(), follows, "{answer}");
        assert_eq!(result.error_code, (!follows).then_some(ErrorCode::StructuredOutput), "{answer}");
    }
}

#[test]
fn a_plan_is_emitted_each_time_it_changes() {
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
fn a_web_search_is_one_call_although_its_item_has_two_ids() {
    let line = |kind: &str, query: &str| {
        format!(
            r#"{{"type":"{kind}","item":{{"id":"item_0","type":"web_search","id":"ws_1","query":"{query}","action":{{"type":"search","query":"{query}"}}}}}}"#
        )
    };
    let mut driver = Driver::start_of(subject(), &exec());
    for line in
        [started(ID).to_string(), line("item.started", ""), line("item.completed", "q"), completed().to_string()]
    {
        driver.handle(Input::Line(line.as_bytes()));
    }
    let events = events(&driver.end(&End { exit: Some(exit(0, "")), ..End::default() }));
    let calls = events.iter().filter_map(|event| match event {
        Event::ToolUse(tool) => Some((tool.tool_id.as_str(), tool.input.as_str())),
        _ => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), [("item_0", r#"{"action":{"query":"q","type":"search"},"query":"q"}"#)]);
}

#[test]
fn a_denied_patch_is_reported_although_only_the_diagnostics_contain_it() {
    let stderr = "2026-11-21T00:00:00Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by \
                  read-only sandbox; rejected by user approval settings";
    let denials = result(&run(&exec(), &[started(ID), message("x"), completed()], exit(0, stderr))).permission_denials;
    assert_eq!(denials.iter().map(|denial| denial.tool_name.as_str()).collect::<Vec<_>>(), ["file_change"]);
}

#[test]
fn a_message_is_the_same_whatever_the_order_of_its_fields() {
    let item = r#"{"id":"item_0","type":"agent_message","text":"a\n\"b\" \u00e4"}"#;
    let in_one_pass = format!(r#"{{"type":"item.completed","item":{item}}}"#);
    let with_another_order = format!(r#"{{"item":{item},"type":"item.completed"}}"#);
    let texts = [in_one_pass, with_another_order].map(|line| {
        let mut driver = Driver::start_of(subject(), &exec());
        driver.handle(Input::Line(line.as_bytes()));
        let steps = driver.end(&End { exit: Some(exit(0, "")), ..End::default() });
        let texts = events(&steps).into_iter().filter_map(|event| match event {
            Event::Text(delta) => Some((delta.message_id.clone(), delta.text.clone())),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    });
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0].iter().map(|(_, text)| &**text).collect::<Vec<_>>(), ["a\n\"b\" ä"]);
}
