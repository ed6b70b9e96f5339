//! Lines of Claude Code that no recorded run contains, and former faults.

use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{Event, RunResult};
use teamster_types::request::{Conversation, RunRequest};

use crate::drive::{Driver, Step, events};

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

fn steps(request: &RunRequest, lines: &[&str], exit: ExitReport<'_>) -> Vec<Step> {
    let mut driver = Driver::start(request);
    for line in lines {
        driver.handle(Input::Line(line.as_bytes()));
    }
    driver.end(&End { exit: Some(exit), ..End::default() })
}

/// Returns the events of a run that exits with 0.
fn run(lines: &[&str]) -> Vec<Event> {
    events(&steps(&RunRequest::new("x"), lines, ExitReport { code: Some(0), ..ExitReport::default() }))
}

fn exited(code: Option<i32>, signal: Option<&str>, stderr: &str) -> Vec<Event> {
    events(&steps(&RunRequest::new("x"), &[], ExitReport { code, signal, stderr }))
}

fn result(events: &[Event]) -> &RunResult {
    match events.last() {
        Some(Event::Done(done)) => &done.result,
        other => panic!("expected done, not {other:?}"),
    }
}

fn failure(events: &[Event]) -> String {
    let failure = events.iter().find_map(|event| match event {
        Event::Error(failure) => Some(format!("{}: {}", failure.code, failure.message.as_str())),
        _ => None,
    });
    failure.unwrap_or_default()
}

fn texts(events: &[Event]) -> Vec<&str> {
    fn text(event: &Event) -> Option<&str> {
        match event {
            Event::Text(delta) => Some(&delta.text),
            _ => None,
        }
    }
    events.iter().filter_map(text).collect()
}

fn init(session: &str) -> String {
    format!(r#"{{"type":"system","subtype":"init","session_id":"{session}"}}"#)
}

fn assistant(text: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

const SUCCESS: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"fine"}"#;

#[test]
fn a_document_of_many_lines_is_emitted_once_even_if_a_line_is_malformed() {
    let array = format!(r#"[{}, {{"type":7}}, {}, {SUCCESS}]"#, init(SESSION), assistant("cut \\ud83d"));
    let events = run(&[&array]);
    assert_eq!(texts(&events), ["cut \u{fffd}"]);
    assert!(!result(&events).is_error);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Warning(_))).count(), 1);
}

#[test]
fn a_lone_surrogate_in_a_tools_input_or_output_replaces_one_character() {
    let events = run(&[
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"echo \udc4b"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"cut \ud83d"}]}}"#,
        SUCCESS,
    ]);
    let Event::ToolUse(tool) = &events[0] else { panic!("{events:?}") };
    let Event::ToolResult(result) = &events[1] else { panic!("{events:?}") };
    assert_eq!(tool.input, serde_json::json!({"command": "echo \u{fffd}"}));
    assert_eq!(result.output, "cut \u{fffd}");
}

#[test]
fn another_session_than_the_requested_one_is_stopped_and_its_lines_are_ignored() {
    let mut request = RunRequest::new("x");
    request.conversation = Conversation::Resume(SESSION.into());
    let other = init("00000000-0000-4000-8000-000000000002");
    let steps = steps(&request, &[&other, &assistant("who are you?"), SUCCESS], ExitReport::default());
    assert!(steps.iter().any(|step| matches!(step, Step::Stop)));
    let events = events(&steps);
    assert_eq!(texts(&events), [""; 0]);
    assert!(
        failure(&events).starts_with("PROTOCOL: session 00000000-0000-4000-8000-000000000001 was requested"),
        "{events:?}"
    );
    assert_eq!(result(&events).session_id, None);
}

#[test]
fn a_session_that_was_not_found_is_not_reported_as_the_runs_session() {
    let events = run(&[
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s","errors":["No conversation found with session ID: s"]}"#,
    ]);
    assert!(failure(&events).starts_with("SESSION_NOT_FOUND"));
    assert_eq!(result(&events).session_id, None);
}

#[test]
fn a_number_of_an_unknown_form_does_not_invalidate_the_result() {
    let events = run(&[
        r#"{"type":"result","subtype":"success","is_error":false,"result":"fine","session_id":"s","num_turns":1.5,"duration_api_ms":"2 s","usage":[],"modelUsage":{"m":{"inputTokens":null}},"permission_denials":null,"errors":null,"total_cost_usd":0.5}"#,
    ]);
    let result = result(&events);
    assert_eq!((result.text.as_str(), result.is_error, result.total_cost_usd), ("fine", false, Some(0.5)));
}

#[test]
fn arguments_that_are_not_json_are_emitted_unchanged() {
    let events = run(&[
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"__unparsedToolInput":{"raw":"{\"command","len":9}}}]}}"#,
    ]);
    let Event::ToolUse(tool) = &events[0] else { panic!("{events:?}") };
    assert_eq!(tool.input, serde_json::Value::from("{\"command"));
}

