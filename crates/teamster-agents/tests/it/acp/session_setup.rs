//! Opens sessions: the calls and their order, and the failures.

use serde_json::json;
use teamster_agents::agent::gemini::Gemini;
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{ErrorCode, Event};
use teamster_types::request::{Answer, Attachment, Conversation, McpServer, PermissionMode, Prompt};

use super::{TestSession, selected, session_request};

#[test]
fn calls_and_responses_follow_the_protocol() {
    let mut request = session_request();
    request.mcp_servers = [
        ("a".to_owned(), McpServer::stdio("program").args(["x"]).env("KEY", "secret")),
        ("b".to_owned(), McpServer::http("http://127.0.0.1/").header("X", "y")),
        ("c".to_owned(), McpServer::sse("http://127.0.0.1/")),
    ]
    .into();
    let mut session = TestSession::new(&request);
    let params = |session: &TestSession| session.last_call()["params"].clone();
    let initialize = params(&session);
    assert_eq!(initialize["protocolVersion"], 1);
    let offered = json!({
        "fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false, "elicitation": {"form": {}},
    });
    assert_eq!(initialize["clientCapabilities"], offered);
    session.initialize(&json!({
        "mcpCapabilities": {"http": true, "sse": true},
        "promptCapabilities": {"image": true, "embeddedContext": true},
    }));
    let servers = json!([
        {"name": "a", "command": "program", "args": ["x"], "env": [{"name": "KEY", "value": "secret"}]},
        {"type": "http", "name": "b", "url": "http://127.0.0.1/", "headers": [{"name": "X", "value": "y"}]},
        {"type": "sse", "name": "c", "url": "http://127.0.0.1/", "headers": []},
    ]);
    assert_eq!(params(&session), json!({"cwd": "/home/dev/project", "mcpServers": servers}));
    session.answer(&json!({"sessionId": "s"}));
    let mut prompt = Prompt::from("Look.");
    let file = |name: &str, data: &[u8]| Attachment::Data { name: name.to_owned(), data: data.to_vec() };
    prompt.attachments = vec![file("a.png", b"\x89PNG\r\n\x1a\n"), file("b.txt", b"text"), file("c.pdf", b"%PDF-1.4")];
    session.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &prompt }));
    let blocks = json!([
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
        {"type": "text", "text": "Attached file b.txt:\ntext"},
        {"type": "resource", "resource": {"uri": "attachment:c.pdf", "mimeType": "application/pdf", "blob": "JVBERi0xLjQ="}},
        {"type": "text", "text": "Look."},
    ]);
    assert_eq!(params(&session), json!({"sessionId": "s", "prompt": blocks}));
    session.ask(7, "execute");
    let id = session.requests()[0].clone();
    session.handle(Input::Command(Command::Answer { request: &id, answer: &Answer::AllowAlways }));
    assert_eq!(session.responses(7)[0], &json!({"jsonrpc": "2.0", "id": 7, "result": selected("yes")}));
    session.handle(Input::Interrupt);
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
    assert_eq!(session.written.last(), Some(&cancel));
}

#[test]
fn no_prompt_is_sent_before_the_session_has_the_requested_settings() {
    let modes = |current: &str| {
        json!({"modes": {"currentModeId": current, "availableModes": [
        {"id": "default"}, {"id": "plan"}, {"id": "bypassPermissions"}]}})
    };
    let mut request = session_request();
    request.permissions.mode = PermissionMode::ReadOnly;
    let mut session = TestSession::open(&request, &modes("default"));
    session.send("Go.");
    assert_eq!(session.methods(), ["initialize", "session/new", "session/set_mode"]);
    assert_eq!(session.last_call()["params"], json!({"sessionId": "s", "modeId": "plan"}));
    session.answer(&json!({}));
    assert_eq!(session.methods().last(), Some(&"session/prompt"));

    let mut session = TestSession::open(&request, &modes("default"));
    session.send("Go.");
    session.fail(&json!({"code": -32603, "message": "no"}));
    assert!(!session.methods().contains(&"session/prompt") && session.restarts);

    // A mode that permits more than requested is changed.
    let mut session = TestSession::open(&session_request(), &modes("bypassPermissions"));
    session.send("Go.");
    assert_eq!(session.last_call()["params"]["modeId"], "default");

    // Without a read-only mode, no prompt is sent.
    let mut session = TestSession::open(&request, &json!({}));
    session.send("Go.");
    assert_eq!(session.failure().0, ErrorCode::InvalidRequest);
    assert!(!session.methods().contains(&"session/prompt"));
}

#[test]
fn a_mode_in_which_the_agent_decides_is_used_only_if_there_is_no_other() {
    let mut request = session_request();
    request.permissions.mode = PermissionMode::Full;
    for (others, set) in [
        (&["default", "plan", "bypassPermissions"][..], Some("default")),
        (&["read-only", "full-access"], Some("full-access")),
        (&["read-only"], None),
    ] {
        let modes: Vec<_> = others.iter().chain(&["auto"]).map(|id| json!({"id": id})).collect();
        let opened = json!({"modes": {"currentModeId": "auto", "availableModes": modes}});
        let mut session = TestSession::open(&request, &opened);
        session.send("Go.");
        match set {
            Some(id) => assert_eq!(session.last_call()["params"], json!({"sessionId": "s", "modeId": id})),
            None => assert_eq!(session.last_call()["method"], "session/prompt"),
        }
    }
}

