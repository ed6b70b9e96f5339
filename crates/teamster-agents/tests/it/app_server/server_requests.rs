//! Requests of the app-server, and input within a turn.

use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{Event, SteerId, WarningCode};
use teamster_types::request::{Answer, PermissionMode, Prompt};

use super::THREAD;
use super::session::{TestSession, mode, session_request};

fn approval(session: &mut TestSession, id: u64) {
    session.request_from_server(
        id,
        "item/commandExecution/requestApproval",
        json!({"itemId": "c", "command": "touch x", "cwd": "/p"}),
    );
}

#[test]
fn a_request_takes_one_answer() {
    for (answer, decision) in [
        (Answer::Allow { input: None }, "accept"),
        (Answer::Allow { input: Some(json!({"command": "touch x", "cwd": "/p"})) }, "accept"),
        (Answer::Allow { input: Some(json!({"command": "rm x"})) }, "decline"),
        (Answer::AllowAlways, "acceptForSession"),
        (Answer::Deny { message: None }, "decline"),
        (Answer::Choose([("x".to_owned(), vec!["y".to_owned()])].into()), "decline"),
    ] {
        let mut session = TestSession::running(&session_request());
        approval(&mut session, 0);
        let request = session.request();
        assert!(session.answered(0).is_none());
        session.answer(&request, &answer);
        assert_eq!(session.answered(0).unwrap()["result"], json!({ "decision": decision }), "{answer:?}");
        let lines = session.written.len();
        session.answer(&request, &Answer::AllowAlways);
        assert_eq!(session.written.len(), lines, "an answer is written once");
        let changed = matches!(&answer, Answer::Allow { input: Some(_) }) && decision == "decline";
        assert_eq!(session.warned(&WarningCode::OptionIgnored), usize::from(changed));
    }
}

