//! Turns in which anything happens in any order.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use teamster_agents::protocol::{CallId, Command, ExitReport, Input, ServerInput};
use teamster_agents::transcript::{End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::{RequestId, SteerId};
use teamster_types::request::{Answer, Prompt};

use super::LISTENS;
use super::player::{Player, TURNS};

#[derive(Clone, Debug)]
enum Happens {
    /// This event of this recorded turn, as one of the session that is talked to.
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

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        20 => (any::<Index>(), any::<Index>()).prop_map(|(turn, event)| Happens::Recorded(turn, event)),
        2 => Just(Happens::Send),
        1 => Just(Happens::Steer),
        1 => Just(Happens::Interrupt),
        1 => select(vec!["per_1", "que_1", ""]).prop_map(Happens::Answer),
        2 => (0..9u64, select(vec![200, 204, 400, 401, 404, 500]), select(vec!["", "{}", "true", r#"{"name":"UnknownError","data":{"ref":"err_1"}}"#]))
            .prop_map(|(call, status, body)| Happens::Reply(call, status, body)),
        1 => proptest::option::of(0..9u64).prop_map(Happens::Unreachable),
        1 => select(vec![LISTENS, b"opencode server listening on nowhere", b"", b"\xff"]).prop_map(Happens::Line),
        1 => vec(any::<u8>(), 0..40).prop_map(Happens::Garbage),
        1 => Just(Happens::Exited),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_the_server_says_each_turn_has_one_outcome_and_the_stream_keeps_the_rules(
        happens in vec(happens(), 0..60), run in any::<bool>(), in_order in any::<bool>(),
    ) {
        let recorded = &*TURNS;
        let first = &recorded[0];
        let id = first.session["id"].as_str().unwrap().to_owned();
        let mut player = if run { Player::run(first) } else { Player::session(first) };
        let mut open = run;
        let mut next = 0;
        for what in happens {
            let before = player.outcomes.len();
            match what {
                Happens::Recorded(turn, event) => {
                    let turn = turn.get(recorded);
                    let at = if in_order { next % turn.happened.len() } else { event.index(turn.happened.len()) };
                    next += 1;
                    let text = turn.happened[at]["event"].to_string().replace(turn.session["id"].as_str().unwrap(), &id);
                    player.tell(Input::Server(ServerInput::Event(text.as_bytes())));
                }
                Happens::Send if !run && !open => {
                    player.transcript.end(&End::default(), &mut player.events);
                    prop_assert_eq!(check(&std::mem::take(&mut player.events)), Ok(()));
                    player.transcript = Transcript::new();
                    open = true;
                    player.send("again");
                }
                Happens::Steer if !run => {
                    let id = SteerId::from("steer");
                    player.tell(Input::Command(Command::Steer { id: &id, prompt: &Prompt::from("Hurry.") }));
                }
                Happens::Send | Happens::Steer => {}
                Happens::Interrupt => player.tell(Input::Interrupt),
                Happens::Answer(request) => {
                    let request = RequestId::from(request);
                    player.tell(Input::Command(Command::Answer { request: &request, answer: &Answer::AllowAlways }));
                }
                Happens::Reply(call, status, body) => {
                    player.tell(Input::Server(ServerInput::Reply { call: CallId(call), status, body: body.as_bytes() }));
                }
                Happens::Unreachable(call) => {
                    player.tell(Input::Server(ServerInput::Unreachable { call: call.map(CallId), why: "no" }));
                }
                Happens::Line(line) => player.tell(Input::Line(line)),
                Happens::Garbage(bytes) => player.tell(Input::Server(ServerInput::Event(&bytes))),
                Happens::Exited => player.tell(Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() })),
            }
            let told = player.outcomes.len() - before;
            prop_assert!(told <= usize::from(open), "{:#?}", player.told);
            open = open && told == 0;
        }
        player.end();
        prop_assert_eq!(check(&player.events), Ok(()), "{:#?}", player.events);
    }
}
