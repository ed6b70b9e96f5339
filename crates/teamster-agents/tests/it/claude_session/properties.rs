//! Random lines and commands in any order: each turn keeps the rules of the stream, has one outcome, and emits nothing after it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input};
use teamster_types::request::{Answer, PermissionMode};

use super::{TestSession, agent_turn_result, init, result};
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
    /// The CLI answers the request to remove a prompt: whether it did.
    CancelAnswered(bool),
    /// The CLI echoes a prompt.
    Echo,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let request = json!({"type": "control_request", "request_id": "r1",
                      "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t1"}});
    let withdraws = json!({"type": "control_cancel_request", "request_id": "r1"});
    let idle = json!({"type": "system", "subtype": "session_state_changed", "state": "idle"});
    let task = json!({"type": "system", "subtype": "task_notification", "task_id": "b1"});
    let known = vec![
        init(),
        init(),
        result(),
        result(),
        agent_turn_result(),
        agent_turn_result(),
        request,
        withdraws,
        idle,
        task,
    ];
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
        Step::CancelAnswered(true),
        Step::CancelAnswered(false),
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

fn apply(session: &mut TestSession, step: &Step) {
    match step {
        Step::Send if session.turn.is_none() => session.send(),
        Step::Steer => session.steer(),
        Step::Interrupt if session.turn.is_some() => session.handle(Input::Interrupt),
        Step::Send | Step::Interrupt => {}
        Step::Answer => session.answer(&Answer::AllowAlways),
        Step::SetModel => session.handle(Input::Command(Command::SetModel("m"))),
        Step::SetPermissionMode => session.handle(Input::Command(Command::SetPermissionMode(PermissionMode::Full))),
        Step::Close => session.handle(Input::Command(Command::Close)),
        Step::Line(line) => session.handle(Input::Line(line)),
        Step::CancelAnswered(is_removed) => {
            let cancel = session.written.iter().rfind(|line| line["request"]["subtype"] == "cancel_async_message");
            let id = cancel.map_or(json!("none"), |cancel| cancel["request_id"].clone());
            session.line(&json!({"type": "control_response", "response": {
                "subtype": "success", "request_id": id, "response": {"cancelled": is_removed}}}));
        }
        Step::Echo => {
            if let Some(id) = session.steering.first().map(|id| id.as_str().to_owned()) {
                session.line(&json!({"type": "user", "isReplay": true, "uuid": id, "message": {"content": "x"}}));
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
        let mut session = TestSession::new(background);
        for step in &steps {
            apply(&mut session, step);
        }
        session.exit();
        let prompts = session.written.iter().filter(|line| line["type"] == "user" && line["message"]["content"] != "More.").count();
        prop_assert!(prompts >= session.prompts.saturating_sub(steps.len()) && prompts <= steps.len());
        if !background {
            prop_assert!(session.ended.iter().all(|(owner, _)| *owner != super::Owner::Agent));
        }
    }
}
