//! Calls that start without a permission request, and modes in which agents request none.

use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::ErrorCode;
use teamster_types::request::{Answer, PermissionMode};

use super::{TestSession, session_request};

fn call(kind: &str, status: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": "call-3", "title": "touch made", "kind": kind, "status": status})
}

fn in_mode(mode: PermissionMode, opened: &Value) -> TestSession {
    let mut request = session_request();
    request.permissions.mode = mode;
    let mut session = TestSession::open(&request, opened);
    session.send("Go.");
    session
}

#[test]
fn a_call_that_starts_without_a_request_stops_the_agent_with_an_error_that_names_it() {
    use PermissionMode::{Ask, Edit, Full};
    for (mode, kind, status, stops) in [
        (Ask, "execute", "completed", true),
        (Ask, "execute", "in_progress", true),
        (Ask, "edit", "in_progress", true),
        (Ask, "delete", "completed", true),
        (Ask, "execute", "pending", false),
        (Ask, "execute", "failed", false),
        (Ask, "read", "completed", false),
        (Ask, "other", "completed", false),
        (Edit, "edit", "completed", false),
        (Edit, "execute", "in_progress", true),
        (Full, "execute", "completed", false),
    ] {
        let mut session = in_mode(mode, &json!({}));
        session.update(&call(kind, status));
        session.quiet();
        assert_eq!(session.stops, stops, "{mode:?} {kind} {status}");
        if stops {
            let (code, message) = session.failure();
            assert_eq!(code, ErrorCode::Config);
            assert!(
                message.contains(&format!("the call {kind} (touch made) without a permission request")),
                "{message}"
            );
        }
    }
}

#[test]
fn a_request_that_follows_the_start_of_a_call_permits_it() {
    for answer in [Answer::Allow { input: None }, Answer::AllowAlways] {
        let mut session = in_mode(PermissionMode::Ask, &json!({}));
        session.update(&call("execute", "in_progress"));
        session.ask(3, "execute");
        assert_eq!(session.timer, None);
        let id = session.requests()[0].clone();
        session.handle(Input::Command(Command::Answer { request: &id, answer: &answer }));
        session.update(&call("execute", "completed"));
        session.quiet();
        assert!(!session.stops);
        session.answer(&json!({"stopReason": "end_turn"}));
        assert_eq!(session.outcomes[0].failure, None);
    }
}

#[test]
fn the_response_ends_the_wait_for_a_request() {
    let mut session = in_mode(PermissionMode::Ask, &json!({}));
    session.update(&call("execute", "in_progress"));
    session.respond(&json!({"stopReason": "end_turn"}));
    assert!(session.stops && session.outcomes.len() == 1);
}

#[test]
fn a_request_for_another_call_that_never_starts_permits_one_call() {
    let mut session = in_mode(PermissionMode::Ask, &json!({}));
    session.ask(9, "other");
    let id = session.requests()[0].clone();
    session.handle(Input::Command(Command::Answer { request: &id, answer: &Answer::Allow { input: None } }));
    session.update(&call("edit", "completed"));
    assert!(!session.stops);
    let mut second = call("edit", "completed");
    second["toolCallId"] = "call-4".into();
    session.update(&second);
    assert!(session.stops);
}

#[test]
fn a_known_read_only_mode_or_an_agent_that_asks_by_rules_needs_no_request() {
    let modes = json!({"modes": {"currentModeId": "agent", "availableModes": [{"id": "agent"}, {"id": "read-only"}]}});
    let mut session = in_mode(PermissionMode::Ask, &modes);
    assert_eq!(session.last_call()["params"]["modeId"], "read-only");
    session.answer(&json!({}));
    session.update(&call("execute", "completed"));
    assert!(!session.stops);
    let mut request = session_request();
    request.permissions.mode = PermissionMode::Ask;
    let mut session = TestSession::new(&request);
    let info = json!({"name": "@agentclientprotocol/claude-agent-acp"});
    session.answer(&json!({"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info}));
    session.answer(&json!({"sessionId": "s"}));
    session.send("Go.");
    session.update(&call("execute", "completed"));
    assert!(!session.stops);
}

#[test]
fn a_mode_that_is_not_known_is_replaced_or_rejected() {
    use PermissionMode::{Ask, Edit, Full, ReadOnly};
    for (mode, current, others, set) in [
        (Ask, "accept-edits", &["ask", "auto-approve"][..], Ok(Some("ask"))),
        (Ask, "off", &[], Err("may permit more")),
        (Ask, "agent", &["read-only", "workspace-write", "agent-full-access"], Ok(Some("read-only"))),
        (Edit, "agent", &["read-only", "workspace-write", "agent-full-access"], Ok(Some("read-only"))),
        (Full, "agent", &["read-only", "workspace-write", "agent-full-access"], Ok(Some("agent-full-access"))),
        (Full, "off", &[], Ok(None)),
        (Ask, "agent", &[], Err("permits more")),
        (ReadOnly, "normal", &["spec", "auto-high"], Ok(Some("spec"))),
        (ReadOnly, "off", &["on"], Err("may permit more")),
        (Ask, "x", &["plan"], Err("may permit more")),
        (Ask, "https://agentclientprotocol.com/protocol/session-modes#agent", &[], Ok(None)),
        (Ask, "auto_edit", &["default", "yolo"], Ok(Some("default"))),
        (Edit, "auto_edit", &["default", "yolo"], Ok(None)),
    ] {
        let list: Vec<_> = [current].iter().chain(others).map(|id| json!({"id": id})).collect();
        let session = in_mode(mode, &json!({"modes": {"currentModeId": current, "availableModes": list}}));
        let case = format!("{mode:?} {current} {others:?}");
        match set {
            Ok(Some(id)) => assert_eq!(session.last_call()["params"]["modeId"], id, "{case}"),
            Ok(None) => assert_eq!(session.methods().last(), Some(&"session/prompt"), "{case}"),
            Err(why) => {
                let (code, message) = session.failure();
                assert!(code == ErrorCode::InvalidRequest && message.contains(why), "{case}: {message}");
                assert!(!session.methods().contains(&"session/prompt"), "{case}");
            }
        }
    }
}

#[test]
fn the_option_of_the_model_is_preferred_to_the_list_of_models() {
    let opened = json!({
        "models": {"currentModelId": "a[medium]", "availableModels": []},
        "configOptions": [{"id": "model", "category": "model", "currentValue": "a", "options": [{"value": "a"}, {"value": "b"}]}],
    });
    let mut request = session_request();
    request.model = Some("b".to_owned());
    let mut session = TestSession::open(&request, &opened);
    session.send("Go.");
    assert_eq!(session.last_call()["params"], json!({"sessionId": "s", "configId": "model", "value": "b"}));
}

#[test]
fn the_text_of_a_request_is_part_of_the_calls_input() {
    let mut session = in_mode(PermissionMode::Ask, &json!({}));
    session.line(&json!({"jsonrpc": "2.0", "id": 3, "method": "session/request_permission", "params": {
        "sessionId": "s", "options": [],
        "toolCall": {"toolCallId": "c", "title": "Bash", "kind": "execute", "content": [
            {"type": "content", "content": {"type": "text", "text": "Running: rm x"}}]},
    }}));
    let input = session.events.iter().find_map(|event| match event {
        teamster_types::event::Event::PermissionRequest(request) => Some(request.input.as_str().to_owned()),
        _ => None,
    });
    assert_eq!(input.unwrap(), r#"{"text":"Running: rm x","title":"Bash"}"#);
}
