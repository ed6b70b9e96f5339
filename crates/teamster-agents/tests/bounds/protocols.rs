//! The protocols limit the calls, messages and requests that they store.

use serde_json::json;
use teamster_agents::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_agents::protocol::{Action, CallId, Command, Input, Protocol, ServerAction, ServerInput};
use teamster_types::event::Event;
use teamster_types::request::{AgentInterface, PermissionMode, Prompt, RunRequest};

use crate::{MIB, assert_grew_less_than, peak};

/// A protocol under test, with the actions of its last input.
struct TestProtocol {
    inner: Box<dyn Protocol>,
    actions: Vec<Action>,
}

impl TestProtocol {
    fn new(agent: &dyn Agent, mode: AgentInterface) -> Self {
        let mut request = RunRequest::new("hi");
        request.interface = mode;
        request.permissions.mode = PermissionMode::Ask;
        let inner = agent.plan(&request).unwrap().protocol;
        let mut protocol = Self { inner, actions: Vec::new() };
        protocol.handle(Input::Started);
        protocol
    }

    fn session(agent: &dyn Agent) -> Self {
        let mut request = RunRequest::default();
        request.cwd = Some("/".into());
        request.permissions.mode = PermissionMode::Ask;
        let inner = agent.plan_session(&request).unwrap().unwrap().protocol;
        let mut protocol = Self { inner, actions: Vec::new() };
        protocol.handle(Input::Started);
        protocol
    }

    fn handle(&mut self, input: Input<'_>) {
        self.actions.clear();
        self.inner.handle(input, &mut self.actions);
    }

    fn line(&mut self, line: &serde_json::Value) {
        self.handle(Input::Line(line.to_string().as_bytes()));
    }

    fn event(&mut self, event: &str) {
        self.handle(Input::Server(ServerInput::Event(event.as_bytes())));
    }

    /// Sends many inputs that are made from a template, and checks the memory. [`NUMBER`] is replaced by a counter.
    fn feed(&mut self, times: usize, template: &serde_json::Value, send: impl Fn(&mut Self, &str)) {
        let (template, before) = (template.to_string(), peak());
        for number in 0..times {
            let line = template.replace(NUMBER, &number.to_string());
            send(self, &line);
            assert!(!self.actions.is_empty(), "{line}");
        }
        assert_grew_less_than(before, 36 * MIB);
    }

    fn feed_lines(&mut self, times: usize, template: &serde_json::Value) {
        self.feed(times, template, |protocol, line| protocol.handle(Input::Line(line.as_bytes())));
    }
}

/// A placeholder for a counter.
const NUMBER: &str = "1234567890";

/// Sends many lines to a protocol, and checks the memory.
fn feed(agent: &dyn Agent, mode: AgentInterface, first: &[serde_json::Value], line: impl Fn(usize) -> String) {
    let mut protocol = TestProtocol::new(agent, mode);
    for line in first {
        protocol.line(line);
    }
    let template = serde_json::from_str(&line(NUMBER.parse().unwrap())).unwrap();
    protocol.feed_lines(14_000, &template);
}

const PADDING: usize = 3000;

