//! Properties for any output of an agent and any commands of the caller.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_agents::agent::{Agent, acp::Acp, gemini::Gemini};
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::Event;
use teamster_types::request::{Answer, Conversation, PermissionMode};

use super::{TestSession, session_request};

#[derive(Clone, Debug)]
enum Step {
    Line(Value),
    Send,
    Interrupt,
    TimerElapsed,
    Answer(usize),
    Model,
    Mode(PermissionMode),
}

fn lines() -> impl Strategy<Value = Value> {
    let id = || prop_oneof![(0..12u64).prop_map(Value::from), Just(json!("x")), Just(Value::Null)];
    let update = select(vec![
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
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
    let asks = (id(), select(vec!["session/request_permission", "fs/read_text_file", "elicitation/create"])).prop_map(|(id, method)| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"sessionId": "s",
            "toolCall": {"toolCallId": "a", "kind": "edit"}, "options": [{"optionId": "y", "name": "", "kind": "allow_once"}],
            "mode": "form", "message": "?", "requestedSchema": {"properties": {}}}})
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
        2 => Just(Step::TimerElapsed),
        2 => (0..4usize).prop_map(Step::Answer),
        1 => Just(Step::Model),
        1 => select(modes).prop_map(Step::Mode),
    ];
    vec(step, 0..60)
}

proptest! {
    #[test]
    fn every_request_gets_one_response_and_every_turn_one_outcome(
        steps in steps(), gemini: bool, opens: bool, resumes: bool
    ) {
        let agent: &dyn Agent = if gemini { &Gemini } else { &Acp::any() };
        let mut request = session_request();
        if resumes {
            request.conversation = Conversation::Resume("s".into());
        }
        let mut session = TestSession::of(agent, &request);
        if opens {
            session.initialize(&json!({"loadSession": true}));
            session.answer(&json!({"sessionId": "s"}));
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
                    session.line(&line);
                }
                // The driver sends a prompt only after the outcome of the last turn.
                Step::Send if session.outcomes.len() == sent => {
                    sent += 1;
                    session.send("Prompt.");
                }
                Step::Send => {}
                Step::Interrupt => session.handle(Input::Interrupt),
                Step::TimerElapsed => {
                    if session.timer.take().is_some() {
                        session.handle(Input::TimerElapsed);
                    }
                }
                Step::Answer(place) => {
                    if let Some(request) = session.requests().get(place).cloned() {
                        session.handle(Input::Command(Command::Answer { request: &request, answer: &Answer::AllowAlways }));
                    }
                }
                Step::Model => session.handle(Input::Command(Command::SetModel("m"))),
                Step::Mode(mode) => session.handle(Input::Command(Command::SetPermissionMode(mode))),
            }
            prop_assert!(session.outcomes.len() <= sent);
        }
        session.handle(Input::Interrupt);
        for (id, count) in asked {
            let is_reply = |line: &&Value| line.get("method").is_none() && line["id"] == id;
            let replies = session.written.iter().filter(is_reply).count();
            prop_assert_eq!(replies, count, "{}", id);
        }
        let mut calls = BTreeMap::<&str, (usize, usize)>::new();
        for event in &session.events {
            match event {
                Event::ToolUse(tool) => calls.entry(tool.tool_id.as_str()).or_default().0 += 1,
                Event::ToolResult(result) => {
                    let (uses, results) = calls.entry(result.tool_id.as_str()).or_default();
                    *results += 1;
                    prop_assert!(results <= uses, "a result before its call");
                }
                _ => {}
            }
        }
    }
}
