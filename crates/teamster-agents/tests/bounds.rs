//! What an agent can make grow, and what of it is kept. These tests have processes of their own, whose memory is measured.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code; the memory of the process is read from /proc"
)]

use serde_json::json;
use teamster_agents::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_agents::protocol::{Action, CallId, Command, Input, Outcome, Protocol, ServerAction, ServerInput};
use teamster_agents::transcript::{End, Transcript};
use teamster_types::event::{Delta, Done, Event, PermissionDenial, Warning, WarningCode};
use teamster_types::request::{AgentInterface, PermissionMode, Prompt, RunRequest};

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

#[test]
fn ids_of_any_length_take_little_memory() {
    let mut transcript = Transcript::new();
    let before = peak();
    for number in 0..80 {
        let id = format!("{number}{}", "x".repeat(MIB));
        let delta = Delta { text: "x".into(), message_id: id.into(), parent_tool_id: None };
        transcript.push(Event::Text(delta), &mut Sink(drop));
    }
    assert_grew_less_than(before, 56 * MIB);
    let (done, _) = done(&mut transcript);
    assert_eq!(done.result.text, "x".repeat(80));
}

#[test]
fn denials_in_a_result_have_their_inputs_as_far_as_there_is_room() {
    let mut transcript = Transcript::new();
    let input = json!({"command": "x".repeat(MIB)});
    let denial = json!({"toolName": "shell", "toolId": "t", "input": input});
    let denial: PermissionDenial = serde_json::from_value(denial).unwrap();
    let mut outcome = Outcome::default();
    outcome.permission_denials = vec![denial; 100];
    transcript.set_outcome(outcome);
    let mut last = Vec::new();
    transcript.end(&End::default(), &mut last);
    let Some(Event::Done(done)) = last.pop() else { panic!("no done") };
    let denials = &done.result.permission_denials;
    assert_eq!((denials.len(), denials.iter().filter(|denial| denial.input.is_some()).count()), (100, 15));
    assert!(denials[0].input.is_some() && denials[99].input.is_none());
}

/// A protocol that is fed, and what it wrote last.
struct Fed {
    protocol: Box<dyn Protocol>,
    actions: Vec<Action>,
}

impl Fed {
    fn new(agent: &dyn Agent, mode: AgentInterface) -> Self {
        let mut request = RunRequest::new("hi");
        request.interface = mode;
        request.permissions.mode = PermissionMode::Ask;
        let protocol = agent.plan(&request).unwrap().protocol;
        let mut fed = Self { protocol, actions: Vec::new() };
        fed.tell(Input::Started);
        fed
    }

    fn session(agent: &dyn Agent) -> Self {
        let mut request = RunRequest::default();
        request.cwd = Some("/".into());
        request.permissions.mode = PermissionMode::Ask;
        let protocol = agent.plan_session(&request).unwrap().unwrap().protocol;
        let mut fed = Self { protocol, actions: Vec::new() };
        fed.tell(Input::Started);
        fed
    }

    fn tell(&mut self, input: Input<'_>) {
        self.actions.clear();
        self.protocol.handle(input, &mut self.actions);
    }

    fn line(&mut self, line: &serde_json::Value) {
        self.tell(Input::Line(line.to_string().as_bytes()));
    }

    fn event(&mut self, event: &str) {
        self.tell(Input::Server(ServerInput::Event(event.as_bytes())));
    }

    /// Tells much of one form, and measures what that takes. Numbers come in the place of the largest one.
    fn feed(&mut self, times: usize, template: &serde_json::Value, tell: impl Fn(&mut Self, &str)) {
        let (template, before) = (template.to_string(), peak());
        for number in 0..times {
            let line = template.replace(NUMBER, &number.to_string());
            tell(self, &line);
            assert!(!self.actions.is_empty(), "{line}");
        }
        assert_grew_less_than(before, 36 * MIB);
    }

    fn feed_lines(&mut self, times: usize, template: &serde_json::Value) {
        self.feed(times, template, |fed, line| fed.tell(Input::Line(line.as_bytes())));
    }
}

/// Stands for a number that counts.
const NUMBER: &str = "1234567890";

