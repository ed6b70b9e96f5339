//! How the CLI ends, or does not.

use std::time::Duration;

use rustix::process::Signal;
use teamster::request::AgentInterface;
use teamster_testkit::fake::{Script, Signal as FakeSignal};

use crate::fault::{Cli, Fault, Moment, Step};
use crate::place::{Place, SAID, begun, working};
use crate::row::{Column, Row, error, success};

use super::{LONG, SHORT};

/// The shell stays when the CLI is gone.
pub(super) const STAYS: &str = "\"$CLI\" \"$@\"\nsleep $T";

/// Longer than a CLI says nothing while it works.
const SILENCE: Duration = Duration::from_secs(15);

/// Longer than any pipe.
const PROMPT_BYTES: usize = 3_000_000;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("never_exits_after_result", "never exits after its result", never_exits)
            .fake(success(5))
            .real(success(10))
            .on("opencode", success(60)),
        Row::new("exits_without_result", "exits with code 0 without a result", |_| {
            scripted(begun().claude_text(SAID).exit(0))
        })
        .fake(error("PROTOCOL", 5))
        .elsewhere("scripted"),
        Row::new("result_cut", "writes half of its result", |_| {
            scripted(begun().claude_text(SAID).claude_result_truncated(SAID).exit(0))
        })
        .fake(error("PROTOCOL", 5))
        .elsewhere("scripted"),
        Row::new("exits_with_an_error", "exits with an error while it streams", |_| {
            scripted(begun().claude_text(SAID).stderr("the disk is on fire\n").exit(3))
        })
        .fake(error("CLI_EXIT", 5))
        .elsewhere("scripted"),
        Row::new("ignores_sigterm", "ignores SIGTERM when it is aborted", |place| {
            place
                .works()
                .launched_by("trap '' TERM\n\"$CLI\" \"$@\"\nsleep $T")
                .asking(|request| request.limits.grace = SHORT)
                .then([Step::Await(Moment::Tool), Step::Say("abort")])
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("killed", "is killed by a signal while a tool runs", |place| {
            place.works().then([Step::Await(Moment::Tool), Step::Signal(Signal::KILL)])
        })
        .everywhere(error("CLI_SIGNALED", 5)),
        Row::new("stopped", "is stopped (SIGSTOP), then aborted", |place| {
            place.works().then([
                Step::Await(Moment::Tool),
                Step::Signal(Signal::STOP),
                Step::Await(Moment::Stopped),
                Step::Say("abort"),
            ])
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("stopped_for_ever", "is stopped (SIGSTOP), without an abort", |place| {
            let silence = if place.column == Column::Fake { SHORT * 4 } else { SILENCE };
            place
                .streams()
                .asking(move |request| {
                    // It may have told of its next call before it is stopped.
                    (request.limits.silence, request.limits.tool) = (silence, silence);
                    request.limits.grace = SHORT;
                })
                .then([Step::Await(Moment::Streaming), Step::Signal(Signal::STOP)])
        })
        .fake(error("WATCHDOG_TIMEOUT", 10))
        .real(error("WATCHDOG_TIMEOUT", 30)),
        Row::new("out_of_memory", "runs out of memory", out_of_memory)
            .fake(error("CLI_SIGNALED", 5))
            .real(error("CLI_SIGNALED", 20)),
        Row::new("exits_before_reading", "exits before it reads 3 MB of prompt", |place| {
            let fault = match place.column {
                Column::Fake => scripted(Script::new().exit(3)),
                Column::Real(_) => {
                    place.answers().asking(|request| request.cli_args = vec!["--teamster-no-such-option".to_owned()])
                }
            };
            fault.saying("").asking(|request| request.prompt = "漢".repeat(PROMPT_BYTES / "漢".len()))
        })
        .fake(error("CLI_EXIT", 5))
        .real(error("INVALID_REQUEST", 20)),
    ]
}

fn scripted(script: Script) -> Fault {
    Fault::new(Cli::Fake(script), SAID)
}

/// A CLI that has given its result and does not go.
pub(super) fn stays(place: &Place) -> Fault {
    match place.column {
        Column::Fake => {
            let script = begun().claude_text(SAID).claude_result(SAID).hang();
            scripted(script).then([Step::Await(Moment::Said)])
        }
        Column::Real(agent) => {
            let fault = place.answers().launched_by(STAYS).then([Step::Await(Moment::Lingering)]);
            // Its server is ended with all that belongs to it, and does not go by itself.
            if agent.name == "opencode" {
                fault.asking(|request| request.interface = AgentInterface::Exec)
            } else {
                fault
            }
        }
    }
}

fn never_exits(place: &Place) -> Fault {
    let mut fault = stays(place).asking(|request| request.limits.after_result = SHORT);
    // The CLI itself may take longer than the limit.
    fault.steps = vec![Step::Await(Moment::Said)];
    match place.column {
        // It has no last word: after what was its last step it may go on. So silence ends it, and the success stands.
        Column::Real(agent) if agent.name == "opencode" => fault.asking(|request| request.limits.silence = SILENCE),
        _ => fault,
    }
}

/// The kernel's way is SIGKILL; a limit on the address space is what a test can set without rights of its own. Under such a one
/// Gemini CLI's Node does not always end, nor always go on; it ends by SIGABRT when its own heap is used up.
fn out_of_memory(place: &Place) -> Fault {
    match place.column {
        Column::Fake => scripted(working().raise(FakeSignal::Kill)).asking(|request| request.limits.grace = LONG),
        Column::Real(agent) if agent.name == "gemini" => {
            place.answers().after_shell("export NODE_OPTIONS=--max-old-space-size=24").saying("")
        }
        Column::Real(_) => place.answers().after_shell("ulimit -v 100000").saying(""),
    }
}
