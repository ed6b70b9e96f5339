//! Steering: the model gets prompts that are sent within a turn, and the turn does not end before.

use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input, ServerInput};
use teamster_types::event::SteerId;
use teamster_types::request::Prompt;

use super::harness::{Harness, turn};

const SESSION: &str = "ses_1";

/// Returns a session that works on its first prompt.
fn working() -> Harness {
    let mut turn = turn("text");
    turn.session = json!({"id": SESSION, "directory": "/home/dev/project"});
    let mut harness = Harness::session(&turn);
    harness.send("Go.");
    user(&mut harness, "msg_1", "Go.");
    status(&mut harness, "busy");
    message(&mut harness, "msg_2", "msg_1", None);
    harness
}

fn event(harness: &mut Harness, kind: &str, mut properties: Value) {
    properties["sessionID"] = SESSION.into();
    harness.event(&json!({"type": kind, "properties": properties}));
}

fn status(harness: &mut Harness, status: &str) {
    event(harness, "session.status", json!({"status": {"type": status}}));
    if status == "idle" {
        event(harness, "session.idle", json!({}));
    }
}

fn user(harness: &mut Harness, id: &str, text: &str) {
    event(harness, "message.updated", json!({"info": {"id": id, "role": "user"}}));
    let part = json!({"id": format!("prt_{id}"), "messageID": id, "type": "text", "text": text});
    event(harness, "message.part.updated", json!({ "part": part }));
}

/// Sends a message of the model that starts, or that is complete if there is a finish reason.
fn message(harness: &mut Harness, id: &str, parent: &str, finish: Option<&str>) {
    let completed = finish.map(|_| 1);
    let info =
        json!({"id": id, "role": "assistant", "parentID": parent, "finish": finish, "time": {"completed": completed}});
    event(harness, "message.updated", json!({ "info": info }));
}

fn steer(harness: &mut Harness, id: &str) {
    harness.handle(Input::Command(Command::Steer { id: &SteerId::from(id), prompt: &Prompt::from("Hurry.") }));
}

fn aborts(harness: &Harness) -> usize {
    harness.calls.iter().filter(|call| call.path.ends_with("/abort")).count()
}

#[test]
fn a_steering_prompt_reaches_the_next_model_call_of_the_same_turn() {
    let mut harness = working();
    steer(&mut harness, "a");
    let call = harness.calls.last().unwrap();
    let body: Value = serde_json::from_slice(call.body.as_ref().unwrap()).unwrap();
    assert_eq!((call.path.as_str(), &body["parts"][0]["text"]), ("/session/ses_1/prompt_async", &json!("Hurry.")));
    assert!(harness.steered.is_empty());
    user(&mut harness, "msg_3", "Hurry.");
    assert_eq!(harness.steered, [("a".to_owned(), true)]);
    message(&mut harness, "msg_2", "msg_1", Some("stop"));
    message(&mut harness, "msg_4", "msg_3", None);
    message(&mut harness, "msg_4", "msg_3", Some("stop"));
    assert!(harness.outcomes.is_empty());
    status(&mut harness, "idle");
    assert!(harness.outcomes.len() == 1 && harness.outcomes[0].failure.is_none(), "{:#?}", harness.log);
}

#[test]
fn a_steering_prompt_after_the_last_model_call_is_answered_in_the_same_turn() {
    let mut harness = working();
    message(&mut harness, "msg_2", "msg_1", Some("stop"));
    steer(&mut harness, "a");
    status(&mut harness, "idle");
    assert!(harness.outcomes.is_empty(), "the prompt is not confirmed");
    user(&mut harness, "msg_3", "Hurry.");
    assert!(harness.outcomes.is_empty(), "the prompt is not answered");
    status(&mut harness, "busy");
    message(&mut harness, "msg_4", "msg_3", Some("stop"));
    status(&mut harness, "idle");
    assert_eq!((harness.outcomes.len(), harness.steered.len()), (1, 1));
}

