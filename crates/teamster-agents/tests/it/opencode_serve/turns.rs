//! Turns, and the calls of the server that they cause.

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, opencode::OpenCode};
use teamster_agents::protocol::{Command, Input, ServerInput};
use teamster_agents::transcript::Transcript;
use teamster_testkit::check::check;
use teamster_types::event::{ErrorCode, Event, WarningCode};
use teamster_types::request::{Answer, Attachment, Conversation, RunRequest};

use super::ADDRESS_LINE;
use super::harness::{Harness, TURNS, answer, request, turn};

#[test]
fn every_recorded_turn_matches_its_snapshot_and_has_a_valid_stream() {
    for turn in TURNS.iter() {
        let mut harness = Harness::session(turn);
        harness.send("recorded");
        harness.replay(&turn.inputs);
        let ends = usize::from(turn.name != "eof");
        assert_eq!(harness.outcomes.len(), ends, "{}:\n{}", turn.name, harness.log.join("\n"));
        harness.end();
        assert_eq!(check(&harness.events), Ok(()), "{}", turn.name);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../snapshots/opencode-serve");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(turn.name.as_str(), harness.log.join("\n")));
    }
}

#[test]
fn a_run_sends_no_request_to_its_caller_and_ends_with_its_turn() {
    for name in ["perm_once", "question_reply"] {
        let turn = turn(name);
        let mut harness = Harness::run(&turn);
        harness.replay(&turn.inputs);
        assert!(!harness.events.iter().any(|event| matches!(event, Event::PermissionRequest(_) | Event::Question(_))));
        let refused = harness.calls.iter().any(|call| call.path.ends_with("/reply"));
        assert!(refused && harness.stopped && harness.outcomes.len() == 1, "{name}: {:#?}", harness.log);
    }
}

#[test]
fn a_second_idle_and_a_late_error_end_no_later_turn() {
    let turn = turn("abort_text");
    let mut harness = Harness::session(&turn);
    harness.send("recorded");
    harness.replay(&turn.inputs);
    assert!(harness.outcomes.len() == 1 && harness.outcomes[0].interrupted);
    harness.transcript = Transcript::new();
    harness.send("again");
    // Repeats all events except the first ones, which start the work.
    let late: Vec<_> = turn.inputs.iter().filter(|input| input.get("event").is_some()).cloned().collect();
    harness.replay(&late[3..]);
    let failed = harness.outcomes.get(1).and_then(|outcome| outcome.failure.clone());
    assert!(failed.is_none() && harness.outcomes.len() == 1, "{:#?}", harness.log);
}

#[test]
fn late_events_of_a_turn_do_not_show_that_the_next_prompt_was_consumed() {
    let turn = turn("text");
    let is_busy = |input: &Value| input["event"]["properties"]["status"]["type"] == "busy";
    let (busy, late): (Vec<_>, Vec<_>) = turn.inputs.iter().cloned().partition(is_busy);
    for shown in [true, false] {
        let mut harness = Harness::session(&turn);
        harness.send("recorded");
        harness.replay(&turn.inputs);
        assert!(harness.may_have_consumed_prompt());
        harness.is_silent = true;
        harness.send("again");
        harness.replay(&late);
        assert!(!harness.may_have_consumed_prompt(), "{:#?}", harness.log);
        if shown {
            harness.replay(&busy);
        } else {
            harness.is_silent = false;
            harness.send("once more");
        }
        assert!(harness.may_have_consumed_prompt());
    }
}

#[test]
fn a_message_that_is_complete_before_its_deltas_is_emitted_once() {
    let turn = turn("text");
    let of = |input: &Value, kind: &str| input["event"]["type"] == kind;
    // Replaces each event of the message and of its text by the last one, which is complete.
    let last = |kind: &str, wanted: fn(&Value) -> bool| {
        turn.inputs.iter().rev().find(|input| of(input, kind) && wanted(input)).unwrap().clone()
    };
    let message = last("message.updated", |input| input["event"]["properties"]["info"]["role"] == "assistant");
    let text = last("message.part.updated", |input| input["event"]["properties"]["part"]["type"] == "text");
    let late: Vec<_> = turn
        .inputs
        .iter()
        .map(|input| match input {
            input if of(input, "message.updated") && input["event"]["properties"]["info"]["role"] == "assistant" => {
                &message
            }
            input if input["event"]["properties"]["part"]["id"] == text["event"]["properties"]["part"]["id"] => &text,
            input => input,
        })
        .cloned()
        .collect();
    let results = [&turn.inputs, &late].map(|inputs| {
        let mut harness = Harness::session(&turn);
        harness.send("recorded");
        harness.replay(inputs);
        harness.end()
    });
    assert_eq!(results[0], results[1]);
    assert!(results[0].text.len() > 50 && results[0].num_turns == Some(1), "{:?}", results[0]);
}

