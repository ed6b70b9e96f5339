//! What the app-server asks, and what is said to it within a turn.

use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::{Event, SteerId, WarningCode};
use teamster_types::request::{Answer, PermissionMode, Prompt};

use super::THREAD;
use super::talk::{Talk, frame, mode};

fn approval(talk: &mut Talk, id: u64) {
    talk.ask(id, "item/commandExecution/requestApproval", json!({"itemId": "c", "command": "touch x", "cwd": "/p"}));
}

#[test]
fn a_request_waits_for_its_answer_and_takes_one() {
    for (answer, decision) in [
        (Answer::Allow { input: None }, "accept"),
        (Answer::Allow { input: Some(json!({"command": "touch x", "cwd": "/p"})) }, "accept"),
        (Answer::Allow { input: Some(json!({"command": "rm x"})) }, "decline"),
        (Answer::AllowAlways, "acceptForSession"),
        (Answer::Deny { message: None }, "decline"),
        (Answer::Choose([("x".to_owned(), vec!["y".to_owned()])].into()), "decline"),
    ] {
        let mut talk = Talk::running(&frame());
        approval(&mut talk, 0);
        let request = talk.request();
        assert!(talk.answered(0).is_none());
        talk.answer(&request, &answer);
        assert_eq!(talk.answered(0).unwrap()["result"], json!({ "decision": decision }), "{answer:?}");
        let lines = talk.written.len();
        talk.answer(&request, &Answer::AllowAlways);
        assert_eq!(talk.written.len(), lines, "an answer is written once");
        let changed = matches!(&answer, Answer::Allow { input: Some(_) }) && decision == "decline";
        assert_eq!(talk.warned(&WarningCode::OptionIgnored), usize::from(changed));
    }
}

