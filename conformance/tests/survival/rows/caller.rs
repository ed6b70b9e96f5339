//! What the caller does.

use std::hash::{BuildHasher as _, RandomState};

use teamster_testkit::fake::Script;

use crate::fault::{Cli, Fault, Moment, Start, Step};
use crate::place::{ANSWER, Place, SAID, begun, good_end, working};
use crate::row::{Column, Row, either, error, success, unread};

use super::end::stays;
use super::output::counted;
use super::{LONG, SHORT};

/// How many runs a storm has, how many of them live at a time, and within how many microseconds of its start each is aborted.
const FAKE_STORM: (usize, usize, u64) = (100, 8, 300_000);
const REAL_STORM: (usize, usize, u64) = (12, 2, 6_000_000);

/// Set it to the seed of a failure to abort at the same times again.
const SEED: &str = "TEAMSTER_SURVIVAL_SEED";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("dropped", "drops the run while a tool runs", |place| {
            place.works().then([Step::Await(Moment::Tool), Step::Say("drop")])
        })
        .everywhere(unread(5)),
        Row::new("stops_reading", "stops reading until the CLI has exited", |place| {
            let fault = match place.column {
                Column::Fake => {
                    scripted(begun().claude_burst(40_000).claude_result(SAID).read_to_end()).saying(counted(40_000))
                }
                Column::Real(_) => place.answers(),
            };
            fault.then([
                Step::Await(Moment::Running),
                Step::Say("pause"),
                Step::Await(Moment::Gone),
                Step::Say("resume"),
            ])
        })
        .fake(success(20))
        // These two lose what the pipe does not take before their exit.
        .on("claude", success(10))
        .on("gemini", success(10))
        .elsewhere("same"),
        Row::new("reads_slowly", "reads with longer pauses than the limits on silence", |_| {
            scripted(begun().claude_burst(200).claude_result(SAID).read_to_end())
                .saying(counted(200))
                .starting(Start::Slowly(10))
                .asking(|request| {
                    request.limits.silence = SHORT;
                    request.limits.after_result = LONG;
                })
        })
        .fake(success(20))
        .elsewhere("same"),
        Row::new("sessions_take_turns", "uses two sessions with a limit of one live process", |place| {
            let fault = match place.column {
                Column::Fake => scripted(Script::new().await_line("Go.").then(begun()).then(good_end())),
                Column::Real(_) => place.answers(),
            };
            fault.saying(SAID).starting(Start::Sessions(2))
        })
        .fake(success(20))
        .on("claude", success(60))
        .elsewhere("same"),
        Row::new("aborted_before_start", "aborts before the start", |place| {
            place.works().saying("").starting(Start::Aborted)
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("aborted_in_mid_stream", "aborts while the CLI streams", |place| {
            place.streams().then([Step::Await(Moment::Streaming), Step::Say("abort")])
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("aborted_twice", "aborts twice, and interrupts", |place| {
            place.works().then([
                Step::Await(Moment::Tool),
                Step::Say("abort"),
                Step::Say("abort"),
                Step::Say("interrupt"),
            ])
        })
        .fake(error("ABORTED", 5))
        .elsewhere("same"),
        Row::new("aborted_at_the_end", "aborts after the result", |place| {
            stays(place).asking(|request| request.limits.after_result = LONG).then([Step::Say("abort")])
        })
        .everywhere(success(5)),
        Row::new("storm", "100 runs (12 of a real CLI), aborted at random times", storm)
            .fake(either("ABORTED", 60))
            .real(either("ABORTED", 150)),
    ]
}

fn scripted(script: Script) -> Fault {
    Fault::new(Cli::Fake(script), SAID)
}

#[expect(clippy::print_stderr, reason = "test runners keep it and show it when the test fails")]
fn storm(place: &Place) -> Fault {
    let given = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let mut state: u64 = given.unwrap_or_else(|| RandomState::new().hash_one(&place.token));
    eprintln!("{SEED}={state}");
    let (fault, (runs, at_once, within_us)) = match place.column {
        Column::Fake => {
            let script = working().claude_tool_result("toolu_1", "made").claude_result(SAID).read_to_end();
            (scripted(script), FAKE_STORM)
        }
        Column::Real(agent) => {
            let (runs, at_once, within_us) = REAL_STORM;
            // Two first runs at once of this one disturb each other where they make its database.
            let at_once = if agent.name == "opencode" { 1 } else { at_once };
            (place.runs("sleep 1").saying(format!("{SAID}{ANSWER}")), (runs, at_once, within_us))
        }
    };
    let after_us = std::iter::repeat_with(|| next(&mut state) % within_us).take(runs).collect();
    fault.starting(Start::Storm { after_us, at_once })
}

/// The next number of `SplitMix64`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
