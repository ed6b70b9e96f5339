//! The client of ACP in sessions: what is asked for, in which order, and what is answered.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_protocol::agent::{Agent, acp::Acp, gemini::Gemini};
use teamster_protocol::event::{ErrorCode, Event, RequestId, StopReason};
use teamster_protocol::protocol::{Action, Command, Input, Outcome, Protocol};
use teamster_protocol::request::{
    Answer, Attachment, Conversation, McpServer, PermissionMode, Prompt, PromptMode, RunRequest,
};

use crate::subject::precise;

/// An agent's side of a session, played line by line.
struct Played {
    protocol: Box<dyn Protocol>,
    written: Vec<Value>,
    events: Vec<Event>,
    outcomes: Vec<Outcome>,
    withdrawn: Vec<RequestId>,
    reopens: bool,
}

fn frame() -> RunRequest {
    let mut frame = precise("");
    frame.prompt.clear();
    frame
}

impl Played {
    fn of(agent: &dyn Agent, frame: &RunRequest) -> Self {
        let protocol = agent.plan_session(frame).unwrap().unwrap().protocol;
        let (written, events, outcomes, withdrawn) = Default::default();
        let mut played = Self { protocol, written, events, outcomes, withdrawn, reopens: false };
        played.tell(Input::Started);
        played
    }

    fn new(frame: &RunRequest) -> Self {
        Self::of(&Acp::any(), frame)
    }

    /// A session that is open, with these fields in the answer that opened it.
    fn open(frame: &RunRequest, opened: &Value) -> Self {
        let mut played = Self::new(frame);
        played.welcome(&json!({}));
        let mut result = json!({"sessionId": "s"});
        result.as_object_mut().unwrap().extend(opened.as_object().unwrap().clone());
        played.answer(&result);
        played
    }

    fn tell(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Write(bytes) => self.written.push(serde_json::from_slice(&bytes).unwrap()),
                Action::Emit(event) => self.events.push(event),
                Action::Outcome(outcome) => self.outcomes.push(*outcome),
                Action::Withdraw(id) => self.withdrawn.push(id),
                Action::Reopen => self.reopens = true,
                _ => {}
            }
        }
    }

    fn line(&mut self, line: &Value) {
        self.tell(Input::Line(line.to_string().as_bytes()));
    }

    fn welcome(&mut self, capabilities: &Value) {
        self.answer(&json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
    }

    /// Answers the last call.
    fn answer(&mut self, result: &Value) {
        let id = self.last_call()["id"].clone();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn fail(&mut self, error: &Value) {
        let id = self.last_call()["id"].clone();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn last_call(&self) -> &Value {
        let is_call = |line: &&Value| line.get("method").is_some() && line.get("id").is_some();
        self.written.iter().rev().find(is_call).unwrap()
    }

    fn update(&mut self, update: &Value) {
        self.line(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}),
        );
    }

    fn ask(&mut self, id: u64, kind: &str) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
            "sessionId": "s",
            "toolCall": {"toolCallId": format!("call-{id}"), "title": "do it", "kind": kind, "status": "pending"},
            "options": [
                {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                {"optionId": "no", "name": "No", "kind": "reject_once"},
            ],
        }}));
    }

    fn send(&mut self, text: &str) {
        self.tell(Input::Command(Command::Send(&Prompt::from(text))));
    }

    fn methods(&self) -> Vec<&str> {
        self.written.iter().filter_map(|line| line.get("method")?.as_str()).collect()
    }

    /// What was answered to a request of the agent.
    fn reply(&self, id: u64) -> Vec<&Value> {
        let is_reply = |line: &&Value| line.get("method").is_none() && line["id"] == id;
        self.written.iter().filter(is_reply).collect()
    }

    fn requests(&self) -> Vec<RequestId> {
        let id = |event: &Event| match event {
            Event::PermissionRequest(request) => Some(request.request_id.clone()),
            _ => None,
        };
        self.events.iter().filter_map(id).collect()
    }

    fn failure(&self) -> (ErrorCode, String) {
        let failure = self.outcomes.last().unwrap().failure.clone().unwrap();
        (failure.code, failure.message)
    }
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn what_we_write_is_as_the_protocol_has_it() {
    let mut frame = frame();
    frame.mcp_servers = [
        ("a".to_owned(), McpServer::stdio("program").args(["x"]).env("KEY", "secret")),
        ("b".to_owned(), McpServer::http("http://127.0.0.1/").header("X", "y")),
        ("c".to_owned(), McpServer::sse("http://127.0.0.1/")),
    ]
    .into();
    let mut played = Played::new(&frame);
    let params = |played: &Played| played.last_call()["params"].clone();
    let initialize = params(&played);
    assert_eq!(initialize["protocolVersion"], 1);
    let none = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
    assert_eq!(initialize["clientCapabilities"], none);
    played.welcome(&json!({
        "mcpCapabilities": {"http": true, "sse": true},
        "promptCapabilities": {"image": true, "embeddedContext": true},
    }));
    let servers = json!([
        {"name": "a", "command": "program", "args": ["x"], "env": [{"name": "KEY", "value": "secret"}]},
        {"type": "http", "name": "b", "url": "http://127.0.0.1/", "headers": [{"name": "X", "value": "y"}]},
        {"type": "sse", "name": "c", "url": "http://127.0.0.1/", "headers": []},
    ]);
    assert_eq!(params(&played), json!({"cwd": "/home/dev/project", "mcpServers": servers}));
    played.answer(&json!({"sessionId": "s"}));
    let mut prompt = Prompt::from("Look.");
    let file = |name: &str, data: &[u8]| Attachment::Data { name: name.to_owned(), data: data.to_vec() };
    prompt.attachments = vec![file("a.png", b"\x89PNG\r\n\x1a\n"), file("b.txt", b"text"), file("c.pdf", b"%PDF-1.4")];
    played.tell(Input::Command(Command::Send(&prompt)));
    let blocks = json!([
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
        {"type": "text", "text": "Attached file b.txt:\ntext"},
        {"type": "resource", "resource": {"uri": "attachment:c.pdf", "mimeType": "application/pdf", "blob": "JVBERi0xLjQ="}},
        {"type": "text", "text": "Look."},
    ]);
    assert_eq!(params(&played), json!({"sessionId": "s", "prompt": blocks}));
    played.ask(7, "execute");
    let id = played.requests()[0].clone();
    played.tell(Input::Command(Command::Answer { request: &id, answer: &Answer::AllowAlways }));
    assert_eq!(played.reply(7)[0], &json!({"jsonrpc": "2.0", "id": 7, "result": selected("yes")}));
    played.tell(Input::Interrupt);
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
    assert_eq!(played.written.last(), Some(&cancel));
}