#[test]
fn calls_of_claude_without_results_use_little_memory() {
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
fn calls_of_codex_exec_without_results_use_little_memory() {
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
fn calls_of_gemini_without_results_use_little_memory() {
    let padding = "x".repeat(PADDING);
    let first = json!({"type": "init", "timestamp": "2026-01-01T00:00:00Z", "session_id": "s", "model": "m"});
    feed(&Gemini, AgentInterface::Exec, &[first], |number| {
        json!({"type": "tool_use", "timestamp": "2026-01-01T00:00:00Z", "tool_name": "shell",
            "tool_id": format!("t{number}"), "parameters": {"command": padding}})
        .to_string()
    });
}

#[test]
fn failed_mcp_servers_use_little_memory() {
    let name = format!("s{NUMBER}{}", "x".repeat(10 * PADDING));
    TestProtocol::new(&Claude, AgentInterface::Auto).feed_lines(
        1400,
        &json!({"type": "system", "subtype": "init", "session_id": "s", "tools": [], "model": "m",
            "mcp_servers": [{"name": name, "status": "failed"}]}),
    );
}

#[test]
fn streamed_calls_in_one_message_of_claude_use_little_memory() {
    let mut protocol = TestProtocol::new(&Claude, AgentInterface::Auto);
    let of = |event: serde_json::Value| json!({"type": "stream_event", "session_id": "s", "event": event});
    protocol.line(&of(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}})));
    let before = peak();
    for index in 0..40 {
        let call = json!({"type": "tool_use", "id": format!("t{index}"), "name": "Bash", "input": {}});
        protocol.line(&of(json!({"type": "content_block_start", "index": index, "content_block": call})));
        let delta = json!({"type": "input_json_delta", "partial_json": "x".repeat(MIB)});
        protocol.line(&of(json!({"type": "content_block_delta", "index": index, "delta": delta})));
    }
    assert_grew_less_than(before, 36 * MIB);
}

/// Returns an app-server in a turn.
fn app_server() -> TestProtocol {
    let mut protocol = TestProtocol::new(&Codex, AgentInterface::Auto);
    protocol.line(&json!({"id": 1, "result": {"userAgent": "x"}}));
    protocol.line(&json!({"id": 2, "result": {"thread": {"id": "t"}, "model": "m", "cwd": "/"}}));
    protocol.line(&json!({"id": 3, "result": {"turn": {"id": "u", "status": "inProgress"}}}));
    protocol
}

fn note(method: &str, item: &serde_json::Value) -> serde_json::Value {
    json!({"method": method, "params": {"threadId": "t", "turnId": "u", "item": item}})
}

#[test]
fn calls_of_the_app_server_without_results_use_little_memory() {
    let id = format!("c{NUMBER}");
    let command = "x".repeat(PADDING);
    let item = json!({"type": "commandExecution", "id": id, "command": command, "cwd": "/", "status": "inProgress"});
    app_server().feed_lines(14_000, &note("item/started", &item));
    let change = json!({"path": "/a", "kind": {"type": "add"}, "diff": "x".repeat(10 * PADDING)});
    let item = json!({"type": "fileChange", "id": id, "status": "inProgress", "changes": [change]});
    app_server().feed_lines(1400, &note("item/started", &item));
}

#[test]
fn declined_calls_of_the_app_server_use_little_memory() {
    let (id, command) = (format!("c{NUMBER}"), "x".repeat(10 * PADDING));
    let item = json!({"type": "commandExecution", "id": id, "command": command, "cwd": "/", "status": "declined"});
    app_server().feed_lines(1400, &note("item/completed", &item));
}

#[test]
fn unfinished_messages_of_the_app_server_use_little_memory() {
    let params = json!({"threadId": "t", "turnId": "u", "itemId": format!("i{NUMBER}"), "delta": "x".repeat(PADDING)});
    app_server().feed_lines(14_000, &json!({"method": "item/agentMessage/delta", "params": params}));
}

/// Returns an ACP agent in a turn.
fn acp() -> TestProtocol {
    let mut protocol = TestProtocol::session(&Gemini);
    let answer = |id: u32, result: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    protocol
        .line(&answer(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}, "authMethods": []})));
    protocol.line(&answer(2, json!({"sessionId": "s"})));
    protocol.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from("hi") }));
    protocol
}

fn update(update: &serde_json::Value) -> serde_json::Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

#[test]
fn calls_of_an_acp_agent_without_results_use_little_memory() {
    let (id, input) = (format!("t{NUMBER}"), json!({"command": "x".repeat(PADDING)}));
    acp().feed_lines(
        14_000,
        &update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "x", "kind": "execute",
            "status": "pending", "rawInput": input})),
    );
}

