//! What an agent can make grow, and what of it is kept. These tests have processes of their own, whose memory is measured.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code; the memory of the process is read from /proc"
)]

use serde_json::json;
use teamster_protocol::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini};
use teamster_protocol::event::{Delta, Done, Event, Warning, WarningCode};
use teamster_protocol::protocol::{Action, Input, Outcome};
use teamster_protocol::request::{Mode, RunRequest};
use teamster_protocol::transcript::{End, Transcript};

const MIB: usize = 1 << 20;

/// Passes events to a function, and keeps none.
struct Sink<F>(F);

impl<F: FnMut(Event)> Extend<Event> for Sink<F> {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        events.into_iter().for_each(&mut self.0);
    }
}

/// The most memory that this process has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1024
}

fn assert_grew_less_than(before: usize, bytes: usize) {
    let grown = peak().saturating_sub(before);
    assert!(grown < bytes, "{} MiB more", grown / MIB);
}

fn done(transcript: &mut Transcript) -> (Box<Done>, Vec<Event>) {
    transcript.set_outcome(Outcome::default());
    let mut last = Vec::new();
    transcript.end(&End::default(), &mut last);
    let Some(Event::Done(done)) = last.pop() else { panic!("no done") };
    (done, last)
}

fn event(value: serde_json::Value) -> Event {
    serde_json::from_value(value).unwrap()
}

#[test]
fn text_of_any_length_is_passed_on_whole_and_kept_to_a_bound_that_the_result_names() {
    let (mut transcript, mut passed) = (Transcript::new(), 0);
    let piece = "x".repeat(64 << 10);
    let before = peak();
    for number in 0..5000 {
        let delta = Delta {
            text: piece.as_str().into(),
            message_id: format!("m{}", number / 100).into(),
            parent_tool_id: None,
        };
        transcript.push(
            Event::Text(delta),
            &mut Sink(|event| {
                let Event::Text(delta) = event else { panic!("{event:?}") };
                passed += delta.text.len();
            }),
        );
    }
    let (done, _) = done(&mut transcript);
    assert_grew_less_than(before, 120 * MIB);
    assert_eq!(passed, 5000 * piece.len());
    assert!(done.result.text_truncated && done.result.text.len() <= 16 * MIB);
    assert_eq!(done.result.text.len() as u64 + done.result.text_missing_bytes, passed as u64);
    assert!(done.result.text.ends_with(done.result.final_text.as_str()) && !done.result.final_text.is_empty());
}

#[test]
fn a_text_that_is_short_enough_says_nothing_of_bounds() {
    let mut transcript = Transcript::new();
    transcript.push(event(json!({"type": "text", "messageId": "m", "text": "hi"})), &mut Sink(drop));
    let (done, _) = done(&mut transcript);
    let json = serde_json::to_value(&done.result).unwrap();
    assert_eq!((json.get("textTruncated"), json.get("textMissingBytes")), (None, None));
}

#[test]
fn calls_that_are_never_closed_each_get_one_result_and_take_little_memory() {
    let (mut transcript, mut calls, mut results) = (Transcript::new(), 0, 0);
    let before = peak();
    let mut count = |event: &Event| match event {
        Event::ToolUse(_) => calls += 1,
        Event::ToolResult(result) => {
            assert_eq!(result.is_error, Some(true));
            results += 1;
        }
        _ => {}
    };
    let template = event(json!({"type": "tool_use", "toolId": "t", "toolName": "x", "input": {}, "kind": "other"}));
    for number in 0..50_000 {
        let mut event = template.clone();
        if let Event::ToolUse(tool) = &mut event {
            tool.tool_id = format!("a-call-with-a-name-of-usual-length-{number}").into();
        }
        transcript.push(event, &mut Sink(|event| count(&event)));
    }
    let (_, last) = done(&mut transcript);
    last.iter().for_each(&mut count);
    assert_eq!((calls, results), (50_000, 50_000));
    assert_grew_less_than(before, 24 * MIB);
}