#[test]
fn the_model_and_the_effort_are_set_by_session_options_if_there_are_no_lists() {
    let options = json!({"configOptions": [
        {"id": "m", "category": "model", "type": "select", "currentValue": "a", "options": [
            {"group": "g", "options": [{"value": "a"}, {"value": "b"}]}]},
        {"id": "e", "category": "thought_level", "type": "select", "currentValue": "low", "options": [
            {"value": "low"}, {"value": "high"}]},
    ]});
    let mut request = session_request();
    (request.model, request.effort) = (Some("b".to_owned()), Some("high".to_owned()));
    let mut session = TestSession::open(&request, &options);
    session.send("Go.");
    let calls: Vec<_> = session.written.iter().skip(2).map(|call| &call["params"]).collect();
    assert_eq!(calls[0], &json!({"sessionId": "s", "configId": "m", "value": "b"}));
    assert_eq!(calls[1], &json!({"sessionId": "s", "configId": "e", "value": "high"}));
    for id in [3, 4] {
        assert!(!session.methods().contains(&"session/prompt"));
        session.line(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    assert_eq!(session.methods().last(), Some(&"session/prompt"));

    request.model = Some("c".to_owned());
    let mut session = TestSession::open(&request, &options);
    session.send("Go.");
    assert_eq!(session.failure().1, r#"the agent has no model "c"; it has: a, b"#);
}

#[test]
fn a_session_that_the_agent_cannot_resume_is_an_error_and_no_new_one_is_started() {
    let mut request = session_request();
    request.conversation = Conversation::Resume("old".into());
    let mut session = TestSession::new(&request);
    session.send("Go.");
    session.initialize(&json!({}));
    assert_eq!(session.failure().0, ErrorCode::InvalidRequest);
    assert_eq!(session.methods(), ["initialize"]);
    for (capabilities, method) in [
        (json!({"loadSession": true}), "session/load"),
        (json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), "session/resume"),
    ] {
        let mut session = TestSession::new(&request);
        session.initialize(&capabilities);
        assert_eq!(session.methods().last(), Some(&method));
        session.update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "of old"}}));
        session.answer(&json!({"sessionId": "another"}));
        session.send("Go.");
        assert_eq!(session.failure().0, ErrorCode::Protocol, "another session answers");
        assert!(!session.events.iter().any(|event| matches!(event, Event::Text(_))));
    }
}

#[test]
fn a_session_may_be_loaded_with_a_result_without_fields() {
    let mut request = session_request();
    request.conversation = Conversation::Resume("old".into());
    let mut session = TestSession::new(&request);
    session.initialize(&json!({"loadSession": true}));
    session.answer(&json!(null));
    session.send("Go.");
    assert_eq!(session.last_call()["params"]["sessionId"], "old");
    session.answer(&json!({"stopReason": "end_turn"}));
    assert_eq!(session.outcomes[0].session_id, Some("old".into()));
}

#[test]
fn an_unreadable_response_ends_the_turn_that_waits_for_it() {
    for answers in 0..3 {
        let mut session = TestSession::new(&session_request());
        session.send("Go.");
        for result in [json!({"protocolVersion": 1}), json!({"sessionId": "s"})].iter().take(answers) {
            session.answer(result);
        }
        session.answer(&json!("what?"));
        let (code, message) = session.failure();
        assert_eq!(code, ErrorCode::Protocol, "{message}");
        assert_eq!(session.restarts, answers < 2, "an open session continues");
    }
}

#[test]
fn a_missing_login_is_reported_with_the_login_methods() {
    let mut session = TestSession::new(&session_request());
    session.send("Go.");
    session.answer(
        &json!({"protocolVersion": 1, "authMethods": [{"id": "x", "name": "Log in", "description": "by browser"}]}),
    );
    session.fail(&json!({"code": -32000, "message": "Authentication required"}));
    let (code, message) = session.failure();
    assert_eq!(code, ErrorCode::Auth);
    assert!(message.ends_with("It offers: Log in (by browser)"), "{message}");
    assert!(!session.methods().contains(&"authenticate"));
    assert!(session.restarts, "the next turn tries again");
}

#[test]
fn unsupported_servers_are_rejected_before_a_session_is_opened() {
    let mut request = session_request();
    request.mcp_servers.insert("web".to_owned(), McpServer::http("http://127.0.0.1/"));
    let mut session = TestSession::new(&request);
    session.send("Go.");
    session.initialize(&json!({}));
    assert_eq!(session.failure().1, r#"the agent does not support MCP servers of type http; remove server "web""#);
    assert_eq!(session.methods(), ["initialize"]);
}

#[test]
fn an_old_session_of_gemini_is_loaded_by_an_id_that_keeps_its_history() {
    let mut request = session_request();
    request.conversation = Conversation::Resume("08de391e-4b09-4535-8307-40c9312339cb".into());
    let mut session = TestSession::of(&Gemini, &request);
    session.initialize(&json!({"loadSession": true}));
    let wire = " 08de391e-4b09-4535-8307-40c9312339cb";
    assert_eq!(session.last_call()["params"]["sessionId"], wire);
    session.send("Go.");
    session.answer(&json!({"modes": {"currentModeId": "default", "availableModes": []}}));
    // The history arrives before and after the response. The prompt is sent after the response to a later call.
    let chunk = |text: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": wire, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
    };
    session.line(&chunk("of old"));
    assert_eq!(session.last_call()["method"], "session/set_mode");
    session.answer(&json!({}));
    assert_eq!(session.last_call()["method"], "session/prompt");
    session.line(&chunk("[MODE_UPDATE] default"));
    session.line(&chunk("new"));
    session.answer(&json!({"stopReason": "end_turn"}));
    let texts: Vec<_> = session
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Text(delta) => Some(delta.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["new"]);
    let id = session.outcomes[0].session_id.clone().unwrap();
    assert_eq!(id.as_str(), wire.trim());
}