/// Feeds a protocol with lines, and measures what that takes.
fn feed(agent: &dyn Agent, mode: AgentInterface, first: &[serde_json::Value], line: impl Fn(usize) -> String) {
    let mut fed = Fed::new(agent, mode);
    for line in first {
        fed.line(line);
    }
    let template = serde_json::from_str(&line(NUMBER.parse().unwrap())).unwrap();
    fed.feed_lines(14_000, &template);
}

const PADDING: usize = 3000;

#[test]
fn a_claude_that_calls_tools_without_an_end_takes_little_memory() {
    let padding = "x".repeat(PADDING);
    feed(&Claude, AgentInterface::Auto, &[], |number| {
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
    feed(&Codex, AgentInterface::Exec, &[json!({"type": "thread.started", "thread_id": "t"})], |number| {
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
    feed(&Gemini, AgentInterface::Exec, &[first], |number| {
        json!({"type": "tool_use", "timestamp": "2026-01-01T00:00:00Z", "tool_name": "shell",
            "tool_id": format!("t{number}"), "parameters": {"command": padding}})
        .to_string()
    });
}

#[test]
fn servers_that_fail_without_an_end_take_little_memory() {
    let name = format!("s{NUMBER}{}", "x".repeat(10 * PADDING));
    Fed::new(&Claude, AgentInterface::Auto).feed_lines(
        1400,
        &json!({"type": "system", "subtype": "init", "session_id": "s", "tools": [], "model": "m",
            "mcp_servers": [{"name": name, "status": "failed"}]}),
    );
}

#[test]
fn calls_that_claude_streams_within_one_message_take_little_memory() {
    let mut fed = Fed::new(&Claude, AgentInterface::Auto);
    let of = |event: serde_json::Value| json!({"type": "stream_event", "session_id": "s", "event": event});
    fed.line(&of(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}})));
    let before = peak();
    for index in 0..40 {
        let call = json!({"type": "tool_use", "id": format!("t{index}"), "name": "Bash", "input": {}});
        fed.line(&of(json!({"type": "content_block_start", "index": index, "content_block": call})));
        let delta = json!({"type": "input_json_delta", "partial_json": "x".repeat(MIB)});
        fed.line(&of(json!({"type": "content_block_delta", "index": index, "delta": delta})));
    }
    assert_grew_less_than(before, 36 * MIB);
}

/// An app-server whose turn runs.
fn app_server() -> Fed {
    let mut fed = Fed::new(&Codex, AgentInterface::Auto);
    fed.line(&json!({"id": 1, "result": {"userAgent": "x"}}));
    fed.line(&json!({"id": 2, "result": {"thread": {"id": "t"}, "model": "m", "cwd": "/"}}));
    fed.line(&json!({"id": 3, "result": {"turn": {"id": "u", "status": "inProgress"}}}));
    fed
}

fn note(method: &str, item: &serde_json::Value) -> serde_json::Value {
    json!({"method": method, "params": {"threadId": "t", "turnId": "u", "item": item}})
}

#[test]
fn an_app_server_that_makes_calls_without_an_end_takes_little_memory() {
    let id = format!("c{NUMBER}");
    let command = "x".repeat(PADDING);
    let item = json!({"type": "commandExecution", "id": id, "command": command, "cwd": "/", "status": "inProgress"});
    app_server().feed_lines(14_000, &note("item/started", &item));
    let change = json!({"path": "/a", "kind": {"type": "add"}, "diff": "x".repeat(10 * PADDING)});
    let item = json!({"type": "fileChange", "id": id, "status": "inProgress", "changes": [change]});
    app_server().feed_lines(1400, &note("item/started", &item));
}

#[test]
fn an_app_server_whose_calls_are_declined_without_an_end_takes_little_memory() {
    let (id, command) = (format!("c{NUMBER}"), "x".repeat(10 * PADDING));
    let item = json!({"type": "commandExecution", "id": id, "command": command, "cwd": "/", "status": "declined"});
    app_server().feed_lines(1400, &note("item/completed", &item));
}

#[test]
fn an_app_server_that_begins_messages_without_an_end_takes_little_memory() {
    let params = json!({"threadId": "t", "turnId": "u", "itemId": format!("i{NUMBER}"), "delta": "x".repeat(PADDING)});
    app_server().feed_lines(14_000, &json!({"method": "item/agentMessage/delta", "params": params}));
}

/// An ACP agent that works on a prompt.
fn acp() -> Fed {
    let mut fed = Fed::session(&Gemini);
    let answer = |id: u32, result: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    fed.line(&answer(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}, "authMethods": []})));
    fed.line(&answer(2, json!({"sessionId": "s"})));
    fed.tell(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from("hi") }));
    fed
}

