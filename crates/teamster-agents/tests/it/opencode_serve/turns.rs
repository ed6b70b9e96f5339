//! Turns and what is called for them.

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, opencode::OpenCode};
use teamster_agents::protocol::{Command, Input, ServerInput};
use teamster_agents::transcript::Transcript;
use teamster_testkit::check::check;
use teamster_types::event::{ErrorCode, Event, WarningCode};
use teamster_types::request::{Answer, Attachment, Conversation, RunRequest};

use super::LISTENS;
use super::player::{Player, TURNS, answer, request, turn};

#[test]
fn every_recorded_turn_means_what_its_snapshot_says_and_keeps_the_rules() {
    for turn in TURNS.iter() {
        let mut player = Player::session(turn);
        player.send("recorded");
        player.happened(&turn.happened);
        let ends = usize::from(turn.name != "eof");
        assert_eq!(player.outcomes.len(), ends, "{}:\n{}", turn.name, player.told.join("\n"));
        player.end();
        assert_eq!(check(&player.events), Ok(()), "{}", turn.name);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../snapshots/opencode-serve");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(turn.name.as_str(), player.told.join("\n")));
    }
}

#[test]
fn a_run_asks_nobody_and_is_over_with_its_turn() {
    for name in ["perm_once", "question_reply"] {
        let turn = turn(name);
        let mut player = Player::run(&turn);
        player.happened(&turn.happened);
        assert!(!player.events.iter().any(|event| matches!(event, Event::PermissionRequest(_) | Event::Question(_))));
        let refused = player.calls.iter().any(|call| call.path.ends_with("/reply"));
        assert!(refused && player.stopped && player.outcomes.len() == 1, "{name}: {:#?}", player.told);
    }
}

