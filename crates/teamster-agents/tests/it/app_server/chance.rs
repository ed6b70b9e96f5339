//! Turns in which anything happens in any order.

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
use super::talk::{Talk, frame};

/// The lines of all recorded app-servers.
static RECORDED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let captures = crate::capture::all("codex").into_iter().filter(|capture| capture.name.starts_with("app_"));
    captures.flat_map(|capture| capture.lines().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
});

#[derive(Clone, Debug)]
enum Step {
    Line(Index),
    /// The answer to a call of ours, the newest first.
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
    fn whatever_happens_in_whatever_order_each_turn_keeps_the_rules(steps in proptest::collection::vec(step(), 0..80)) {
        let mut talk = Talk::session(&frame());
        for step in steps {
            match step {
                Step::Line(at) => talk.tell(Input::Line(&RECORDED[at.index(RECORDED.len())])),
                Step::Reply(place, result) => {
                    let calls = talk.written.iter().rev().filter(|line| line.get("method").is_some() && line.get("id").is_some());
                    let id = calls.map(|line| line["id"].clone()).nth(place);
                    if let Some(id) = id {
                        talk.line(&json!({"id": id, "result": result}));
                    }
                }
                Step::Send if !talk.in_turn => talk.send("Go."),
                Step::Answer(answer) => {
                    let asks = talk.events.iter().any(|event| matches!(event, Event::PermissionRequest(_) | Event::Question(_)));
                    if asks {
                        talk.answer(&talk.request(), &answer);
                    }
                }
                Step::Interrupt if talk.in_turn => talk.tell(Input::Interrupt),
                Step::SetModel => talk.tell(Input::Command(Command::SetModel("m"))),
                Step::Exited => talk.tell(Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() })),
                Step::Send | Step::Interrupt => {}
            }
        }
        // Every request of the app-server is answered, or waits for its caller.
        let mut told = Vec::new();
        talk.transcript.end(&End::default(), &mut told);
        talk.events.extend(told);
        prop_assert_eq!(check(&talk.events), Ok(()));
    }
}
