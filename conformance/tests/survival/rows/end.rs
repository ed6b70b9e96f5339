//! The CLI's exit.

use std::time::Duration;

use rustix::process::Signal;
use teamster::request::AgentInterface;
use teamster_testkit::fake::{Script, Signal as FakeSignal};

use crate::cell_env::{CellEnv, TEXT, started, working};
use crate::fault::{Cli, Fault, Moment, Step};
use crate::row::{Column, Row, error, success};

use super::{LONG, SHORT};

/// The shell stays after the CLI's exit.
pub(super) const STAYS: &str = "\"$CLI\" \"$@\"\nsleep $T";

/// Longer than a working CLI is silent.
const SILENCE: Duration = Duration::from_secs(15);

/// More than the capacity of a pipe.
const PROMPT_BYTES: usize = 3_000_000;

pub(super) fn rows() -> Vec<Row> {
    exits().into_iter().chain(signals()).collect()
}

/// The end of its output.
fn exits() -> Vec<Row> {
    vec![
        Row::new("never_exits_after_result", "never exits after its result", never_exits)
            .fake(success(5))
            .real(success(10))
            .on("opencode", success(60)),
        Row::new("exits_without_result", "exits with code 0 without a result", |_| {
            scripted(started().claude_text(TEXT).exit(0))
        })
        .fake(error("PROTOCOL", 5))
        .elsewhere("scripted"),
        Row::new("result_cut", "writes half of its result", |_| {
            scripted(started().claude_text(TEXT).claude_result_truncated(TEXT).exit(0))
        })
        .fake(error("PROTOCOL", 5))
        .elsewhere("scripted"),
        Row::new("exits_with_an_error", "exits with an error while it streams", |_| {
            scripted(started().claude_text(TEXT).stderr("the disk is on fire\n").exit(3))
        })
        .fake(error("CLI_EXIT", 5))
        .elsewhere("scripted"),
    ]
}

/// Signals, memory and arguments.
fn signals() -> Vec<Row> {
    vec![
        Row::new("ignores_sigterm", "ignores SIGTERM when it is aborted", |cell| {
            cell.works()
                .launched_by("trap '' TERM\n\"$CLI\" \"$@\"\nsleep $T")
                .asking(|request| request.limits.grace = SHORT)
                .then([Step::Await(Moment::Tool), Step::Command("abort")])
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("killed", "is killed by a signal while a tool runs", |cell| {
            cell.works().then([Step::Await(Moment::Tool), Step::Signal(Signal::KILL)])
        })
        .everywhere(error("CLI_SIGNALED", 5)),
        Row::new("stopped", "is stopped (SIGSTOP), then aborted", |cell| {
            cell.works().then([
                Step::Await(Moment::Tool),
                Step::Signal(Signal::STOP),
                Step::Await(Moment::Stopped),
                Step::Command("abort"),
            ])
        })
        .everywhere(error("ABORTED", 5)),
        Row::new("stopped_for_ever", "is stopped (SIGSTOP), without an abort", |cell| {
            let silence = if cell.column == Column::Fake { SHORT * 4 } else { SILENCE };
            cell.streams()
                .asking(move |request| {
                    // It may report its next call before it is stopped.
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
        Row::new("exits_before_reading", "exits before it reads 3 MB of prompt", |cell| {
            let fault = match cell.column {
                Column::Fake => scripted(Script::new().exit(3)),
                Column::Real(_) => {
                    cell.answers().asking(|request| request.cli_args = vec!["--teamster-no-such-option".to_owned()])
                }
            };
            fault.expecting_text("").asking(|request| request.prompt = "漢".repeat(PROMPT_BYTES / "漢".len()))
        })
        .fake(error("CLI_EXIT", 5))
        .real(error("INVALID_REQUEST", 20)),
    ]
}

fn scripted(script: Script) -> Fault {
    Fault::new(Cli::Fake(script), TEXT)
}

/// Returns a CLI that has emitted its result and does not exit.
pub(super) fn stays(cell: &CellEnv) -> Fault {
    match cell.column {
        Column::Fake => {
            let script = started().claude_text(TEXT).claude_result(TEXT).hang();
            scripted(script).then([Step::Await(Moment::TextRead)])
        }
        Column::Real(agent) => {
            let fault = cell.answers().launched_by(STAYS).then([Step::Await(Moment::Lingering)]);
            // Teamster kills its server, which does not exit by itself.
            if agent.name == "opencode" {
                fault.asking(|request| request.interface = AgentInterface::Exec)
            } else {
                fault
            }
        }
    }
}

fn never_exits(cell: &CellEnv) -> Fault {
    let mut fault = stays(cell).asking(|request| request.limits.after_result = SHORT);
    // The CLI's exit may take longer than the limit.
    fault.steps = vec![Step::Await(Moment::TextRead)];
    match cell.column {
        // It reports no final result: it may continue after any step. So silence ends it, and the success is kept.
        Column::Real(agent) if agent.name == "opencode" => fault.asking(|request| request.limits.silence = SILENCE),
        _ => fault,
    }
}

/// The kernel sends SIGKILL. A test without privileges can limit the address space. With such a limit, Gemini CLI's Node
/// exits or continues at random; with a limit on its heap, it ends by SIGABRT.
fn out_of_memory(cell: &CellEnv) -> Fault {
    match cell.column {
        Column::Fake => scripted(working().raise(FakeSignal::Kill)).asking(|request| request.limits.grace = LONG),
        Column::Real(agent) if agent.name == "gemini" => {
            cell.answers().after_shell("export NODE_OPTIONS=--max-old-space-size=24").expecting_text("")
        }
        Column::Real(_) => cell.answers().after_shell("ulimit -v 100000").expecting_text(""),
    }
}