#[test]
fn a_second_idle_and_a_late_error_end_no_later_turn() {
    let turn = turn("abort_text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    player.happened(&turn.happened);
    assert!(player.outcomes.len() == 1 && player.outcomes[0].interrupted);
    player.transcript = Transcript::new();
    player.send("again");
    // All of it comes once more, but the session's id for busy.
    let late: Vec<_> = turn.happened.iter().filter(|what| what.get("event").is_some()).cloned().collect();
    player.happened(&late[3..]);
    let failed = player.outcomes.get(1).and_then(|outcome| outcome.failure.clone());
    assert!(failed.is_none() && player.outcomes.len() == 1, "{:#?}", player.told);
}

#[test]
fn what_comes_late_of_a_turn_does_not_show_that_the_next_prompt_was_taken() {
    let turn = turn("text");
    let is_busy = |what: &Value| what["event"]["properties"]["status"]["type"] == "busy";
    let (busy, late): (Vec<_>, Vec<_>) = turn.happened.iter().cloned().partition(is_busy);
    for shown in [true, false] {
        let mut player = Player::session(&turn);
        player.send("recorded");
        player.happened(&turn.happened);
        assert!(player.may_have_consumed_prompt());
        player.silent = true;
        player.send("again");
        player.happened(&late);
        assert!(!player.may_have_consumed_prompt(), "{:#?}", player.told);
        if shown {
            player.happened(&busy);
        } else {
            player.silent = false;
            player.send("once more");
        }
        assert!(player.may_have_consumed_prompt());
    }
}

#[test]
fn what_is_whole_before_its_pieces_come_is_told_once() {
    let turn = turn("text");
    let of = |what: &Value, kind: &str| what["event"]["type"] == kind;
    // Each event of the message and of its text says how they are in the end.
    let whole = |kind: &str, wanted: fn(&Value) -> bool| {
        turn.happened.iter().rev().find(|what| of(what, kind) && wanted(what)).unwrap().clone()
    };
    let message = whole("message.updated", |what| what["event"]["properties"]["info"]["role"] == "assistant");
    let text = whole("message.part.updated", |what| what["event"]["properties"]["part"]["type"] == "text");
    let late: Vec<_> = turn
        .happened
        .iter()
        .map(|what| match what {
            what if of(what, "message.updated") && what["event"]["properties"]["info"]["role"] == "assistant" => {
                &message
            }
            what if what["event"]["properties"]["part"]["id"] == text["event"]["properties"]["part"]["id"] => &text,
            what => what,
        })
        .cloned()
        .collect();
    let results = [&turn.happened, &late].map(|happened| {
        let mut player = Player::session(&turn);
        player.send("recorded");
        player.happened(happened);
        player.end()
    });
    assert_eq!(results[0], results[1]);
    assert!(results[0].text.len() > 50 && results[0].num_turns == Some(1), "{:?}", results[0]);
}

#[test]
fn an_interrupt_before_the_prompt_is_sent_ends_the_turn_and_sends_nothing() {
    let turn = turn("text");
    let plan = OpenCode.plan_session(&request(&turn)).unwrap().unwrap();
    let mut player = Player::of(plan.protocol, &turn.session, answer(&turn));
    player.send("recorded");
    player.tell(Input::Interrupt);
    assert!(player.outcomes[0].interrupted);
    player.tell(Input::Line(LISTENS));
    assert!(!player.calls.iter().any(|call| call.path.ends_with("prompt_async")), "{:?}", player.calls);
    player.transcript = Transcript::new();
    player.send("again");
    player.happened(&turn.happened);
    assert!(player.outcomes.len() == 2 && player.outcomes[1].failure.is_none());
}

#[test]
fn an_interrupt_waits_until_there_is_something_to_stop() {
    let turn = turn("abort_text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    player.tell(Input::Interrupt);
    let aborts = |player: &Player| player.calls.iter().filter(|call| call.path.ends_with("/abort")).count();
    assert_eq!(aborts(&player), 0);
    player.happened(&turn.happened);
    assert_eq!(aborts(&player), 1);
    assert!(player.outcomes[0].interrupted);
}

#[test]
fn no_id_of_a_caller_or_of_the_server_becomes_another_path() {
    for id in ["../x", "a/b", "a?b", "a b", "", "ses_\n", "not-a-session", "01a20083-df7d-7820-a593-86d96269de15"] {
        let mut request = RunRequest::new("x");
        request.conversation = Conversation::Resume(id.into());
        let mut player = Player::of(OpenCode.plan(&request).unwrap().protocol, &json!({}), Answer::AllowAlways);
        player.tell(Input::Line(LISTENS));
        assert!(player.calls.is_empty(), "{id}: {:?}", player.calls);
        assert_eq!(player.outcomes[0].failure.as_ref().unwrap().code, ErrorCode::SessionNotFound);
    }
    let turn = turn("text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    let session = turn.session["id"].as_str().unwrap();
    player.event(&json!({"type": "permission.asked", "properties": {
        "id": "../session", "sessionID": session, "permission": "bash"}}));
    assert!(!player.calls.iter().any(|call| call.path.contains("..")), "{:?}", player.calls);
}

#[test]
fn the_prompt_goes_with_its_attachments_model_and_schema() {
    let mut request = RunRequest::new("x");
    request.prompt = "/init @file".to_owned();
    request.model = Some("lab/m1/x".to_owned());
    request.effort = Some("high".to_owned());
    request.schema = Some(json!({"type": "object"}));
    request.attachments = vec![Attachment::Data { name: "n.txt".to_owned(), data: b"hi".to_vec() }];
    let turn = turn("text");
    let mut player = Player::of(OpenCode.plan(&request).unwrap().protocol, &turn.session, Answer::AllowAlways);
    player.tell(Input::Line(LISTENS));
    let body: Value = serde_json::from_slice(player.calls.last().unwrap().body.as_ref().unwrap()).unwrap();
    assert_eq!(
        body,
        json!({
            "agent": "teamster",
            "model": {"providerID": "lab", "modelID": "m1/x"},
            "variant": "high",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
            "parts": [
                {"type": "file", "mime": "text/plain", "filename": "n.txt", "url": "data:text/plain;base64,aGk="},
                {"type": "text", "text": "/init @file"},
            ],
        })
    );
    request.model = Some("none".to_owned());
    assert!(OpenCode.plan(&request).is_err());
    request.model = None;
    request.attachments = vec![Attachment::Data { name: "n.bin".to_owned(), data: vec![0, 1] }];
    assert!(OpenCode.plan(&request).is_err());
}

#[test]
fn another_model_holds_from_the_next_prompt_on() {
    let turn = turn("text");
    let mut player = Player::session(&turn);
    player.tell(Input::Command(Command::SetModel("lab/m2")));
    player.tell(Input::Command(Command::SetModel("none")));
    player.send("recorded");
    let body = String::from_utf8(player.calls.last().unwrap().body.clone().unwrap()).unwrap();
    assert!(body.contains("m2"), "{body}");
    let ignored =
        |event: &Event| matches!(event, Event::Warning(warning) if warning.code == WarningCode::OptionIgnored);
    assert_eq!(player.events.iter().filter(|event| ignored(event)).count(), 1);
}

#[test]
fn a_call_that_breaks_fails_the_turn_and_asks_for_another_process() {
    let turn = turn("text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    player.tell(Input::Server(ServerInput::Unreachable { call: None, why: "it is gone" }));
    let failure = player.outcomes[0].failure.clone().unwrap();
    assert_eq!(failure.code, ErrorCode::Connection);
    assert!(player.told.contains(&"= RestartProcess".to_owned()), "{:#?}", player.told);
}
