//! What is said within a turn: it is heard, and the turn does not end before that.

use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input, ServerInput};
use teamster_types::event::SteerId;
use teamster_types::request::Prompt;

use super::player::{Player, turn};

const SESSION: &str = "ses_1";

/// A session that works on its first prompt.
fn working() -> Player {
    let mut turn = turn("text");
    turn.session = json!({"id": SESSION, "directory": "/home/dev/project"});
    let mut player = Player::session(&turn);
    player.send("Go.");
    user(&mut player, "msg_1", "Go.");
    status(&mut player, "busy");
    message(&mut player, "msg_2", "msg_1", None);
    player
}

fn event(player: &mut Player, kind: &str, mut properties: Value) {
    properties["sessionID"] = SESSION.into();
    player.event(&json!({"type": kind, "properties": properties}));
}

fn status(player: &mut Player, status: &str) {
    event(player, "session.status", json!({"status": {"type": status}}));
    if status == "idle" {
        event(player, "session.idle", json!({}));
    }
}

fn user(player: &mut Player, id: &str, text: &str) {
    event(player, "message.updated", json!({"info": {"id": id, "role": "user"}}));
    let part = json!({"id": format!("prt_{id}"), "messageID": id, "type": "text", "text": text});
    event(player, "message.part.updated", json!({ "part": part }));
}

/// A message of the model's begins; or it is whole, with the reason for which it ended.
fn message(player: &mut Player, id: &str, parent: &str, finish: Option<&str>) {
    let completed = finish.map(|_| 1);
    let info =
        json!({"id": id, "role": "assistant", "parentID": parent, "finish": finish, "time": {"completed": completed}});
    event(player, "message.updated", json!({ "info": info }));
}

fn steer(player: &mut Player, id: &str) {
    player.tell(Input::Command(Command::Steer { id: &SteerId::from(id), prompt: &Prompt::from("Hurry.") }));
}

fn steered(player: &Player) -> Vec<&str> {
    player.told.iter().filter(|told| told.starts_with("= Steered")).map(String::as_str).collect()
}

fn aborts(player: &Player) -> usize {
    player.calls.iter().filter(|call| call.path.ends_with("/abort")).count()
}

