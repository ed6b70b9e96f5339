//! The events and responses of a turn.

use serde_json::{Value, json};
use teamster_agents::agent::acp::Acp;
use teamster_agents::agent::gemini::Gemini;
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{Event, StopReason};
use teamster_types::request::{Answer, PermissionMode, PromptMode};

use super::{TestSession, selected, session_request};

#[test]
fn pending_requests_are_cancelled_before_the_turn() {
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    session.ask(3, "execute");
    let id = session.requests()[0].clone();
    session.handle(Input::Interrupt);
    let last: Vec<_> = session.written.iter().rev().take(2).collect();
    assert_eq!(last[0]["method"], "session/cancel");
    assert_eq!(last[1]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(session.withdrawn, [id]);
    // A late request is cancelled as well.
    session.ask(4, "execute");
    assert_eq!(session.responses(4)[0]["result"]["outcome"]["outcome"], "cancelled");
    session.line(&json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}}));
    session.quiet();
    let outcome = &session.outcomes[0];
    assert!(outcome.interrupted && outcome.stop_reason == Some(StopReason::Cancelled));
    assert!(!session.restarts, "the session continues");
}

#[test]
fn a_turn_that_ended_before_the_agent_received_the_interrupt_was_not_interrupted() {
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    session.handle(Input::Interrupt);
    session.chunk("Done.");
    session.answer(&json!({"stopReason": "end_turn"}));
    assert!(!session.outcomes[0].interrupted && session.outcomes[0].failure.is_none());
}

#[test]
fn a_prompt_that_was_interrupted_before_it_was_sent_is_never_sent() {
    let mut session = TestSession::new(&session_request());
    session.send("Go.");
    session.handle(Input::Interrupt);
    assert!(session.outcomes[0].interrupted);
    session.initialize(&json!({}));
    session.answer(&json!({"sessionId": "s"}));
    assert_eq!(session.methods(), ["initialize", "session/new"]);
}

