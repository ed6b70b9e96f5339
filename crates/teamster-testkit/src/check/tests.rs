//! Each rule has a stream that breaks it, and some streams follow all rules.

use serde_json::{Value, json};
use teamster_types::event::Event;

use super::{Checker, Rule, check, check_ndjson};

fn event(value: &Value) -> Event {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}

fn init() -> Value {
    json!({"type": "init", "agent": "claude", "sessionId": "s"})
}
fn text(message: &str, text: &str) -> Value {
    json!({"type": "text", "text": text, "messageId": message})
}
fn thinking(message: &str, text: &str) -> Value {
    json!({"type": "thinking", "text": text, "messageId": message})
}
fn retract(message: &str) -> Value {
    json!({"type": "retract", "messageId": message})
}
fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "toolId": id, "toolName": "Bash", "input": {"a_b": null}, "kind": "execute"})
}
fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "toolId": id, "output": "ok"})
}
fn request(id: &str) -> Value {
    json!({"type": "permission_request", "requestId": id, "toolName": "Bash", "input": {"a_b": null}, "options": []})
}
fn answered(id: &str) -> Value {
    json!({"type": "permission_answered", "requestId": id, "decision": "allow", "by": "caller", "input": null})
}
/// An answer that contains its request.
fn answered_with_request(id: &str, of: &str) -> Value {
    let request = json!({"requestId": of, "toolName": "Bash", "input": {}, "options": []});
    json!({"type": "permission_answered", "requestId": id, "decision": "deny", "by": "rule", "request": request})
}
fn warning() -> Value {
    json!({"type": "warning", "message": "m", "code": "NOTICE", "data": {"some_key": null}})
}
fn error(code: &str) -> Value {
    json!({"type": "error", "message": "m", "code": code, "retryable": false})
}
/// A `done` event with these texts in its result.
fn done(text: &str, final_text: &str) -> Value {
    let result = json!({"text": text, "finalText": final_text, "durationMs": 1, "aborted": false, "isError": false});
    json!({"type": "done", "result": result})
}
fn failed(code: &str) -> Value {
    let mut done = done("", "");
    done["result"]["isError"] = json!(true);
    done["result"]["errorCode"] = json!(code);
    done
}
fn with(mut event: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    event.pointer_mut(parent).unwrap()[key] = value;
    event
}

fn good() -> Vec<Value> {
    vec![
        warning(),
        init(),
        thinking("m1", "hm"),
        text("m1", "void"),
        retract("m1"),
        text("m2", "Hel"),
        tool_use("t1"),
        with(text("sub", "not mine"), "/parentToolId", json!("t1")),
        tool_use("t2"),
        request("r1"),
        answered_with_request("r2", "r2"),
        answered("r1"),
        request("r1"),
        answered("r1"),
        tool_result("t2"),
        tool_result("t1"),
        text("m2", "lo. "),
        text("m3", "Bye."),
        json!({"type": "plan", "entries": [{"content": "x", "status": "pending"}]}),
        with(done("Hello. \n\nBye.", "Bye."), "/result/totalCostUsd", json!(0)),
    ]
}

fn ndjson(lines: &[Value]) -> String {
    lines.iter().fold(String::new(), |text, line| text + &line.to_string() + "\n")
}

#[test]
fn a_stream_that_follows_the_rules_passes() {
    for stream in [
        good(),
        vec![done("", "")],
        vec![error("CLI_NOT_FOUND"), failed("CLI_NOT_FOUND")],
        vec![init(), error("ABORTED"), with(failed("ABORTED"), "/result/aborted", json!(true))],
    ] {
        let events: Vec<Event> = stream.iter().map(event).collect();
        assert_eq!(check(&events), Ok(()));
        assert_eq!(check_ndjson(&ndjson(&stream)).as_ref(), Ok(&events));
    }
}