#[test]
fn requests_of_two_processes_have_different_ids() {
    let mut ids = Vec::new();
    for turn in ["turn-1", "turn-2"] {
        let mut session = TestSession::session(&session_request());
        session.open(THREAD);
        session.send("Go.");
        session.turn_starts(turn);
        approval(&mut session, 0);
        ids.push(session.request());
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn the_reason_of_a_denial_is_sent_to_the_model_within_its_turn() {
    let mut session = TestSession::running(&session_request());
    approval(&mut session, 3);
    session.answer(&session.request(), &Answer::Deny { message: Some("Not today.".to_owned()) });
    assert_eq!(session.answered(3).unwrap()["result"]["decision"], "decline");
    let steered = &session.wrote("turn/steer").unwrap()["params"];
    assert_eq!((&steered["expectedTurnId"], &steered["input"][0]["text"]), (&json!("turn-1"), &json!("Not today.")));
}

#[test]
fn a_steering_prompt_is_accepted_or_reported_as_too_late() {
    let id = SteerId::from("steer-1");
    let steer = |session: &mut TestSession| {
        session.handle(Input::Command(Command::Steer { id: &id, prompt: &Prompt::from("Hurry.") }));
    };
    let mut session = TestSession::running(&session_request());
    steer(&mut session);
    assert_eq!(session.wrote("turn/steer").unwrap()["params"]["input"][0]["text"], "Hurry.");
    session.reply("turn/steer", &json!({}));
    assert_eq!(session.steered, [(id.clone(), true)]);

    let mut session = TestSession::running(&session_request());
    steer(&mut session);
    session.refuse("turn/steer", "no active turn to steer");
    assert_eq!(session.steered, [(id.clone(), false)]);

    // The turn ends before the response.
    let mut session = TestSession::running(&session_request());
    steer(&mut session);
    session.turn_ends("turn-1", "completed");
    assert_eq!(session.steered, [(id.clone(), false)]);
    session.reply("turn/steer", &json!({}));
    assert_eq!(session.steered.len(), 1, "it is reported once");

    // No turn has started.
    let mut session = TestSession::session(&session_request());
    session.send("Go.");
    steer(&mut session);
    assert_eq!(session.steered, [(id.clone(), false)]);
}

#[test]
fn a_run_denies_every_request() {
    let mut session = TestSession::run(&mode(PermissionMode::Edit));
    session.open(THREAD);
    session.turn_starts("turn-1");
    approval(&mut session, 0);
    let tool = json!({"serverName": "s", "mode": "form", "message": "?", "requestedSchema": {},
        "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "t"}});
    session.request_from_server(1, "mcpServer/elicitation/request", tool);
    session.request_from_server(
        2,
        "item/permissions/requestApproval",
        json!({"itemId": "c", "permissions": {"network": {"enabled": true}}}),
    );
    session.request_from_server(3, "item/tool/requestUserInput", json!({"questions": [{"id": "q", "question": "?"}]}));
    assert_eq!(session.answered(0).unwrap()["result"], json!({"decision": "decline"}));
    assert_eq!(session.answered(1).unwrap()["result"]["action"], "decline");
    assert_eq!(session.answered(2).unwrap()["result"], json!({"permissions": {}, "scope": "turn"}));
    assert_eq!(session.answered(3).unwrap()["result"], json!({"answers": {}}));
    let asks = |event: &Event| matches!(event, Event::PermissionRequest(_) | Event::Question(_));
    assert!(!session.events.iter().any(asks));
}

#[test]
fn an_unsupported_request_gets_an_error_and_a_request_between_turns_is_denied() {
    let mut session = TestSession::running(&session_request());
    let unsupported =
        ["currentTime/read", "item/tool/call", "applyPatchApproval", "no/such", "account/chatgptAuthTokens/refresh"];
    for (id, method) in unsupported.into_iter().enumerate() {
        session.request_from_server(id as u64, method, json!({}));
        assert_eq!(session.answered(id as u64).unwrap()["error"]["code"], -32601, "{method}");
    }
    // Forms with unknown types of fields, and permission requests of an unknown kind.
    let form = |mode: &str, meta: Value| {
        json!({"serverName": "s", "mode": mode, "message": "?", "_meta": meta,
               "requestedSchema": {"type": "object", "properties": {"x": {"type": "object"}}}})
    };
    for (id, params) in
        [form("form", Value::Null), form("url", Value::Null), form("form", json!({"codex_approval_kind": "x"}))]
            .into_iter()
            .enumerate()
    {
        let id = 10 + id as u64;
        session.request_from_server(id, "mcpServer/elicitation/request", params);
        assert!(session.answered(id).unwrap().get("error").is_some());
    }
    session.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    session.turn_ends("turn-1", "completed");
    approval(&mut session, 20);
    assert_eq!(session.answered(20).unwrap()["result"]["decision"], "decline");
}

#[test]
fn a_request_is_withdrawn_when_the_agent_cancels_it_and_when_its_turn_ends() {
    let mut session = TestSession::running(&session_request());
    approval(&mut session, 0);
    let first = session.request();
    session.notify("serverRequest/resolved", json!({"requestId": 0}));
    assert_eq!(session.withdrawn, std::slice::from_ref(&first));
    approval(&mut session, 1);
    let second = session.request();
    session.turn_ends("turn-1", "completed");
    assert_eq!(session.withdrawn, [first, second]);
}

#[test]
fn the_permission_request_of_a_patch_contains_its_changes() {
    let mut session = TestSession::running(&session_request());
    let changes = json!([{"path": "/p/x", "kind": {"type": "add"}, "diff": "new\n"}]);
    session.item("item/started", &json!({"type": "fileChange", "id": "f", "status": "inProgress", "changes": changes}));
    session.request_from_server(
        0,
        "item/fileChange/requestApproval",
        json!({"itemId": "f", "reason": null, "grantRoot": null}),
    );
    let Some(Event::PermissionRequest(request)) = session.events.last() else { panic!("{:?}", session.events) };
    assert_eq!((request.tool_name.as_str(), request.tool_id.as_ref().map(AsRef::as_ref)), ("file_change", Some("f")));
    assert_eq!(request.input, json!({"changes": [{"path": "/p/x", "kind": "add"}], "diff": "new\n"}));
}

#[test]
fn a_question_of_the_agent_is_answered_by_the_ids_of_its_questions() {
    let mut session = TestSession::running(&session_request());
    let options = json!([{"label": "A", "description": "first"}, {"label": "B", "description": "second"}]);
    let questions = json!([{"id": "q1", "header": "Pick", "question": "A or B?", "options": options}]);
    session.request_from_server(0, "item/tool/requestUserInput", json!({"itemId": "i", "questions": questions}));
    session.answer(&session.request(), &Answer::Choose([("q1".to_owned(), vec!["B".to_owned()])].into()));
    assert_eq!(session.answered(0).unwrap()["result"], json!({"answers": {"q1": {"answers": ["B"]}}}));
}

#[test]
fn parallel_calls_of_one_tool_keep_their_ids_and_arguments() {
    let mut session = TestSession::running(&session_request());
    for (id, a) in [("c1", 1), ("c2", 2), ("c3", 2)] {
        let call = json!({"type": "mcpToolCall", "id": id, "server": "s", "tool": "add", "status": "inProgress",
                          "arguments": {"a": a}});
        session.item("item/started", &call);
    }
    for (request, (a, id)) in [(2, Some("c2")), (1, Some("c1")), (2, Some("c3")), (7, None)].into_iter().enumerate() {
        let params = json!({"serverName": "s", "mode": "form", "message": "?", "requestedSchema": {},
            "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "add", "tool_params": {"a": a}}});
        session.request_from_server(request as u64, "mcpServer/elicitation/request", params);
        let Some(Event::PermissionRequest(shown)) = session.events.last() else { panic!("{:?}", session.events) };
        assert_eq!(
            (shown.tool_id.as_ref().map(AsRef::as_ref), &shown.input.to_value().unwrap()),
            (id, &json!({"a": a}))
        );
        assert_eq!((shown.tool_name.as_str(), shown.server.as_deref()), ("mcp__s__add", Some("s")));
    }
}
