//! Actions of the caller.

use std::hash::{BuildHasher as _, RandomState};

use teamster_testkit::fake::Script;

use crate::cell_env::{ANSWER, CellEnv, TEXT, good_end, started, working};
use crate::fault::{Cli, Fault, Moment, Start, Step};
use crate::row::{Column, Row, either, error, success, unread};

use super::end::stays;
use super::output::counted;
use super::{LONG, SHORT};

/// The runs of an abort storm: their number, the maximum number at a time, and the maximum time until the abort in
/// microseconds.
const FAKE_STORM: (usize, usize, u64) = (100, 8, 300_000);
const REAL_STORM: (usize, usize, u64) = (12, 2, 6_000_000);

/// A variable with the seed of an earlier failure, to repeat the same times.
const SEED: &str = "TEAMSTER_SURVIVAL_SEED";

pub(super) fn rows() -> Vec<Row> {
    reading().into_iter().chain(aborting()).collect()
}

/// How the caller reads.
fn reading() -> Vec<Row> {
    vec![
        Row::new("dropped", "drops the run while a tool runs", |cell| {
            cell.works().then([Step::Await(Moment::Tool), Step::Command("drop")])
        })
        .everywhere(unread(5)),
        Row::new("stops_reading", "stops reading until the CLI has exited", |cell| {
            let fault = match cell.column {
                Column::Fake => scripted(started().claude_burst(40_000).claude_result(TEXT).read_to_end())
                    .expecting_text(counted(40_000)),
                Column::Real(_) => cell.answers(),
            };
            fault.then([
                Step::Await(Moment::Running),
                Step::Command("pause"),
                Step::Await(Moment::Gone),
                Step::Command("resume"),
            ])
        })
        .fake(success(20))
        // These two lose what is not in the pipe at their exit.
        .on("claude", success(10))
        .on("gemini", success(10))
        .elsewhere("same"),
        Row::new("reads_slowly", "reads with longer pauses than the limits on silence", |_| {
            scripted(started().claude_burst(200).claude_result(TEXT).read_to_end())
                .expecting_text(counted(200))
                .starting(Start::Slowly(10))
                .asking(|request| {
                    request.limits.silence = SHORT;
                    request.limits.after_result = LONG;
                })
        })
        .fake(success(20))
        .elsewhere("same"),
        Row::new("sessions_take_turns", "uses two sessions with a limit of one live process", |cell| {
            let fault = match cell.column {
                Column::Fake => scripted(Script::new().await_line("Go.").then(started()).then(good_end())),
                Column::Real(_) => cell.answers(),
            };
            fault.expecting_text(TEXT).starting(Start::Sessions(2))
        })
        .fake(success(20))
        .on("claude", success(60))
        .elsewhere("same"),
    ]
}

/// When the caller aborts.
fn aborting() -> Vec<Row> {
    vec![
        Row::new("aborted_before_start", "aborts before the start", |cell| {
            cell.works().expecting_text("").starting(Start::Aborted)
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("aborted_in_mid_stream", "aborts while the CLI streams", |cell| {
            cell.streams().then([Step::Await(Moment::Streaming), Step::Command("abort")])
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("aborted_twice", "aborts twice, and interrupts", |cell| {
            cell.works().then([
                Step::Await(Moment::Tool),
                Step::Command("abort"),
                Step::Command("abort"),
                Step::Command("interrupt"),
            ])
        })
        .fake(error("ABORTED", 5))
        .elsewhere("same"),
        Row::new("aborted_at_the_end", "aborts after the result", |cell| {
            stays(cell).asking(|request| request.limits.after_result = LONG).then([Step::Command("abort")])
        })
        .everywhere(success(5)),
        Row::new("storm", "100 runs (12 of a real CLI), aborted at random times", storm)
            .fake(either("ABORTED", 60))
            .real(either("ABORTED", 150)),
    ]
}

fn scripted(script: Script) -> Fault {
    Fault::new(Cli::Fake(script), TEXT)
}

#[expect(clippy::print_stderr, reason = "test runners keep it and show it when the test fails")]
fn storm(cell: &CellEnv) -> Fault {
    let given = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let mut state: u64 = given.unwrap_or_else(|| RandomState::new().hash_one(&cell.token));
    eprintln!("{SEED}={state}");
    let (fault, (runs, at_once, within_us)) = match cell.column {
        Column::Fake => {
            let script = working().claude_tool_result("toolu_1", "made").claude_result(TEXT).read_to_end();
            (scripted(script), FAKE_STORM)
        }
        Column::Real(agent) => {
            let (runs, at_once, within_us) = REAL_STORM;
            // Two first runs at once disturb each other when they create its database.
            let at_once = if agent.name == "opencode" { 1 } else { at_once };
            (cell.runs("sleep 1").expecting_text(format!("{TEXT}{ANSWER}")), (runs, at_once, within_us))
        }
    };
    let after_us = std::iter::repeat_with(|| next(&mut state) % within_us).take(runs).collect();
    fault.starting(Start::Storm { after_us, at_once })
}

/// Returns the next number of `SplitMix64`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
