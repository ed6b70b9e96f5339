//! Whatever the CLI writes, and whatever its caller wants, in any order: each turn keeps the rules of the stream, has one
//! outcome, and says nothing after it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input};
use teamster_types::request::{Answer, PermissionMode};

use super::{Talk, init, own_result, result};
use crate::lines::{disordered, plausible_line, vocabulary};

#[derive(Clone, Debug)]
enum Step {
    Send,
    Steer,
    Interrupt,
    Answer,
    SetModel,
    SetPermissionMode,
    Close,
    Line(Vec<u8>),
    /// The CLI answers a claim: whether it gives the prompt back.
    Claimed(bool),
    /// It echoes what it was told.
    Echo,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let asks = json!({"type": "control_request", "request_id": "r1",
                      "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t1"}});
    let withdraws = json!({"type": "control_cancel_request", "request_id": "r1"});
    let idle = json!({"type": "system", "subtype": "session_state_changed", "state": "idle"});
    let task = json!({"type": "system", "subtype": "task_notification", "task_id": "b1"});
    let known = vec![init(), init(), result(), result(), own_result(), own_result(), asks, withdraws, idle, task];
    let lines = |lines: Vec<Vec<u8>>| lines.into_iter().map(Step::Line).collect::<Vec<_>>();
    let line = |line: Value| vec![Step::Line(line.to_string().into_bytes())];
    let commands = vec![
        Step::Send,
        Step::Send,
        Step::Send,
        Step::Steer,
        Step::Interrupt,
        Step::Answer,
        Step::SetModel,
        Step::SetPermissionMode,
        Step::Close,
        Step::Claimed(true),
        Step::Claimed(false),
        Step::Echo,
    ];
    let step = prop_oneof![
        8 => select(commands).prop_map(|step| vec![step]),
        8 => select(known).prop_map(line),
        6 => plausible_line().prop_map(line),
        2 => vocabulary().prop_map(line),
        1 => disordered().prop_map(lines),
    ];
    vec(step, 0..40).prop_map(|steps| steps.concat())
}

fn take(talk: &mut Talk, step: &Step) {
    match step {
        Step::Send if talk.turn.is_none() => talk.send(),
        Step::Steer => talk.steer(),
        Step::Interrupt if talk.turn.is_some() => talk.tell(Input::Interrupt),
        Step::Send | Step::Interrupt => {}
        Step::Answer => talk.answer(&Answer::AllowAlways),
        Step::SetModel => talk.tell(Input::Command(Command::SetModel("m"))),
        Step::SetPermissionMode => talk.tell(Input::Command(Command::SetPermissionMode(PermissionMode::Full))),
        Step::Close => talk.tell(Input::Command(Command::Close)),
        Step::Line(line) => talk.tell(Input::Line(line)),
        Step::Claimed(given_back) => {
            let claim = talk.written.iter().rfind(|line| line["request"]["subtype"] == "cancel_async_message");
            let id = claim.map_or(json!("none"), |claim| claim["request_id"].clone());
            talk.line(&json!({"type": "control_response", "response": {
                "subtype": "success", "request_id": id, "response": {"cancelled": given_back}}}));
        }
        Step::Echo => {
            if let Some(id) = talk.steering.first().map(|id| id.as_str().to_owned()) {
                talk.line(&json!({"type": "user", "isReplay": true, "uuid": id, "message": {"content": "x"}}));
            }
        }
    }
}

proptest! {
    #[test]
    fn every_turn_of_a_session_keeps_the_rules(
        background in select(vec![false, true]),
        steps in steps(),
    ) {
        let mut talk = Talk::new(background);
        for step in &steps {
            take(&mut talk, step);
        }
        talk.exit();
        let prompts = talk.written.iter().filter(|line| line["type"] == "user" && line["message"]["content"] != "More.").count();
        prop_assert!(prompts >= talk.prompts.saturating_sub(steps.len()) && prompts <= steps.len());
        if !background {
            prop_assert!(talk.ended.iter().all(|(whose, _)| *whose != super::Whose::Own));
        }
    }
}