#[test]
fn a_call_is_emitted_once_and_has_one_result_whatever_the_order_of_updates() {
    let kinds = |session: &TestSession| {
        let kind = |event: &Event| match event {
            Event::ToolUse(tool) => Some(format!("use {} {}", tool.tool_name.as_str(), tool.input.as_str())),
            Event::ToolResult(result) => Some(format!("result {:?} {}", result.is_error, result.output.as_str())),
            _ => None,
        };
        session.events.iter().filter_map(kind).collect::<Vec<_>>()
    };
    let call = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-3"});
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        update
    };
    // The permission request is first, then its denial, then an update.
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    session.ask(3, "execute");
    let id = session.requests()[0].clone();
    let deny = Answer::Deny { message: Some("Not today.".to_owned()) };
    session.handle(Input::Command(Command::Answer { request: &id, answer: &deny }));
    session.update(&call(json!({"status": "failed"})));
    assert_eq!(kinds(&session), [r#"use execute {"title":"do it"}"#, "result Some(true) Not today."]);
    assert_eq!(session.responses(3)[0]["result"], selected("no"));
    session.answer(&json!({"stopReason": "cancelled"}));
    assert!(session.outcomes[0].failure.is_none(), "the agent cancelled the turn after a denial");
    assert_eq!(session.outcomes[0].permission_denials.len(), 1);

    // Started without its arguments, as by OpenCode.
    let mut request = session_request();
    request.permissions.mode = PermissionMode::Full;
    let mut session = TestSession::open(&request, &json!({}));
    session.send("Go.");
    let start = json!({"sessionUpdate": "tool_call", "toolCallId": "call-3", "title": "bash", "kind": "execute",
        "status": "pending", "rawInput": {"cwd": "/"}});
    session.update(&start);
    assert!(kinds(&session).is_empty());
    session.update(&call(json!({"status": "in_progress", "title": "ls", "rawInput": {"command": "ls"}})));
    session.update(&call(json!({"status": "completed", "rawOutput": {"output": "a file"}})));
    session.update(&call(json!({"status": "completed", "rawOutput": {"output": "twice"}})));
    assert_eq!(kinds(&session), [r#"use bash {"command":"ls"}"#, "result Some(false) a file"]);
    session.answer(&json!({"stopReason": "end_turn"}));

    // An update in the next turn is late, unless it starts a new call.
    session.events.clear();
    session.send("Again.");
    session.update(&call(json!({"status": "completed"})));
    assert!(kinds(&session).is_empty());
    session.update(&start);
    session.answer(&json!({"stopReason": "end_turn"}));
    assert_eq!(kinds(&session), [r#"use bash {"cwd":"/"}"#, "result None "], "the agent has not reported its end");
}

#[test]
fn a_deny_rule_overrides_the_mode() {
    for (mode, kind) in [(PermissionMode::Full, "edit"), (PermissionMode::Edit, "edit"), (PermissionMode::Ask, "read")]
    {
        for (rule, denies) in [(kind, true), ("execute", false)] {
            let mut request = session_request();
            request.permissions.mode = mode;
            request.permissions.deny = vec![rule.to_owned()];
            let mut session = TestSession::of(&Gemini, &request);
            session.initialize(&json!({}));
            session.answer(&json!({"sessionId": "s"}));
            session.send("Go.");
            session.ask(3, kind);
            let asks = !denies && mode == PermissionMode::Ask;
            assert_eq!(session.requests().len(), usize::from(asks), "{mode:?} {rule}");
            let replies: Vec<_> = session.responses(3).iter().map(|reply| reply["result"].clone()).collect();
            let expected = if asks { vec![] } else { vec![selected(if denies { "no" } else { "yes" })] };
            assert_eq!(replies, expected, "{mode:?} {rule}");
            let is_denial = |event: &Event| matches!(event, Event::ToolResult(result) if result.output.contains(&format!("rule {rule}")));
            assert_eq!(session.events.iter().any(is_denial), denies, "{mode:?} {rule}");
        }
    }
}

#[test]
fn no_mode_permits_a_call_that_a_deny_rule_may_match() {
    for (command, denied, asked) in
        [("timeout 5 rm x", true, false), ("$program x", false, true), ("ls 'x", false, true), ("ls x", false, false)]
    {
        let mut request = session_request();
        request.permissions.mode = PermissionMode::Full;
        request.permissions.deny = vec!["execute(rm:*)".to_owned()];
        let mut session = TestSession::of(&Acp::any(), &request);
        session.initialize(&json!({}));
        session.answer(&json!({"sessionId": "s"}));
        session.send("Go.");
        session
            .update(&json!({"sessionUpdate": "tool_call", "toolCallId": "call-3", "title": "do it", "kind": "execute",
            "status": "pending", "rawInput": {"command": command}}));
        session.ask(3, "execute");
        assert_eq!(session.requests().len(), usize::from(asked), "{command}");
        let replies: Vec<_> = session.responses(3).iter().map(|reply| reply["result"].clone()).collect();
        let expected = if asked { vec![] } else { vec![selected(if denied { "no" } else { "yes" })] };
        assert_eq!(replies, expected, "{command}");
    }
}

#[test]
fn an_unsupported_request_gets_an_error() {
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    session
        .line(&json!({"jsonrpc": "2.0", "id": "x", "method": "fs/write_text_file", "params": {"path": "/etc/passwd"}}));
    let last = session.written.last().unwrap();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[test]
fn gemini_runs_no_command_of_a_literal_prompt() {
    let mut request = session_request();
    request.prompt_mode = PromptMode::Literal;
    for (text, goes) in
        [("/memory add x", false), (" $help", false), ("/quit", true), ("say /help", true), ("@file", true)]
    {
        let mut session = TestSession::of(&Gemini, &request);
        session.initialize(&json!({}));
        session.answer(&json!({"sessionId": "s"}));
        session.send(text);
        assert_eq!(session.methods().contains(&"session/prompt"), goes, "{text}");
        assert_eq!(session.outcomes.is_empty(), goes, "{text}");
    }
}

#[test]
fn a_call_with_unreadable_input_is_denied_and_emitted_with_its_whole_input() {
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    let input = format!(r#"{{"id":18446744073709551617,"deep":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"c","kind":"execute","rawInput":{input}}},"options":[{{"optionId":"yes","name":"Yes","kind":"allow_once"}}]}}}}"#
    );
    session.handle(Input::Line(line.as_bytes()));
    let input_of_call = session.events.iter().find_map(|event| match event {
        Event::ToolUse(tool) => Some(tool.input.as_str()),
        _ => None,
    });
    assert_eq!(input_of_call, Some(input.as_str()));
    assert_ne!(session.responses(3)[0]["result"], selected("yes"));
}