#[test]
fn whoever_waits_for_leave_is_told_before_the_turn_is_cancelled() {
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played.ask(3, "execute");
    let id = played.requests()[0].clone();
    played.tell(Input::Interrupt);
    let last: Vec<_> = played.written.iter().rev().take(2).collect();
    assert_eq!(last[0]["method"], "session/cancel");
    assert_eq!(last[1]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(played.withdrawn, [id]);
    // What comes too late is cancelled as well.
    played.ask(4, "execute");
    assert_eq!(played.reply(4)[0]["result"]["outcome"]["outcome"], "cancelled");
    played.line(&json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}}));
    let outcome = &played.outcomes[0];
    assert!(outcome.interrupted && outcome.stop_reason == Some(StopReason::Cancelled));
    assert!(!played.reopens, "the session goes on");
}

#[test]
fn a_turn_that_ended_before_it_heard_of_the_interrupt_was_not_interrupted() {
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played.tell(Input::Interrupt);
    played.answer(&json!({"stopReason": "end_turn"}));
    assert!(!played.outcomes[0].interrupted && played.outcomes[0].failure.is_none());
}

#[test]
fn a_prompt_that_was_interrupted_before_it_was_sent_is_never_sent() {
    let mut played = Played::new(&frame());
    played.send("Go.");
    played.tell(Input::Interrupt);
    assert!(played.outcomes[0].interrupted);
    played.welcome(&json!({}));
    played.answer(&json!({"sessionId": "s"}));
    assert_eq!(played.methods(), ["initialize", "session/new"]);
}