#[test]
fn it_is_heard_with_the_next_call_of_the_model_and_the_turn_is_one() {
    let mut player = working();
    steer(&mut player, "a");
    let call = player.calls.last().unwrap();
    let body: Value = serde_json::from_slice(call.body.as_ref().unwrap()).unwrap();
    assert_eq!((call.path.as_str(), &body["parts"][0]["text"]), ("/session/ses_1/prompt_async", &json!("Hurry.")));
    assert!(steered(&player).is_empty());
    user(&mut player, "msg_3", "Hurry.");
    assert_eq!(steered(&player), [r#"= Steered { id: "a", heard: true }"#]);
    message(&mut player, "msg_2", "msg_1", Some("stop"));
    message(&mut player, "msg_4", "msg_3", None);
    message(&mut player, "msg_4", "msg_3", Some("stop"));
    assert!(player.outcomes.is_empty());
    status(&mut player, "idle");
    assert!(player.outcomes.len() == 1 && player.outcomes[0].failure.is_none(), "{:#?}", player.told);
}

#[test]
fn what_comes_when_the_agent_has_just_ended_is_answered_in_the_turn_all_the_same() {
    let mut player = working();
    message(&mut player, "msg_2", "msg_1", Some("stop"));
    steer(&mut player, "a");
    status(&mut player, "idle");
    assert!(player.outcomes.is_empty(), "it is on its way");
    user(&mut player, "msg_3", "Hurry.");
    assert!(player.outcomes.is_empty(), "it is not answered");
    status(&mut player, "busy");
    message(&mut player, "msg_4", "msg_3", Some("stop"));
    status(&mut player, "idle");
    assert_eq!((player.outcomes.len(), steered(&player).len()), (1, 1));
}

#[test]
fn several_are_heard_by_one_call_and_words_of_the_agents_own_are_none() {
    let mut player = working();
    steer(&mut player, "a");
    steer(&mut player, "b");
    event(&mut player, "message.updated", json!({"info": {"id": "msg_3", "role": "user"}}));
    let part = json!({"id": "p", "messageID": "msg_3", "type": "text", "text": "Continue.", "synthetic": true});
    event(&mut player, "message.part.updated", json!({ "part": part }));
    assert!(steered(&player).is_empty());
    user(&mut player, "msg_4", "Hurry.");
    user(&mut player, "msg_5", "Hurry.");
    assert_eq!(steered(&player).len(), 2);
    message(&mut player, "msg_2", "msg_1", Some("tool-calls"));
    message(&mut player, "msg_6", "msg_5", Some("stop"));
    status(&mut player, "idle");
    assert_eq!(player.outcomes.len(), 1);
}

#[test]
fn what_is_not_taken_is_said_to_be_unheard_and_holds_nothing_up() {
    let mut player = working();
    message(&mut player, "msg_2", "msg_1", Some("stop"));
    player.refuses = true;
    steer(&mut player, "a");
    assert_eq!(steered(&player), [r#"= Steered { id: "a", heard: false }"#]);
    status(&mut player, "idle");
    assert!(player.outcomes.len() == 1 && player.outcomes[0].failure.is_none());
}

#[test]
fn an_interrupt_stops_no_less_than_what_was_said_before_it() {
    let mut player = working();
    steer(&mut player, "a");
    player.tell(Input::Interrupt);
    assert_eq!(aborts(&player), 0, "the words would begin work anew");
    user(&mut player, "msg_3", "Hurry.");
    assert_eq!(aborts(&player), 1);
    steer(&mut player, "late");
    assert!(steered(&player)[1].contains("false"));
    message(&mut player, "msg_2", "msg_1", Some("stop"));
    status(&mut player, "idle");
    assert_eq!(player.outcomes.len(), 1, "nobody answers it any more");
}

#[test]
fn a_failure_ends_the_turn_though_it_leaves_words_unanswered() {
    let mut player = working();
    steer(&mut player, "a");
    user(&mut player, "msg_3", "Hurry.");
    let error = json!({"name": "APIError", "data": {"message": "no"}});
    event(&mut player, "session.error", json!({ "error": error }));
    let info =
        json!({"id": "msg_2", "role": "assistant", "parentID": "msg_1", "time": {"completed": 1}, "error": error});
    event(&mut player, "message.updated", json!({ "info": info }));
    status(&mut player, "idle");
    assert!(player.outcomes.len() == 1 && player.outcomes[0].failure.is_some());

    // What is written down after that may begin work anew, which is nobody's turn.
    let mut player = working();
    steer(&mut player, "a");
    event(&mut player, "session.error", json!({ "error": error }));
    event(&mut player, "message.updated", json!({ "info": info }));
    status(&mut player, "idle");
    assert!(player.outcomes.is_empty());
    user(&mut player, "msg_3", "Hurry.");
    assert!(player.outcomes.len() == 1 && player.told.contains(&"= RestartProcess".to_owned()), "{:#?}", player.told);

    // Of what is on its way then nothing is known.
    let mut player = working();
    steer(&mut player, "a");
    player.tell(Input::Server(ServerInput::Unreachable { call: None, why: "it is gone" }));
    assert_eq!(steered(&player), [r#"= Steered { id: "a", heard: false }"#]);
}

#[test]
fn before_the_agent_works_and_between_turns_nothing_is_taken() {
    let turn = turn("text");
    let mut player = Player::session(&turn);
    steer(&mut player, "a");
    player.send("Go.");
    steer(&mut player, "b");
    assert_eq!(steered(&player).len(), 2);
    assert!(steered(&player).iter().all(|told| told.contains("false")));
}