#[test]
fn a_call_of_an_acp_agent_with_much_content_uses_little_memory() {
    let block = json!({"type": "content", "content": {"type": "text", "text": "x".repeat(10 * PADDING)}});
    acp().feed_lines(
        1400,
        &update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "x", "kind": "execute",
            "status": "in_progress", "content": [block]})),
    );
}

#[test]
fn text_of_an_acp_agent_between_turns_uses_little_memory() {
    let mut protocol = acp();
    protocol.line(&json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}));
    protocol.handle(Input::TimerElapsed);
    let content = json!({"type": "text", "text": format!("{NUMBER}{}", "x".repeat(PADDING))});
    protocol.feed_lines(14_000, &update(&json!({"sessionUpdate": "agent_message_chunk", "content": content})));
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{NUMBER}"), "title": "x".repeat(PADDING)});
    protocol.feed_lines(14_000, &update(&call));
}

/// Returns an OpenCode server in a turn.
fn opencode() -> TestProtocol {
    let mut protocol = TestProtocol::session(&OpenCode);
    protocol.handle(Input::Line(b"opencode server listening on http://127.0.0.1:1"));
    protocol.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from("hi") }));
    let session = json!({"id": "ses_1", "directory": "/", "version": "1.18.33"});
    for (call, body) in [(1, json!({"directory": "/"})), (2, session)] {
        let body = body.to_string();
        protocol.handle(Input::Server(ServerInput::Reply { call: CallId(call), status: 200, body: body.as_bytes() }));
    }
    protocol.event(r#"{"type":"server.connected","properties":{}}"#);
    protocol.event(r#"{"type":"session.status","properties":{"sessionID":"ses_1","status":{"type":"busy"}}}"#);
    protocol.event(&message("msg_1").to_string());
    protocol
}

fn message(id: &str) -> serde_json::Value {
    let info = json!({"id": id, "role": "assistant", "sessionID": "ses_1", "time": {"created": 1}});
    json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": info}})
}

#[test]
fn messages_of_opencode_with_long_ids_use_little_memory() {
    let id = format!("msg_{NUMBER}{}", "x".repeat(PADDING));
    opencode().feed(14_000, &message(&id), TestProtocol::event);
}

#[test]
fn calls_of_opencode_without_results_use_little_memory() {
    let (id, input) = (format!("prt_{NUMBER}"), json!({"command": "x".repeat(PADDING)}));
    let part = json!({"id": id, "type": "tool", "messageID": "msg_1", "sessionID": "ses_1", "callID": id, "tool": "bash",
        "state": {"status": "running", "input": input}});
    let event = json!({"type": "message.part.updated", "properties": {"sessionID": "ses_1", "part": part}});
    opencode().feed(14_000, &event, TestProtocol::event);
}

#[test]
fn permission_requests_of_opencode_before_their_calls_are_limited_and_further_ones_are_rejected() {
    let mut protocol = opencode();
    let asked = |number: usize| {
        let (id, patterns) = (format!("per_{number}"), json!(["x".repeat(10 * PADDING)]));
        json!({"type": "permission.asked", "properties": {"id": id, "sessionID": "ses_1", "permission": "bash",
            "patterns": patterns, "tool": {"messageID": "msg_1", "callID": "unknown"}}})
    };
    let (before, mut rejected) = (peak(), 0);
    for number in 0..1400 {
        protocol.event(&asked(number).to_string());
        rejected +=
            protocol.actions.iter().filter(|action| matches!(action, Action::Server(ServerAction::Call(_)))).count();
    }
    assert_grew_less_than(before, 36 * MIB);
    assert!(rejected > 500, "{rejected} were rejected");
    protocol.event(r#"{"type":"server.heartbeat","properties":{}}"#);
    let asked = protocol.actions.iter().filter(|action| matches!(action, Action::Emit(Event::PermissionRequest(_))));
    assert_eq!(asked.count() + rejected, 1400);
}