#[test]
fn a_command_without_output_has_an_empty_answer() {
    let events = run(&[
        r#"{"type":"assistant","message":{"id":"m","model":"<synthetic>","content":[{"type":"text","text":"(no content)"}]}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#,
    ]);
    assert_eq!(result(&events).text, "");
}

#[test]
fn a_model_may_write_the_text_that_the_cli_prints_for_no_output() {
    assert_eq!(result(&run(&[&assistant("(no content)"), SUCCESS])).text, "(no content)");
}

#[test]
fn stderr_explains_an_exit_and_no_other_end() {
    let table = [
        (
            Some(1),
            None,
            "Error: Invalid MCP configuration:\nmcpServers: Invalid input\n",
            "CONFIG: Invalid MCP configuration: mcpServers: Invalid input",
        ),
        (
            Some(1),
            None,
            "33618 | let x;\nerror: --max-budget-usd must be positive\n  at parse\n\nBun v1.4.0\n",
            "INVALID_REQUEST: --max-budget-usd must be positive",
        ),
        (Some(1), None, "Error: Session ID s is already in use.", "INVALID_REQUEST: Session ID s is already in use."),
        (
            Some(1),
            None,
            "port 80 is already in use",
            "CLI_EXIT: the CLI exited with code 1 before its result: port 80 is already in use",
        ),
        (
            None,
            Some("SIGKILL"),
            "Not logged in",
            "CLI_SIGNALED: SIGKILL ended the CLI before its result: Not logged in",
        ),
        (Some(0), None, "Not logged in", "PROTOCOL: the CLI ended without a result: Not logged in"),
    ];
    for (code, signal, stderr, expected) in table {
        assert_eq!(failure(&exited(code, signal, stderr)), expected);
    }
}

#[test]
fn an_init_after_text_is_not_emitted_but_its_session_is_reported() {
    let events = run(&[&assistant("early"), &init(SESSION), SUCCESS]);
    assert!(!events.iter().any(|event| matches!(event, Event::Init(_))), "{events:?}");
    assert_eq!(result(&events).session_id, Some(SESSION.into()));
}

#[test]
fn deltas_without_the_start_of_their_message_are_emitted() {
    let delta = |text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
        )
    };
    let success = r#"{"type":"result","subtype":"success","is_error":false,"result":"One two","session_id":"s"}"#;
    let events = run(&[&delta("One"), &delta(" two"), success]);
    let result = result(&events);
    assert_eq!((result.text.as_str(), result.is_error), ("One two", false));
}

#[test]
fn a_delta_may_have_empty_fields_of_other_kinds_or_no_type() {
    let delta = |delta: &str| {
        format!(r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{{delta}}}}}}}"#)
    };
    let events = run(&[
        &delta(r#""type":"text_delta","text":"One","thinking":null,"partial_json":null"#),
        &delta(r#""partial_json":null,"text":" two""#),
        &delta(r#""type":null,"text":" three","thinking":"not this""#),
    ]);
    assert!(!events.iter().any(|event| matches!(event, Event::Warning(_) | Event::Thinking(_))), "{events:?}");
    assert_eq!(result(&events).text, "One two three");
}

#[test]
fn a_tools_input_is_unchanged_at_any_depth_and_size() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let input = format!(r#"{{"id":18446744073709551617,"far":1e400,"deep":{deep}}}"#);
    let line = format!(
        r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"tool_use","id":"t","name":"Bash","input":{input}}}]}}}}"#
    );
    let events = run(&[&line]);
    let Event::ToolUse(tool) = &events[0] else { panic!("{events:?}") };
    assert_eq!(tool.input.as_str(), input);
}

#[test]
fn a_structured_output_is_unchanged_at_any_depth_and_size() {
    let document =
        format!(r#"{{"id":18446744073709551617,"far":1e400,"deep":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    let success = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s","structured_output":{document}}}"#
    );
    let events = run(&[&success]);
    assert_eq!(result(&events).structured_output.as_ref().map(teamster_types::json::RawJson::as_str), Some(&*document));
}

#[test]
fn the_blocks_of_a_tool_result_are_unchanged_at_any_depth_and_size() {
    let block = format!(
        r#"{{"type":"resource","id":18446744073709551617,"far":1e400,"deep":{}{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let content = format!(r#"[{{"type":"text","text":"seen"}},{block}]"#);
    let line = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]}}}}"#
    );
    let events = run(&[
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#,
        &line,
        SUCCESS,
    ]);
    let Event::ToolResult(result) = &events[1] else { panic!("{events:?}") };
    assert_eq!(result.output, "seen");
    let blocks = result.content.as_ref().unwrap();
    assert_eq!(blocks[1].as_str(), block);
}
