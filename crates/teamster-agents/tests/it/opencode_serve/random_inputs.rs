//! Turns with random inputs in any order.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use teamster_agents::protocol::{CallId, Command, ExitReport, Input, ServerInput};
use teamster_agents::transcript::{End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::{RequestId, SteerId};
use teamster_types::request::{Answer, Prompt};

use super::ADDRESS_LINE;
use super::harness::{Harness, TURNS};

#[derive(Clone, Debug)]
enum RandomInput {
    /// An event of a recorded turn, with the id of the current session.
    Recorded(Index, Index),
    Send,
    Steer,
    Interrupt,
    Answer(&'static str),
    Reply(u64, u16, &'static str),
    Unreachable(Option<u64>),
    Line(&'static [u8]),
    Garbage(Vec<u8>),
    Exited,
}

fn random_input() -> impl Strategy<Value = RandomInput> {
    prop_oneof![
        20 => (any::<Index>(), any::<Index>()).prop_map(|(turn, event)| RandomInput::Recorded(turn, event)),
        2 => Just(RandomInput::Send),
        1 => Just(RandomInput::Steer),
        1 => Just(RandomInput::Interrupt),
        1 => select(vec!["per_1", "que_1", ""]).prop_map(RandomInput::Answer),
        2 => (0..9u64, select(vec![200, 204, 400, 401, 404, 500]), select(vec!["", "{}", "true", r#"{"name":"UnknownError","data":{"ref":"err_1"}}"#]))
            .prop_map(|(call, status, body)| RandomInput::Reply(call, status, body)),
        1 => proptest::option::of(0..9u64).prop_map(RandomInput::Unreachable),
        1 => select(vec![ADDRESS_LINE, b"opencode server listening on nowhere", b"", b"\xff"]).prop_map(RandomInput::Line),
        1 => vec(any::<u8>(), 0..40).prop_map(RandomInput::Garbage),
        1 => Just(RandomInput::Exited),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_turn_has_one_outcome_and_a_valid_stream_for_any_server_output(
        inputs in vec(random_input(), 0..60), run in any::<bool>(), in_order in any::<bool>(),
    ) {
        let recorded = &*TURNS;
        let first = &recorded[0];
        let id = first.session["id"].as_str().unwrap().to_owned();
        let mut harness = if run { Harness::run(first) } else { Harness::session(first) };
        let mut open = run;
        let mut next = 0;
        for input in inputs {
            let before = harness.outcomes.len();
            match input {
                RandomInput::Recorded(turn, event) => {
                    let turn = turn.get(recorded);
                    let at = if in_order { next % turn.inputs.len() } else { event.index(turn.inputs.len()) };
                    next += 1;
                    let text = turn.inputs[at]["event"].to_string().replace(turn.session["id"].as_str().unwrap(), &id);
                    harness.handle(Input::Server(ServerInput::Event(text.as_bytes())));
                }
                RandomInput::Send if !run && !open => {
                    harness.transcript.end(&End::default(), &mut harness.events);
                    prop_assert_eq!(check(&std::mem::take(&mut harness.events)), Ok(()));
                    harness.transcript = Transcript::new();
                    open = true;
                    harness.send("again");
                }
                RandomInput::Steer if !run => {
                    let id = SteerId::from("steer");
                    harness.handle(Input::Command(Command::Steer { id: &id, prompt: &Prompt::from("Hurry.") }));
                }
                RandomInput::Send | RandomInput::Steer => {}
                RandomInput::Interrupt => harness.handle(Input::Interrupt),
                RandomInput::Answer(request) => {
                    let request = RequestId::from(request);
                    harness.handle(Input::Command(Command::Answer { request: &request, answer: &Answer::AllowAlways }));
                }
                RandomInput::Reply(call, status, body) => {
                    harness.handle(Input::Server(ServerInput::Reply { call: CallId(call), status, body: body.as_bytes() }));
                }
                RandomInput::Unreachable(call) => {
                    harness.handle(Input::Server(ServerInput::Unreachable { call: call.map(CallId), why: "no" }));
                }
                RandomInput::Line(line) => harness.handle(Input::Line(line)),
                RandomInput::Garbage(bytes) => harness.handle(Input::Server(ServerInput::Event(&bytes))),
                RandomInput::Exited => harness.handle(Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() })),
            }
            let outcomes = harness.outcomes.len() - before;
            prop_assert!(outcomes <= usize::from(open), "{:#?}", harness.log);
            open = open && outcomes == 0;
        }
        harness.end();
        prop_assert_eq!(check(&harness.events), Ok(()), "{:#?}", harness.events);
    }
}
