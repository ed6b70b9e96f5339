//! How turns of Claude Code end: by hooks of the user, with another model, with background work, with structured output.

use serde_json::{Value, json};
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{ErrorCode, Event, RunResult, Warning, WarningCode};
use teamster_types::request::{Conversation, OutputMode, RunRequest};

use crate::drive::{Driver, Step, events};

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

fn run_of(request: &RunRequest, lines: &[Value]) -> Vec<Event> {
    let mut driver = Driver::start(request);
    driver.handle(Input::Line(
        json!({"type": "system", "subtype": "init", "session_id": SESSION}).to_string().as_bytes(),
    ));
    for line in lines {
        driver.handle(Input::Line(line.to_string().as_bytes()));
    }
    let exit = ExitReport { code: Some(0), ..ExitReport::default() };
    events(&driver.end(&End { exit: Some(exit), ..End::default() }))
}

fn run(lines: &[Value]) -> Vec<Event> {
    run_of(&RunRequest::new("x"), lines)
}

fn result(events: &[Event]) -> &RunResult {
    match events.last() {
        Some(Event::Done(done)) => &done.result,
        other => panic!("expected done, not {other:?}"),
    }
}

fn failure(events: &[Event]) -> (ErrorCode, &str) {
    let failure = result(events).error.as_ref().expect("a failure");
    (failure.code.clone(), failure.message.as_str())
}

fn warnings<'a>(events: &'a [Event], code: &WarningCode) -> Vec<&'a Warning> {
    let warning = |event: &'a Event| match event {
        Event::Warning(warning) if warning.code == *code => Some(&**warning),
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

fn message(id: &str, model: &str, text: &str) -> Value {
    json!({"type": "assistant", "message": {"id": id, "model": model, "content": [{"type": "text", "text": text}]}})
}

fn ended(reason: &str, text: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1, "terminal_reason": reason})
}

fn hook(name: &str, stdout: &str) -> Value {
    json!({"type": "system", "subtype": "hook_response", "hook_name": name, "stdout": stdout, "outcome": "success"})
}

fn task(subtype: &str, fields: &Value) -> Value {
    let mut line = json!({"type": "system", "subtype": subtype, "task_id": "t1", "tool_use_id": "tu1"});
    line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    line
}

#[test]
fn a_hook_that_stops_the_agent_is_a_failure_with_its_reason_and_keeps_the_text() {
    let stop = hook("PreToolUse:Bash", "{\"continue\": false, \"stopReason\": \"not on this machine\"}\n");
    let events = run(&[message("m", "opus", "Let me run that."), stop, ended("hook_stopped", "")]);
    let text = "the hook PreToolUse:Bash stopped the agent: not on this machine";
    assert_eq!(failure(&events), (ErrorCode::HookStopped, text));
    assert_eq!(result(&events).text, "Let me run that.");
    // Hooks that let the agent continue are no reason.
    for stdout in ["", "not JSON", "{}", "{\"continue\": true}", "{\"continue\": 7}", "[1]"] {
        let events = run(&[hook("Stop", stdout), ended("hook_stopped", "")]);
        assert_eq!(failure(&events), (ErrorCode::HookStopped, "a hook stopped the agent"), "{stdout}");
        let events = run(&[message("m", "opus", "fine"), hook("Stop", stdout), ended("completed", "fine")]);
        assert!(!result(&events).is_error, "{stdout}");
    }
}

#[test]
fn a_prompt_that_a_hook_refuses_is_a_failure_and_no_answer() {
    for (text, expected) in [
        (
            "UserPromptSubmit operation blocked by hook:\nno secrets\n\nOriginal prompt: x",
            "a hook refused the prompt: no secrets",
        ),
        ("Operation stopped by hook: not now", "a hook refused the prompt: not now"),
        ("Operation stopped by hook", "a hook refused the prompt"),
    ] {
        let notice =
            json!({"type": "system", "subtype": "informational", "content": text, "prevent_continuation": true});
        let refused =
            json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 0});
        for lines in [&[notice, refused.clone()][..], &[refused]] {
            let events = run(lines);
            assert_eq!(failure(&events), (ErrorCode::HookStopped, expected));
            assert_eq!((result(&events).text.as_str(), warnings(&events, &WarningCode::Notice).len()), ("", 0));
        }
        // The model may write the same text.
        let events = run(&[message("m", "opus", text), ended("completed", text)]);
        assert!(!result(&events).is_error, "{text}");
    }
}

#[test]
fn a_hook_that_ends_the_turn_after_the_answer_is_a_warning() {
    let stop = hook("Stop", r#"{"continue": false, "stopReason": "enough"}"#);
    let events = run(&[message("m", "opus", "fine"), stop, ended("stop_hook_prevented", "fine")]);
    assert_eq!((result(&events).is_error, result(&events).text.as_str()), (false, "fine"));
    let found = warnings(&events, &WarningCode::HookStopped);
    assert_eq!(found[0].message, "the hook Stop ended the turn after the answer: enough");
}

#[test]
fn a_model_that_changes_within_a_turn_gives_one_warning_with_both_names() {
    let events = run(&[
        message("1", "fable", "one"),
        message("2", "opus", "two"),
        message("3", "fable", "three"),
        message("4", "opus", "four"),
        ended("completed", "four"),
    ]);
    let found = warnings(&events, &WarningCode::ModelFallback);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "the agent changed the model from fable to opus");
    assert_eq!(result(&events).model.as_deref(), Some("opus"));
    let reported = json!({"type": "system", "subtype": "model_fallback", "content": "Switched", "original_model": "fable", "fallback_model": "opus"});
    let events = run(&[message("1", "fable", "one"), reported, message("2", "opus", "two"), ended("completed", "two")]);
    assert_eq!(warnings(&events, &WarningCode::ModelFallback)[0].message, "Switched");
    assert_eq!(warnings(&events, &WarningCode::ModelFallback).len(), 1);
    // The CLI's own messages and subagents have models of their own.
    let mut other = message("2", "haiku", "sub");
    other["parent_tool_use_id"] = "tu".into();
    let events =
        run(&[message("1", "fable", "one"), other, message("3", "<synthetic>", "x"), ended("completed", "one")]);
    assert_eq!(warnings(&events, &WarningCode::ModelFallback).len(), 0);
}

