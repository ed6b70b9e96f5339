//! How a session is opened: what is asked for, in which order, and what is refused.

use serde_json::json;
use teamster_agents::agent::gemini::Gemini;
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{ErrorCode, Event};
use teamster_types::request::{Answer, Attachment, Conversation, McpServer, PermissionMode, Prompt};

use super::{Played, frame, selected};

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
    played.tell(Input::Command(Command::Send { id: &"w1".into(), prompt: &prompt }));
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
    let mut played = Played::open(&super::frame(), &modes("bypassPermissions"));
    played.send("Go.");
    assert_eq!(played.last_call()["params"]["modeId"], "default");

    // Without a mode that only reads, the model hears nothing.
    let mut played = Played::open(&frame, &json!({}));
    played.send("Go.");
    assert_eq!(played.failure().0, ErrorCode::InvalidRequest);
    assert!(!played.methods().contains(&"session/prompt"));
}

#[test]
fn a_mode_in_which_the_agent_judges_by_itself_is_left_where_there_is_another() {
    let mut frame = frame();
    frame.permissions.mode = PermissionMode::Full;
    for (others, set) in [
        (&["default", "plan", "bypassPermissions"][..], Some("default")),
        (&["read-only", "full-access"], Some("full-access")),
        (&["read-only"], None),
    ] {
        let modes: Vec<_> = others.iter().chain(&["auto"]).map(|id| json!({"id": id})).collect();
        let opened = json!({"modes": {"currentModeId": "auto", "availableModes": modes}});
        let mut played = Played::open(&frame, &opened);
        played.send("Go.");
        match set {
            Some(id) => assert_eq!(played.last_call()["params"], json!({"sessionId": "s", "modeId": id})),
            None => assert_eq!(played.last_call()["method"], "session/prompt"),
        }
    }
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
fn an_old_session_may_be_opened_with_an_answer_that_has_no_fields() {
    let mut frame = frame();
    frame.conversation = Conversation::Resume("old".into());
    let mut played = Played::new(&frame);
    played.welcome(&json!({"loadSession": true}));
    played.answer(&json!(null));
    played.send("Go.");
    assert_eq!(played.last_call()["params"]["sessionId"], "old");
    played.answer(&json!({"stopReason": "end_turn"}));
    assert_eq!(played.outcomes[0].session_id, Some("old".into()));
}

#[test]
fn an_answer_that_cannot_be_read_ends_what_waits_for_it() {
    for answers in 0..3 {
        let mut played = Played::new(&frame());
        played.send("Go.");
        for result in [json!({"protocolVersion": 1}), json!({"sessionId": "s"})].iter().take(answers) {
            played.answer(result);
        }
        played.answer(&json!("what?"));
        let (code, message) = played.failure();
        assert_eq!(code, ErrorCode::Protocol, "{message}");
        assert_eq!(played.reopens, answers < 2, "a session that is open goes on");
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
    assert_eq!(played.failure().1, r#"the agent does not support MCP servers of type http; remove server "web""#);
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