#[test]
fn a_request_of_another_process_has_another_id() {
    let mut ids = Vec::new();
    for turn in ["turn-1", "turn-2"] {
        let mut talk = Talk::session(&frame());
        talk.open(THREAD);
        talk.send("Go.");
        talk.turn_starts(turn);
        approval(&mut talk, 0);
        ids.push(talk.request());
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn the_reason_of_a_refusal_is_said_to_the_model_in_its_turn() {
    let mut talk = Talk::running(&frame());
    approval(&mut talk, 3);
    talk.answer(&talk.request(), &Answer::Deny { message: Some("Not today.".to_owned()) });
    assert_eq!(talk.answered(3).unwrap()["result"]["decision"], "decline");
    let steered = &talk.wrote("turn/steer").unwrap()["params"];
    assert_eq!((&steered["expectedTurnId"], &steered["input"][0]["text"]), (&json!("turn-1"), &json!("Not today.")));
}

#[test]
fn what_is_said_within_a_turn_is_heard_or_told_to_have_come_too_late() {
    let id = SteerId::from("steer-1");
    let steer =
        |talk: &mut Talk| talk.tell(Input::Command(Command::Steer { id: &id, prompt: &Prompt::from("Hurry.") }));
    let mut talk = Talk::running(&frame());
    steer(&mut talk);
    assert_eq!(talk.wrote("turn/steer").unwrap()["params"]["input"][0]["text"], "Hurry.");
    talk.reply("turn/steer", &json!({}));
    assert_eq!(talk.steered, [(id.clone(), true)]);

    let mut talk = Talk::running(&frame());
    steer(&mut talk);
    talk.refuse("turn/steer", "no active turn to steer");
    assert_eq!(talk.steered, [(id.clone(), false)]);

    // The turn ends before there is an answer.
    let mut talk = Talk::running(&frame());
    steer(&mut talk);
    talk.turn_ends("turn-1", "completed");
    assert_eq!(talk.steered, [(id.clone(), false)]);
    talk.reply("turn/steer", &json!({}));
    assert_eq!(talk.steered.len(), 1, "it is told once");

    // There is no turn yet that could be steered.
    let mut talk = Talk::session(&frame());
    talk.send("Go.");
    steer(&mut talk);
    assert_eq!(talk.steered, [(id.clone(), false)]);
}

#[test]
fn a_run_refuses_what_it_is_asked() {
    let mut talk = Talk::run(&mode(PermissionMode::Edit));
    talk.open(THREAD);
    talk.turn_starts("turn-1");
    approval(&mut talk, 0);
    let tool = json!({"serverName": "s", "mode": "form", "message": "?", "requestedSchema": {},
        "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "t"}});
    talk.ask(1, "mcpServer/elicitation/request", tool);
    talk.ask(
        2,
        "item/permissions/requestApproval",
        json!({"itemId": "c", "permissions": {"network": {"enabled": true}}}),
    );
    talk.ask(3, "item/tool/requestUserInput", json!({"questions": [{"id": "q", "question": "?"}]}));
    assert_eq!(talk.answered(0).unwrap()["result"], json!({"decision": "decline"}));
    assert_eq!(talk.answered(1).unwrap()["result"]["action"], "decline");
    assert_eq!(talk.answered(2).unwrap()["result"], json!({"permissions": {}, "scope": "turn"}));
    assert_eq!(talk.answered(3).unwrap()["result"], json!({"answers": {}}));
    let asks = |event: &Event| matches!(event, Event::PermissionRequest(_) | Event::Question(_));
    assert!(!talk.events.iter().any(asks));
}

#[test]
fn what_is_not_served_is_refused_and_what_is_asked_between_turns_is_denied() {
    let mut talk = Talk::running(&frame());
    let strange =
        ["currentTime/read", "item/tool/call", "applyPatchApproval", "no/such", "account/chatgptAuthTokens/refresh"];
    for (id, method) in strange.into_iter().enumerate() {
        talk.ask(id as u64, method, json!({}));
        assert_eq!(talk.answered(id as u64).unwrap()["error"]["code"], -32601, "{method}");
    }
    // Forms that we cannot put into words, and leave that is asked for in a way that we do not know.
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
        talk.ask(id, "mcpServer/elicitation/request", params);
        assert!(talk.answered(id).unwrap().get("error").is_some());
    }
    talk.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    talk.turn_ends("turn-1", "completed");
    approval(&mut talk, 20);
    assert_eq!(talk.answered(20).unwrap()["result"]["decision"], "decline");
}

#[test]
fn a_request_is_withdrawn_when_the_agent_waits_no_longer_and_when_its_turn_ends() {
    let mut talk = Talk::running(&frame());
    approval(&mut talk, 0);
    let first = talk.request();
    talk.notify("serverRequest/resolved", json!({"requestId": 0}));
    assert_eq!(talk.withdrawn, std::slice::from_ref(&first));
    approval(&mut talk, 1);
    let second = talk.request();
    talk.turn_ends("turn-1", "completed");
    assert_eq!(talk.withdrawn, [first, second]);
}

#[test]
fn a_patch_that_wants_leave_shows_what_it_would_change() {
    let mut talk = Talk::running(&frame());
    let changes = json!([{"path": "/p/x", "kind": {"type": "add"}, "diff": "new\n"}]);
    talk.item("item/started", &json!({"type": "fileChange", "id": "f", "status": "inProgress", "changes": changes}));
    talk.ask(0, "item/fileChange/requestApproval", json!({"itemId": "f", "reason": null, "grantRoot": null}));
    let Some(Event::PermissionRequest(request)) = talk.events.last() else { panic!("{:?}", talk.events) };
    assert_eq!((request.tool_name.as_str(), request.tool_id.as_ref().map(AsRef::as_ref)), ("file_change", Some("f")));
    assert_eq!(request.input, json!({"changes": [{"path": "/p/x", "kind": "add"}], "diff": "new\n"}));
}

#[test]
fn the_agents_own_question_is_answered_by_its_ids() {
    let mut talk = Talk::running(&frame());
    let options = json!([{"label": "A", "description": "first"}, {"label": "B", "description": "second"}]);
    let questions = json!([{"id": "q1", "header": "Pick", "question": "A or B?", "options": options}]);
    talk.ask(0, "item/tool/requestUserInput", json!({"itemId": "i", "questions": questions}));
    talk.answer(&talk.request(), &Answer::Choose([("q1".to_owned(), vec!["B".to_owned()])].into()));
    assert_eq!(talk.answered(0).unwrap()["result"], json!({"answers": {"q1": {"answers": ["B"]}}}));
}

#[test]
fn parallel_calls_of_one_tool_keep_their_own_ids_and_arguments() {
    let mut talk = Talk::running(&frame());
    for (id, a) in [("c1", 1), ("c2", 2), ("c3", 2)] {
        let call = json!({"type": "mcpToolCall", "id": id, "server": "s", "tool": "add", "status": "inProgress",
                          "arguments": {"a": a}});
        talk.item("item/started", &call);
    }
    for (request, (a, id)) in [(2, Some("c2")), (1, Some("c1")), (2, Some("c3")), (7, None)].into_iter().enumerate() {
        let params = json!({"serverName": "s", "mode": "form", "message": "?", "requestedSchema": {},
            "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "add", "tool_params": {"a": a}}});
        talk.ask(request as u64, "mcpServer/elicitation/request", params);
        let Some(Event::PermissionRequest(asked)) = talk.events.last() else { panic!("{:?}", talk.events) };
        assert_eq!(
            (asked.tool_id.as_ref().map(AsRef::as_ref), &asked.input.to_value().unwrap()),
            (id, &json!({"a": a}))
        );
        assert_eq!((asked.tool_name.as_str(), asked.server.as_deref()), ("mcp__s__add", Some("s")));
    }
}