fn update(update: &serde_json::Value) -> serde_json::Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

#[test]
fn an_acp_agent_that_calls_tools_without_an_end_takes_little_memory() {
    let (id, input) = (format!("t{NUMBER}"), json!({"command": "x".repeat(PADDING)}));
    acp().feed_lines(
        14_000,
        &update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "x", "kind": "execute",
            "status": "pending", "rawInput": input})),
    );
}

#[test]
fn an_acp_agent_whose_one_call_shows_more_and_more_takes_little_memory() {
    let block = json!({"type": "content", "content": {"type": "text", "text": "x".repeat(10 * PADDING)}});
    acp().feed_lines(
        1400,
        &update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "x", "kind": "execute",
            "status": "in_progress", "content": [block]})),
    );
}

/// An OpenCode whose session works on a prompt.
fn opencode() -> Fed {
    let mut fed = Fed::session(&OpenCode);
    fed.tell(Input::Line(b"opencode server listening on http://127.0.0.1:1"));
    fed.tell(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from("hi") }));
    let session = json!({"id": "ses_1", "directory": "/", "version": "1.18.33"});
    for (call, body) in [(1, json!({"directory": "/"})), (2, session)] {
        let body = body.to_string();
        fed.tell(Input::Server(ServerInput::Reply { call: CallId(call), status: 200, body: body.as_bytes() }));
    }
    fed.event(r#"{"type":"server.connected","properties":{}}"#);
    fed.event(r#"{"type":"session.status","properties":{"sessionID":"ses_1","status":{"type":"busy"}}}"#);
    fed.event(&message("msg_1").to_string());
    fed
}

fn message(id: &str) -> serde_json::Value {
    let info = json!({"id": id, "role": "assistant", "sessionID": "ses_1", "time": {"created": 1}});
    json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": info}})
}

#[test]
fn an_opencode_that_begins_messages_with_long_ids_takes_little_memory() {
    let id = format!("msg_{NUMBER}{}", "x".repeat(PADDING));
    opencode().feed(14_000, &message(&id), Fed::event);
}

#[test]
fn an_opencode_that_calls_tools_without_an_end_takes_little_memory() {
    let (id, input) = (format!("prt_{NUMBER}"), json!({"command": "x".repeat(PADDING)}));
    let part = json!({"id": id, "type": "tool", "messageID": "msg_1", "sessionID": "ses_1", "callID": id, "tool": "bash",
        "state": {"status": "running", "input": input}});
    let event = json!({"type": "message.part.updated", "properties": {"sessionID": "ses_1", "part": part}});
    opencode().feed(14_000, &event, Fed::event);
}

#[test]
fn requests_of_opencode_that_wait_for_their_calls_are_bounded_and_those_beyond_are_refused() {
    let mut fed = opencode();
    let asked = |number: usize| {
        let (id, patterns) = (format!("per_{number}"), json!(["x".repeat(10 * PADDING)]));
        json!({"type": "permission.asked", "properties": {"id": id, "sessionID": "ses_1", "permission": "bash",
            "patterns": patterns, "tool": {"messageID": "msg_1", "callID": "unknown"}}})
    };
    let (before, mut refused) = (peak(), 0);
    for number in 0..1400 {
        fed.event(&asked(number).to_string());
        refused += fed.actions.iter().filter(|action| matches!(action, Action::Server(ServerAction::Call(_)))).count();
    }
    assert_grew_less_than(before, 36 * MIB);
    assert!(refused > 500, "{refused} were refused");
    fed.event(r#"{"type":"server.heartbeat","properties":{}}"#);
    let asked = fed.actions.iter().filter(|action| matches!(action, Action::Emit(Event::PermissionRequest(_))));
    assert_eq!(asked.count() + refused, 1400);
}