#[test]
fn background_work_that_ends_with_the_run_is_a_warning_that_names_it() {
    let started = task("task_started", &json!({"description": "review", "is_backgrounded": true}));
    let stopped = task("task_notification", &json!({"status": "stopped", "summary": "no time"}));
    let answer = message("m", "opus", "I wait.");
    let done = ended("completed", "I wait.");
    for (lines, text) in [
        (vec![started.clone(), answer.clone(), done.clone()], "a background task ended with the run: review"),
        (
            vec![started.clone(), answer.clone(), stopped.clone(), done.clone()],
            "a background task was stopped: review: no time",
        ),
        (
            vec![started.clone(), answer.clone(), done.clone(), stopped.clone()],
            "a background task was stopped: review: no time",
        ),
    ] {
        let events = run(&lines);
        assert!(!result(&events).is_error);
        let found = warnings(&events, &WarningCode::BackgroundTask);
        assert_eq!(found.iter().map(|warning| warning.message.as_str()).collect::<Vec<_>>(), [text]);
        assert_eq!(found[0].data.as_ref().unwrap()["taskId"], "t1");
    }
}

#[test]
fn a_task_whose_call_has_a_result_works_in_the_background() {
    let call = json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "tool_use", "id": "tu1", "name": "Bash", "input": {}}]}});
    let answered = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "tu1", "content": "in background"}]}});
    let started = task("task_started", &json!({"description": "build"}));
    let completed = task("task_notification", &json!({"status": "completed", "summary": "build"}));
    let done = ended("completed", "done");
    let answer = message("n", "opus", "done");
    let background = [call.clone(), started.clone(), answered.clone(), answer.clone(), done.clone()];
    assert_eq!(warnings(&run(&background), &WarningCode::BackgroundTask).len(), 1);
    let foreground = [call, started, completed, answered, answer, done];
    assert_eq!(warnings(&run(&foreground), &WarningCode::BackgroundTask).len(), 0);
}

#[test]
fn structured_output_is_kept_if_the_cli_starts_another_turn_by_itself() {
    let mut request = RunRequest::new("x");
    request.schema = Some(json!({"type": "object"}));
    let mut own = ended("completed", "done");
    own["structured_output"] = json!({"verdict": "pass"});
    let mut other = ended("completed", "nothing new");
    other["origin"] = json!({"kind": "task-notification"});
    let events =
        run_of(&request, &[message("1", "opus", "done"), own, message("2", "opus", "nothing new"), other.clone()]);
    let found = result(&events);
    assert!(!found.is_error);
    assert_eq!(found.structured_output.as_ref().unwrap().as_str(), "{\"verdict\":\"pass\"}");
    let events = run_of(&request, &[message("1", "opus", "done"), ended("completed", "done"), other]);
    assert_eq!(failure(&events).0, ErrorCode::StructuredOutput);
}

#[test]
fn a_system_prompt_replaces_the_one_that_the_session_has_stored() {
    let initialize = |request: &RunRequest| {
        let steps = Driver::start(request).steps;
        let Some(Step::Wrote(bytes)) = steps.first() else { panic!("{steps:?}") };
        serde_json::from_slice::<Value>(bytes).unwrap()["request"].clone()
    };
    let mut request = RunRequest::new("x");
    assert_eq!(initialize(&request).get("systemPromptSnapshot"), None);
    request.append_system_prompt = Some("Be brief.".into());
    assert_eq!(initialize(&request)["systemPromptSnapshot"], false);
    (request.append_system_prompt, request.system_prompt) = (None, Some("Be brief.".into()));
    assert_eq!(initialize(&request)["systemPromptSnapshot"], false);
}

#[test]
fn a_one_shot_run_warns_if_the_session_may_keep_its_system_prompt() {
    let mut request = RunRequest::new("x");
    request.output = OutputMode::Batch;
    request.append_system_prompt = Some("Be brief.".into());
    let ignored = |request: &RunRequest, index: Value| {
        let mut line = ended("completed", "fine");
        line["result_index"] = index;
        let mut driver = Driver::start(request);
        driver.handle(Input::Line(line.to_string().as_bytes()));
        warnings(&events(&driver.end(&End::default())), &WarningCode::OptionIgnored).len()
    };
    assert_eq!(ignored(&request, 0.into()), 0);
    request.conversation = Conversation::Resume(SESSION.into());
    assert_eq!(ignored(&request, 0.into()), 1);
    // 2.1.197, which uses the prompt of each run, reports no index.
    assert_eq!(ignored(&request, Value::Null), 0);
    request.append_system_prompt = None;
    assert_eq!(ignored(&request, 0.into()), 0);
}