#[test]
fn ids_of_closed_calls_and_of_messages_take_little_memory() {
    let mut transcript = Transcript::new();
    let before = peak();
    let result = event(json!({"type": "tool_result", "toolId": "t", "output": ""}));
    for number in 0..50_000 {
        let mut event = result.clone();
        if let Event::ToolResult(result) = &mut event {
            result.tool_id = format!("a-call-with-a-name-of-usual-length-{number}").into();
        }
        transcript.push(event, &mut Sink(drop));
        let id = format!("a-message-with-a-name-of-usual-length-{number}");
        transcript.push(
            Event::Thinking(Delta { text: "x".into(), message_id: id.into(), parent_tool_id: None }),
            &mut Sink(drop),
        );
    }
    assert_grew_less_than(before, 24 * MIB);
    assert!(transcript.is_past_retraction());
}

#[test]
fn warnings_of_one_code_are_passed_on_a_hundred_times_and_then_counted() {
    let (mut transcript, mut passed) = (Transcript::new(), 0);
    for _ in 0..100_000 {
        transcript.push(Warning::new(WarningCode::MalformedLine, "noise").into(), &mut Sink(|_| passed += 1));
    }
    transcript.push(Warning::new(WarningCode::Notice, "another").into(), &mut Sink(|_| passed += 1));
    assert_eq!(passed, 101);
    let (_, last) = done(&mut transcript);
    let [Event::Warning(summary)] = &last[..] else { panic!("{last:?}") };
    assert_eq!(summary.code, WarningCode::MalformedLine);
    assert_eq!(summary.data.as_ref().unwrap()["omitted"], 99_900);
}

/// Feeds a protocol with lines, and measures what that takes.
fn feed(agent: &dyn Agent, mode: Mode, first: &[serde_json::Value], line: impl Fn(usize) -> String) {
    let mut request = RunRequest::new("hi");
    request.mode = mode;
    let mut protocol = agent.plan(&request).unwrap().protocol;
    let mut actions: Vec<Action> = Vec::new();
    protocol.handle(Input::Started, &mut actions);
    for line in first {
        protocol.handle(Input::Line(line.to_string().as_bytes()), &mut actions);
    }
    let before = peak();
    let template = line(usize::MAX);
    for number in 0..12_000 {
        actions.clear();
        let line = template.replace(&usize::MAX.to_string(), &number.to_string());
        protocol.handle(Input::Line(line.as_bytes()), &mut actions);
        assert!(!actions.is_empty(), "{line}");
    }
    assert_grew_less_than(before, 28 * MIB);
}

const PADDING: usize = 3000;

#[test]
fn a_claude_that_calls_tools_without_an_end_takes_little_memory() {
    let padding = "x".repeat(PADDING);
    feed(&Claude, Mode::Auto, &[], |number| {
        json!({"type": "assistant", "uuid": format!("u{number}"), "session_id": "s", "message": {
            "id": format!("m{number}"), "role": "assistant", "content": [
                {"type": "tool_use", "id": format!("t{number}"), "name": "Bash", "input": {"command": padding}}
            ]
        }})
        .to_string()
    });
}

#[test]
fn a_codex_that_calls_tools_without_an_end_takes_little_memory() {
    let padding = "x".repeat(PADDING);
    feed(&Codex, Mode::Exec, &[json!({"type": "thread.started", "thread_id": "t"})], |number| {
        json!({"type": "item.started", "item": {
            "id": format!("item_{number}"), "type": "command_execution", "command": padding,
            "aggregated_output": "", "status": "in_progress"
        }})
        .to_string()
    });
}

#[test]
fn a_gemini_that_calls_tools_without_an_end_takes_little_memory() {
    let padding = "x".repeat(PADDING);
    let first = json!({"type": "init", "timestamp": "2026-01-01T00:00:00Z", "session_id": "s", "model": "m"});
    feed(&Gemini, Mode::Exec, &[first], |number| {
        json!({"type": "tool_use", "timestamp": "2026-01-01T00:00:00Z", "tool_name": "shell",
            "tool_id": format!("t{number}"), "parameters": {"command": padding}})
        .to_string()
    });
}