#[test]
fn an_interrupt_before_the_prompt_is_sent_ends_the_turn_and_sends_nothing() {
    let turn = turn("text");
    let plan = OpenCode.plan_session(&request(&turn)).unwrap().unwrap();
    let mut harness = Harness::of(plan.protocol, &turn.session, answer(&turn));
    harness.send("recorded");
    harness.handle(Input::Interrupt);
    assert!(harness.outcomes[0].interrupted);
    harness.handle(Input::Line(ADDRESS_LINE));
    assert!(!harness.calls.iter().any(|call| call.path.ends_with("prompt_async")), "{:?}", harness.calls);
    harness.transcript = Transcript::new();
    harness.send("again");
    harness.replay(&turn.inputs);
    assert!(harness.outcomes.len() == 2 && harness.outcomes[1].failure.is_none());
}

#[test]
fn an_interrupt_waits_until_there_is_something_to_stop() {
    let turn = turn("abort_text");
    let mut harness = Harness::session(&turn);
    harness.send("recorded");
    harness.handle(Input::Interrupt);
    let aborts = |harness: &Harness| harness.calls.iter().filter(|call| call.path.ends_with("/abort")).count();
    assert_eq!(aborts(&harness), 0);
    harness.replay(&turn.inputs);
    assert_eq!(aborts(&harness), 1);
    assert!(harness.outcomes[0].interrupted);
}

#[test]
fn no_id_of_a_caller_or_of_the_server_changes_the_path_of_a_call() {
    for id in ["../x", "a/b", "a?b", "a b", "", "ses_\n", "not-a-session", "01a20083-df7d-7820-a593-86d96269de15"] {
        let mut request = RunRequest::new("x");
        request.conversation = Conversation::Resume(id.into());
        let mut harness = Harness::of(OpenCode.plan(&request).unwrap().protocol, &json!({}), Answer::AllowAlways);
        harness.handle(Input::Line(ADDRESS_LINE));
        assert!(harness.calls.is_empty(), "{id}: {:?}", harness.calls);
        assert_eq!(harness.outcomes[0].failure.as_ref().unwrap().code, ErrorCode::SessionNotFound);
    }
    let turn = turn("text");
    let mut harness = Harness::session(&turn);
    harness.send("recorded");
    let session = turn.session["id"].as_str().unwrap();
    harness.event(&json!({"type": "permission.asked", "properties": {
        "id": "../session", "sessionID": session, "permission": "bash"}}));
    assert!(!harness.calls.iter().any(|call| call.path.contains("..")), "{:?}", harness.calls);
}

#[test]
fn the_prompt_has_its_attachments_model_and_schema() {
    let mut request = RunRequest::new("x");
    request.prompt = "/init @file".to_owned();
    request.model = Some("vendor/m1/x".to_owned());
    request.effort = Some("high".to_owned());
    request.schema = Some(json!({"type": "object"}));
    request.attachments = vec![Attachment::Data { name: "n.txt".to_owned(), data: b"hi".to_vec() }];
    let turn = turn("text");
    let mut harness = Harness::of(OpenCode.plan(&request).unwrap().protocol, &turn.session, Answer::AllowAlways);
    harness.handle(Input::Line(ADDRESS_LINE));
    let body: Value = serde_json::from_slice(harness.calls.last().unwrap().body.as_ref().unwrap()).unwrap();
    assert_eq!(
        body,
        json!({
            "agent": "teamster",
            "model": {"providerID": "vendor", "modelID": "m1/x"},
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
fn a_new_model_applies_to_the_next_prompt() {
    let turn = turn("text");
    let mut harness = Harness::session(&turn);
    harness.handle(Input::Command(Command::SetModel("vendor/m2")));
    harness.handle(Input::Command(Command::SetModel("none")));
    harness.send("recorded");
    let body = String::from_utf8(harness.calls.last().unwrap().body.clone().unwrap()).unwrap();
    assert!(body.contains("m2"), "{body}");
    let ignored =
        |event: &Event| matches!(event, Event::Warning(warning) if warning.code == WarningCode::OptionIgnored);
    assert_eq!(harness.events.iter().filter(|event| ignored(event)).count(), 1);
}

#[test]
fn a_broken_connection_fails_the_turn_and_requests_a_new_process() {
    let turn = turn("text");
    let mut harness = Harness::session(&turn);
    harness.send("recorded");
    harness.handle(Input::Server(ServerInput::Unreachable { call: None, why: "connection closed" }));
    let failure = harness.outcomes[0].failure.clone().unwrap();
    assert_eq!(failure.code, ErrorCode::Connection);
    assert!(harness.log.contains(&"= RestartProcess".to_owned()), "{:#?}", harness.log);
}