#[test]
fn a_call_is_told_once_and_has_one_result_whatever_is_said_of_it_and_when() {
    let kinds = |played: &Played| {
        let kind = |event: &Event| match event {
            Event::ToolUse(tool) => Some(format!("use {} {}", tool.tool_name, tool.input)),
            Event::ToolResult(result) => Some(format!("result {:?} {}", result.is_error, result.output)),
            _ => None,
        };
        played.events.iter().filter_map(kind).collect::<Vec<_>>()
    };
    let call = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-3"});
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        update
    };
    // Asked for first, denied, and spoken of again.
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played.ask(3, "execute");
    let id = played.requests()[0].clone();
    let deny = Answer::Deny { message: Some("Not today.".to_owned()) };
    played.tell(Input::Command(Command::Answer { request: &id, answer: &deny }));
    played.update(&call(json!({"status": "failed"})));
    assert_eq!(kinds(&played), [r#"use execute {"title":"do it"}"#, "result Some(true) Not today."]);
    assert_eq!(played.reply(3)[0]["result"], selected("no"));
    played.answer(&json!({"stopReason": "cancelled"}));
    assert!(played.outcomes[0].failure.is_none(), "it gave up since leave was denied");
    assert_eq!(played.outcomes[0].permission_denials.len(), 1);

    // Begun without its arguments, as OpenCode does.
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "call-3", "title": "bash", "kind": "execute",
        "status": "pending", "rawInput": {"cwd": "/"}});
    played.update(&begun);
    assert!(kinds(&played).is_empty());
    played.update(&call(json!({"status": "in_progress", "title": "ls", "rawInput": {"command": "ls"}})));
    played.update(&call(json!({"status": "completed", "rawOutput": {"output": "a file"}})));
    played.update(&call(json!({"status": "completed", "rawOutput": {"output": "twice"}})));
    assert_eq!(kinds(&played), [r#"use bash {"command":"ls"}"#, "result Some(false) a file"]);
    played.answer(&json!({"stopReason": "end_turn"}));

    // What is said of it in the next turn comes too late, unless it begins anew.
    played.events.clear();
    played.send("Again.");
    played.update(&call(json!({"status": "completed"})));
    assert!(kinds(&played).is_empty());
    played.update(&begun);
    played.answer(&json!({"stopReason": "end_turn"}));
    assert_eq!(kinds(&played), [r#"use bash {"cwd":"/"}"#], "it never began, and is told all the same");
}

#[test]
fn a_request_that_we_do_not_serve_is_answered_with_an_error() {
    let mut played = Played::open(&frame(), &json!({}));
    played.send("Go.");
    played
        .line(&json!({"jsonrpc": "2.0", "id": "x", "method": "fs/write_text_file", "params": {"path": "/etc/passwd"}}));
    let last = played.written.last().unwrap();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[test]
fn nothing_goes_to_the_model_before_the_session_is_as_it_was_asked_for() {
    let modes = |current: &str| {
        json!({"modes": {"currentModeId": current, "availableModes": [
        {"id": "default"}, {"id": "plan"}, {"id": "bypassPermissions"}]}})
    };
    let mut frame = frame();
    frame.permissions.mode = PermissionMode::ReadOnly;
    let mut played = Played::open(&frame, &modes("default"));
    played.send("Go.");
    assert_eq!(played.methods(), ["initialize", "session/new", "session/set_mode"]);
    assert_eq!(played.last_call()["params"], json!({"sessionId": "s", "modeId": "plan"}));
    played.answer(&json!({}));
    assert_eq!(played.methods().last(), Some(&"session/prompt"));

    let mut played = Played::open(&frame, &modes("default"));
    played.send("Go.");
    played.fail(&json!({"code": -32603, "message": "no"}));
    assert!(!played.methods().contains(&"session/prompt") && played.reopens);

    // A mode that allows more than is asked for is left.
    let mut played = Played::open(&self::frame(), &modes("bypassPermissions"));
    played.send("Go.");
    assert_eq!(played.last_call()["params"]["modeId"], "default");

    // Without a mode that only reads, the model hears nothing.
    let mut played = Played::open(&frame, &json!({}));
    played.send("Go.");
    assert_eq!(played.failure().0, ErrorCode::InvalidRequest);
    assert!(!played.methods().contains(&"session/prompt"));
}

#[test]
fn models_and_effort_are_options_of_the_session_where_they_are_not_lists() {
    let options = json!({"configOptions": [
        {"id": "m", "category": "model", "type": "select", "currentValue": "a", "options": [
            {"group": "g", "options": [{"value": "a"}, {"value": "b"}]}]},
        {"id": "e", "category": "thought_level", "type": "select", "currentValue": "low", "options": [
            {"value": "low"}, {"value": "high"}]},
    ]});
    let mut frame = frame();
    (frame.model, frame.effort) = (Some("b".to_owned()), Some("high".to_owned()));
    let mut played = Played::open(&frame, &options);
    played.send("Go.");
    let calls: Vec<_> = played.written.iter().skip(2).map(|call| &call["params"]).collect();
    assert_eq!(calls[0], &json!({"sessionId": "s", "configId": "m", "value": "b"}));
    assert_eq!(calls[1], &json!({"sessionId": "s", "configId": "e", "value": "high"}));
    for id in [3, 4] {
        assert!(!played.methods().contains(&"session/prompt"));
        played.line(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    assert_eq!(played.methods().last(), Some(&"session/prompt"));

    frame.model = Some("c".to_owned());
    let mut played = Played::open(&frame, &options);
    played.send("Go.");
    assert_eq!(played.failure().1, r#"the agent has no model "c"; it has: a, b"#);
}

#[test]
fn an_agent_that_cannot_go_on_with_a_session_says_so_and_no_new_one_is_begun() {
    let mut frame = frame();
    frame.conversation = Conversation::Resume("old".into());
    let mut played = Played::new(&frame);
    played.send("Go.");
    played.welcome(&json!({}));
    assert_eq!(played.failure().0, ErrorCode::InvalidRequest);
    assert_eq!(played.methods(), ["initialize"]);
    for (capabilities, method) in [
        (json!({"loadSession": true}), "session/load"),
        (json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), "session/resume"),
    ] {
        let mut played = Played::new(&frame);
        played.welcome(&capabilities);
        assert_eq!(played.methods().last(), Some(&method));
        played.update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "of old"}}));
        played.answer(&json!({"sessionId": "another"}));
        played.send("Go.");
        assert_eq!(played.failure().0, ErrorCode::Protocol, "another session answers");
        assert!(!played.events.iter().any(|event| matches!(event, Event::Text(_))));
    }
}

#[test]
fn a_login_that_is_missing_is_told_with_the_ways_there_are() {
    let mut played = Played::new(&frame());
    played.send("Go.");
    played.answer(
        &json!({"protocolVersion": 1, "authMethods": [{"id": "x", "name": "Log in", "description": "by browser"}]}),
    );
    played.fail(&json!({"code": -32000, "message": "Authentication required"}));
    let (code, message) = played.failure();
    assert_eq!(code, ErrorCode::Auth);
    assert!(message.ends_with("It offers: Log in (by browser)"), "{message}");
    assert!(!played.methods().contains(&"authenticate"));
    assert!(played.reopens, "the next turn tries again");
}

#[test]
fn servers_that_the_agent_cannot_reach_are_refused_before_a_session_is_begun() {
    let mut frame = frame();
    frame.mcp_servers.insert("web".to_owned(), McpServer::http("http://127.0.0.1/"));
    let mut played = Played::new(&frame);
    played.send("Go.");
    played.welcome(&json!({}));
    assert_eq!(played.failure().1, r#"the agent cannot reach MCP servers by http, as "web" is: leave it out"#);
    assert_eq!(played.methods(), ["initialize"]);
}

#[test]
fn gemini_is_asked_for_an_old_session_in_a_way_that_does_not_lose_it() {
    let mut frame = frame();
    frame.conversation = Conversation::Resume("08de391e-4b09-4535-8307-40c9312339cb".into());
    let mut played = Played::of(&Gemini, &frame);
    played.welcome(&json!({"loadSession": true}));
    let wire = " 08de391e-4b09-4535-8307-40c9312339cb";
    assert_eq!(played.last_call()["params"]["sessionId"], wire);
    played.send("Go.");
    played.answer(&json!({"modes": {"currentModeId": "default", "availableModes": []}}));
    // The history comes before and after the answer: the model is asked when a later call was answered.
    let said = |text: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": wire, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
    };
    played.line(&said("of old"));
    assert_eq!(played.last_call()["method"], "session/set_mode");
    played.answer(&json!({}));
    assert_eq!(played.last_call()["method"], "session/prompt");
    played.line(&said("[MODE_UPDATE] default"));
    played.line(&said("new"));
    played.answer(&json!({"stopReason": "end_turn"}));
    let texts: Vec<_> = played
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Text(delta) => Some(delta.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["new"]);
    let id = played.outcomes[0].session_id.clone().unwrap();
    assert_eq!(id.as_str(), wire.trim());
}

#[test]
fn gemini_runs_no_command_of_a_literal_prompt() {
    let mut frame = frame();
    frame.prompt_mode = PromptMode::Literal;
    for (text, goes) in
        [("/memory add x", false), (" $help", false), ("/quit", true), ("say /help", true), ("@file", true)]
    {
        let mut played = Played::of(&Gemini, &frame);
        played.welcome(&json!({}));
        played.answer(&json!({"sessionId": "s"}));
        played.send(text);
        assert_eq!(played.methods().contains(&"session/prompt"), goes, "{text}");
        assert_eq!(played.outcomes.is_empty(), goes, "{text}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Line(Value),
    Send,
    Interrupt,
    Answer(usize),
    Model,
    Mode(PermissionMode),
}

fn lines() -> impl Strategy<Value = Value> {
    let id = || prop_oneof![(0..12u64).prop_map(Value::from), Just(json!("x")), Just(Value::Null)];
    let update = select(vec![
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "current_mode_update",
        "config_option_update",
        "usage_update",
        "made_up",
    ]);
    let status = select(vec![json!("pending"), json!("in_progress"), json!("completed"), json!("failed"), json!(7)]);
    let updates = (update, status, select(vec!["a", "b", "a__a_1"])).prop_map(|(update, status, call)| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": update, "status": status, "toolCallId": call, "title": call, "currentModeId": "yolo",
            "content": {"type": "text", "text": "x"}, "cost": {"amount": 1.5, "currency": "USD"}}}})
    });
    let asks = (id(), select(vec!["session/request_permission", "fs/read_text_file"])).prop_map(|(id, method)| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"sessionId": "s",
            "toolCall": {"toolCallId": "a", "kind": "edit"}, "options": [{"optionId": "y", "name": "", "kind": "allow_once"}]}})
    });
    let results = select(vec![
        json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}),
        json!({"sessionId": "s"}),
        json!({"stopReason": "end_turn"}),
        json!({"stopReason": "cancelled"}),
        json!({}),
        json!([]),
    ]);
    let answers = ((1..12u64), results).prop_map(|(id, result)| json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let errors =
        (1..12u64).prop_map(|id| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no"}}));
    prop_oneof![4 => updates, 2 => asks, 4 => answers, 1 => errors]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let modes = vec![PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full];
    let step = prop_oneof![
        8 => lines().prop_map(Step::Line),
        3 => Just(Step::Send),
        1 => Just(Step::Interrupt),
        2 => (0..4usize).prop_map(Step::Answer),
        1 => Just(Step::Model),
        1 => select(modes).prop_map(Step::Mode),
    ];
    vec(step, 0..60)
}

proptest! {
    #[test]
    fn whatever_an_agent_says_its_requests_are_answered_once_and_a_turn_has_one_outcome(
        steps in steps(), gemini: bool, opens: bool
    ) {
        let agent: &dyn Agent = if gemini { &Gemini } else { &Acp::any() };
        let mut played = Played::of(agent, &frame());
        if opens {
            played.welcome(&json!({}));
            played.answer(&json!({"sessionId": "s"}));
        }
        let (mut sent, mut asked) = (0, Vec::<(Value, usize)>::new());
        for step in steps {
            match step {
                Step::Line(line) => {
                    if line.get("method").is_some() && let Some(id) = line.get("id").filter(|id| !id.is_null()) {
                        match asked.iter_mut().find(|(known, _)| known == id) {
                            Some((_, count)) => *count += 1,
                            None => asked.push((id.clone(), 1)),
                        }
                    }
                    played.line(&line);
                }
                // The driver sends when the last turn has had its outcome.
                Step::Send if played.outcomes.len() == sent => {
                    sent += 1;
                    played.send("Prompt.");
                }
                Step::Send => {}
                Step::Interrupt => played.tell(Input::Interrupt),
                Step::Answer(place) => {
                    if let Some(request) = played.requests().get(place).cloned() {
                        played.tell(Input::Command(Command::Answer { request: &request, answer: &Answer::AllowAlways }));
                    }
                }
                Step::Model => played.tell(Input::Command(Command::SetModel("m"))),
                Step::Mode(mode) => played.tell(Input::Command(Command::SetPermissionMode(mode))),
            }
            prop_assert!(played.outcomes.len() <= sent);
        }
        played.tell(Input::Interrupt);
        for (id, count) in asked {
            let is_reply = |line: &&Value| line.get("method").is_none() && line["id"] == id;
            let replies = played.written.iter().filter(is_reply).count();
            prop_assert_eq!(replies, count, "{}", id);
        }
        let mut told = BTreeMap::<&str, (usize, usize)>::new();
        for event in &played.events {
            match event {
                Event::ToolUse(tool) => told.entry(tool.tool_id.as_str()).or_default().0 += 1,
                Event::ToolResult(result) => {
                    let (uses, results) = told.entry(result.tool_id.as_str()).or_default();
                    *results += 1;
                    prop_assert!(results <= uses, "a result before its call");
                }
                _ => {}
            }
        }
    }
}