#[test]
fn one_model_call_answers_several_prompts_and_text_of_the_agent_confirms_none() {
    let mut harness = working();
    steer(&mut harness, "a");
    steer(&mut harness, "b");
    event(&mut harness, "message.updated", json!({"info": {"id": "msg_3", "role": "user"}}));
    let part = json!({"id": "p", "messageID": "msg_3", "type": "text", "text": "Continue.", "synthetic": true});
    event(&mut harness, "message.part.updated", json!({ "part": part }));
    assert!(harness.steered.is_empty());
    user(&mut harness, "msg_4", "Hurry.");
    user(&mut harness, "msg_5", "Hurry.");
    assert_eq!(harness.steered.len(), 2);
    message(&mut harness, "msg_2", "msg_1", Some("tool-calls"));
    message(&mut harness, "msg_6", "msg_5", Some("stop"));
    status(&mut harness, "idle");
    assert_eq!(harness.outcomes.len(), 1);
}

#[test]
fn a_rejected_steering_prompt_is_reported_and_does_not_delay_the_end() {
    let mut harness = working();
    message(&mut harness, "msg_2", "msg_1", Some("stop"));
    harness.rejects = true;
    steer(&mut harness, "a");
    assert_eq!(harness.steered, [("a".to_owned(), false)]);
    status(&mut harness, "idle");
    assert!(harness.outcomes.len() == 1 && harness.outcomes[0].failure.is_none());
}

#[test]
fn an_interrupt_also_stops_earlier_steering_prompts() {
    let mut harness = working();
    steer(&mut harness, "a");
    harness.handle(Input::Interrupt);
    assert_eq!(aborts(&harness), 0, "the unconfirmed prompt would start new work");
    user(&mut harness, "msg_3", "Hurry.");
    assert_eq!(aborts(&harness), 1);
    steer(&mut harness, "late");
    assert!(!harness.steered[1].1);
    message(&mut harness, "msg_2", "msg_1", Some("stop"));
    status(&mut harness, "idle");
    assert_eq!(harness.outcomes.len(), 1, "no prompt is answered after an abort");
}

#[test]
fn a_failure_ends_the_turn_and_leaves_prompts_unanswered() {
    let mut harness = working();
    steer(&mut harness, "a");
    user(&mut harness, "msg_3", "Hurry.");
    let error = json!({"name": "APIError", "data": {"message": "no"}});
    event(&mut harness, "session.error", json!({ "error": error }));
    let info =
        json!({"id": "msg_2", "role": "assistant", "parentID": "msg_1", "time": {"completed": 1}, "error": error});
    event(&mut harness, "message.updated", json!({ "info": info }));
    status(&mut harness, "idle");
    assert!(harness.outcomes.len() == 1 && harness.outcomes[0].failure.is_some());

    // A prompt that is recorded after the error may start new work, which belongs to no turn.
    let mut harness = working();
    steer(&mut harness, "a");
    event(&mut harness, "session.error", json!({ "error": error }));
    event(&mut harness, "message.updated", json!({ "info": info }));
    status(&mut harness, "idle");
    assert!(harness.outcomes.is_empty());
    user(&mut harness, "msg_3", "Hurry.");
    assert!(harness.outcomes.len() == 1 && harness.log.contains(&"= RestartProcess".to_owned()), "{:#?}", harness.log);

    // If the connection breaks, the fate of an unconfirmed prompt is unknown.
    let mut harness = working();
    steer(&mut harness, "a");
    harness.handle(Input::Server(ServerInput::Unreachable { call: None, why: "connection closed" }));
    assert_eq!(harness.steered, [("a".to_owned(), false)]);
}

#[test]
fn a_steering_prompt_is_rejected_between_turns_and_before_the_agent_works() {
    let turn = turn("text");
    let mut harness = Harness::session(&turn);
    steer(&mut harness, "a");
    harness.send("Go.");
    steer(&mut harness, "b");
    assert_eq!(harness.steered.len(), 2);
    assert!(harness.steered.iter().all(|(_, accepted)| !accepted));
}