#[test]
fn every_violation_of_a_stream_rule_is_detected() {
    let table: Vec<(Vec<Value>, Rule, Option<usize>)> = vec![
        (vec![], Rule::OneDone, None),
        (vec![init()], Rule::OneDone, None),
        (vec![done("", ""), done("", "")], Rule::DoneIsLast, Some(1)),
        (vec![done("", ""), warning()], Rule::DoneIsLast, Some(1)),
        (vec![init(), init(), done("", "")], Rule::OneInit, Some(1)),
        (vec![text("m", "x"), init(), done("x", "x")], Rule::InitFirst, Some(1)),
        (vec![tool_use("t"), tool_result("t"), init(), done("", "")], Rule::InitFirst, Some(2)),
        (vec![tool_use("t"), tool_use("t"), tool_result("t"), done("", "")], Rule::ToolUseOnce, Some(1)),
        (vec![tool_use("t"), tool_result("t"), tool_use("t"), done("", "")], Rule::ToolUseOnce, Some(2)),
        (vec![tool_result("t"), done("", "")], Rule::UseBeforeResult, Some(0)),
        (vec![tool_use("t"), tool_result("t"), tool_result("t"), done("", "")], Rule::OneResultForEachUse, Some(2)),
        (vec![tool_use("t"), done("", "")], Rule::OneResultForEachUse, Some(1)),
        (vec![request("r"), request("r"), answered("r"), done("", "")], Rule::RequestOnce, Some(1)),
        (vec![answered("r"), done("", "")], Rule::RequestBeforeAnswer, Some(0)),
        (vec![answered_with_request("r", "s"), done("", "")], Rule::RequestBeforeAnswer, Some(0)),
        (vec![request("r"), answered_with_request("r", "r"), done("", "")], Rule::RequestBeforeAnswer, Some(1)),
        (vec![request("r"), done("", "")], Rule::OneAnswerForEachRequest, Some(1)),
        (vec![request("r"), answered("r"), answered("r"), done("", "")], Rule::OneAnswerForEachRequest, Some(2)),
        (vec![text("m", "x"), done("", "x")], Rule::ResultText, Some(1)),
        (vec![text("m", "x"), retract("m"), done("x", "")], Rule::ResultText, Some(2)),
        (vec![with(text("m", "x"), "/parentToolId", json!("t")), done("x", "")], Rule::ResultText, Some(1)),
        (vec![text("m", "x"), text("n", "y"), done("x\n\ny", "x\n\ny")], Rule::FinalText, Some(2)),
        (vec![retract("m"), done("", "")], Rule::RetractNamesKnownMessage, Some(0)),
        (vec![thinking("m", "x"), retract("m"), retract("m"), done("", "")], Rule::RetractNamesKnownMessage, Some(2)),
        (vec![text("m", ""), done("", "")], Rule::NoEmptyDelta, Some(0)),
        (vec![thinking("m", ""), done("", "")], Rule::NoEmptyDelta, Some(0)),
        (vec![error("AUTH"), error("AUTH"), failed("AUTH")], Rule::OneError, Some(1)),
        (vec![error("AUTH"), warning(), failed("AUTH")], Rule::ErrorJustBeforeDone, Some(1)),
        (vec![error("AUTH"), failed("PROVIDER")], Rule::ErrorCodeOfResult, Some(1)),
        (vec![failed("AUTH")], Rule::IsErrorMeansError, Some(0)),
        (vec![error("AUTH"), with(failed("AUTH"), "/result/isError", json!(false))], Rule::IsErrorMeansError, Some(1)),
        (vec![with(done("", ""), "/result/aborted", json!(true))], Rule::AbortedIsAnError, Some(0)),
        (vec![error("AUTH"), with(failed("AUTH"), "/result/aborted", json!(true))], Rule::AbortedIsAnError, Some(1)),
    ];
    for (stream, rule, at) in table {
        let events: Vec<Event> = stream.iter().map(event).collect();
        let violations = check(&events).unwrap_err();
        let first = (violations[0].rule, violations[0].at);
        assert_eq!(first, (rule, at), "{stream:#?}\n{violations:#?}");
        let printed = check_ndjson(&ndjson(&stream));
        // An empty text is one empty line.
        assert!(stream.is_empty() || printed == Err(violations), "{stream:#?}\n{printed:#?}");
    }
}

#[test]
fn every_violation_of_a_line_rule_is_detected() {
    let good = json!({"type": "tool_result", "toolId": "t", "output": "ok", "content": [{"x_y": null}]});
    let line =
        |pointer: &str, value: Value| with(json!({ "x": good }), &format!("/x{pointer}"), value)["x"].to_string();
    let table: Vec<(String, Rule)> = vec![
        (String::new(), Rule::OneObjectALine),
        ("Warning: no".into(), Rule::OneObjectALine),
        ("[]".into(), Rule::OneObjectALine),
        ("null".into(), Rule::OneObjectALine),
        (format!("{good}{good}"), Rule::OneObjectALine),
        (line("/type", json!("tool_party")), Rule::KnownType),
        (line("/isError", Value::Null), Rule::NoNull),
        (line("/some_key", json!(1)), Rule::CamelCase),
        (line("/surprise", json!(1)), Rule::RoundTrip),
        (json!({"type": "retract"}).to_string(), Rule::RoundTrip),
        (json!({"messageId": "m"}).to_string(), Rule::RoundTrip),
        (with(done("", ""), "/result/structuredOutput", Value::Null).to_string(), Rule::RoundTrip),
        (with(done("", ""), "/result/permissionDenials", json!([])).to_string(), Rule::RoundTrip),
    ];
    for (line, rule) in table {
        let text = format!("{}\n{line}\n", tool_use("t"));
        let violations = check_ndjson(&text).unwrap_err();
        assert_eq!((violations[0].rule, violations[0].at), (rule, Some(1)), "{line}\n{violations:#?}");
    }
}

#[test]
fn a_line_that_is_not_an_event_does_not_hide_later_violations() {
    let text = format!("oops\n{}\n{}\n", tool_result("t"), done("", ""));
    let violations = check_ndjson(&text).unwrap_err();
    let found: Vec<_> = violations.iter().map(|violation| (violation.rule, violation.at)).collect();
    assert_eq!(found, [(Rule::OneObjectALine, Some(0)), (Rule::UseBeforeResult, Some(1))]);
}

#[test]
fn a_violation_names_its_event_and_its_cause() {
    let text = |violations: Vec<super::Violation>| violations.iter().map(ToString::to_string).collect::<Vec<_>>();
    let events = [text_event("a"), event(&tool_use("t"))];
    assert_eq!(
        text(check(&events).unwrap_err()),
        [
            "the end: there is exactly one done: the stream ended after 2 events",
            "the end: each tool_use has exactly one tool_result: call t of event 1 has none",
        ]
    );
    assert_eq!(
        text(check_ndjson(&format!("{}\n", done("lost", ""))).unwrap_err()),
        [
            "event 0 (done): result.text consists of all messages of the main thread that were not retracted, with blank \
          lines between: it has 4 characters instead of 0; from character 0 it is \"lost\" instead of \"\""
        ]
    );
}

fn text_event(content: &str) -> Event {
    event(&text("m", content))
}

#[test]
fn violations_are_available_while_the_stream_is_produced() {
    let mut checker = Checker::new();
    checker.push(&text_event("a"));
    assert!(checker.violations().is_empty());
    checker.push(&text_event(""));
    assert_eq!(checker.violations()[0].rule, Rule::NoEmptyDelta);
}
