//! Turns with random events in random order.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use teamster_agents::protocol::{Command, ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_testkit::check::check;
use teamster_types::event::Event;
use teamster_types::request::Answer;

use super::THREAD;
use super::session::{TestSession, session_request};

/// The lines of all recorded app-servers.
static RECORDED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let captures = crate::capture::all("codex").into_iter().filter(|capture| capture.name.starts_with("app_"));
    captures.flat_map(|capture| capture.lines().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
});

#[derive(Clone, Debug)]
enum Step {
    Line(Index),
    /// The response to a call of ours, counted from the newest.
    Reply(usize, Value),
    Send,
    Answer(Answer),
    Interrupt,
    SetModel,
    Exited,
}

fn step() -> impl Strategy<Value = Step> {
    let answers = vec![Answer::Allow { input: None }, Answer::AllowAlways, Answer::Deny { message: Some("$x".into()) }];
    let result = select(vec![
        json!({}),
        json!({"thread": {"id": THREAD}}),
        json!({"turn": {"id": "turn-1"}}),
        json!({"data": [{"id": THREAD}]}),
        Value::Null,
    ]);
    prop_oneof![
        8 => any::<Index>().prop_map(Step::Line),
        4 => (0_usize..4, result).prop_map(|(place, result)| Step::Reply(place, result)),
        2 => Just(Step::Send),
        2 => select(answers).prop_map(Step::Answer),
        1 => Just(Step::Interrupt),
        1 => Just(Step::SetModel),
        1 => Just(Step::Exited),
    ]
}

proptest! {
    #[test]
    fn each_turn_follows_the_event_rules_whatever_happens(steps in proptest::collection::vec(step(), 0..80)) {
        let mut session = TestSession::session(&session_request());
        for step in steps {
            match step {
                Step::Line(at) => session.handle(Input::Line(&RECORDED[at.index(RECORDED.len())])),
                Step::Reply(place, result) => {
                    let calls = session.written.iter().rev().filter(|line| line.get("method").is_some() && line.get("id").is_some());
                    let id = calls.map(|line| line["id"].clone()).nth(place);
                    if let Some(id) = id {
                        session.line(&json!({"id": id, "result": result}));
                    }
                }
                Step::Send if !session.in_turn => session.send("Go."),
                Step::Answer(answer) => {
                    let asks = session.events.iter().any(|event| matches!(event, Event::PermissionRequest(_) | Event::Question(_)));
                    if asks {
                        session.answer(&session.request(), &answer);
                    }
                }
                Step::Interrupt if session.in_turn => session.handle(Input::Interrupt),
                Step::SetModel => session.handle(Input::Command(Command::SetModel("m"))),
                Step::Exited => session.handle(Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() })),
                Step::Send | Step::Interrupt => {}
            }
        }
        // Requests of the app-server have a response, or wait for the caller.
        let mut rest = Vec::new();
        session.transcript.end(&End::default(), &mut rest);
        session.events.extend(rest);
        prop_assert_eq!(check(&session.events), Ok(()));
    }
}
