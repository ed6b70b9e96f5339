//! Faults of the environment.

use std::time::Duration;

use serde_json::json;
use teamster::event::WarningCode;
use teamster_testkit::provider::Scenario;

use crate::cell_env::{CellEnv, TEXT, started};
use crate::disk;
use crate::fault::{Cli, Fault, Moment, Step};
use crate::row::{Column, Row, error, success};

use super::output::counted;

/// A directory in which no process can create a file, not even root.
const READ_ONLY: &str = "/proc";

/// The size of a small disk, and more events than it and a pipe can hold.
const SPACE_KIB: u32 = 1024;
const BURST: u64 = 40_000;

/// The time for which the host is stopped.
const HALTED: Duration = Duration::from_secs(6);

pub(super) fn rows() -> Vec<Row> {
    files().into_iter().chain(host()).collect()
}

/// Directories and disks.
fn files() -> Vec<Row> {
    vec![
        Row::new("directory_removed", "the working directory is removed during the run", directory_removed)
            .fake(success(5))
            .real(success(20)),
        Row::new("home_not_writable", "HOME is not writable", home_not_writable)
            .fake(success(5))
            .real(success(20))
            .on("codex", error("CLI_EXIT", 20))
            .on("gemini", error("SPAWN_FAILED", 20))
            .on("opencode", error("CLI_EXIT", 20)),
        Row::new("no_space", "files cannot grow (`ulimit -f 0`)", |cell| {
            cell.answers_in_one_shot().host_after("ulimit -f 0").expecting_text("")
        })
        .fake(error("SPAWN_FAILED", 5))
        .real(error("SPAWN_FAILED", 20)),
        Row::new("disk_full", "the disk for private files is full", |cell| {
            cell.answers_in_one_shot()
                .host_after(&disk::of_kib(cell, 0, &["runtime", "tmp", "state"]))
                .expecting_text("")
        })
        .fake(error("SPAWN_FAILED", 5))
        .real(error("SPAWN_FAILED", 20)),
        Row::new(
            "disk_full_for_the_ledger",
            "the disk for the ledger is full, in a run without private files",
            |cell| {
                cell.answers()
                    .host_after(&disk::of_kib(cell, 0, &["runtime"]))
                    .asking(|request| request.system_prompt = None)
                    .warning(WarningCode::LedgerUnavailable)
            },
        )
        .fake(success(5))
        .elsewhere("same"),
    ]
}

/// The host.
fn host() -> Vec<Row> {
    vec![
        Row::new(
            "host_halted",
            "the host is stopped (SIGSTOP) for longer than the limit on silence of a tool, and continued",
            halted,
        )
        .fake(success(10))
        .on("claude", success(20))
        .on("opencode", success(30))
        .elsewhere("same"),
        Row::new("events_limited", "events that wait for the consumer reach the limit on the size of files", |_| {
            waiting_events().host_after(&format!("ulimit -f {}", SPACE_KIB * 2))
        })
        .fake(success(20))
        .elsewhere("same"),
        Row::new("few_files", "the host may open only 14 files (`ulimit -n`)", |cell| {
            cell.answers().host_after("ulimit -n 14").expecting_text("")
        })
        .fake(error("SPAWN_FAILED", 5))
        .on("claude", error("SPAWN_FAILED", 5))
        .elsewhere("same"),
        Row::new("signals_inherited", "the host inherits blocked signals and an ignored SIGCHLD", |cell| {
            cell.answers().host_after("exec env --block-signal --ignore-signal=CHLD \"$0\" \"$@\"")
        })
        .fake(success(5))
        .on("claude", success(20))
        .elsewhere("same"),
        Row::new("umask_0777", "the host's umask is 0777", |cell| {
            // The CLI's own files are not tested.
            cell.answers().host_after("umask 0777").after_shell("umask 022")
        })
        .fake(success(5))
        .on("claude", success(20))
        .elsewhere("same"),
        Row::new("disk_full_of_events", "events that wait for the consumer fill the disk", disk_full_of_events)
            .fake(success(20))
            .elsewhere("same"),
    ]
}

/// The CLI finishes its tool and its answer while the host is stopped. When the limit has passed, all output waits to be
/// read.
fn halted(cell: &CellEnv) -> Fault {
    let fault = match cell.column {
        Column::Fake => {
            let tool = started().claude_text(TEXT).claude_tool("toolu_1", "Bash", &json!({"command": "wait"}));
            let rest = tool.await_file(&cell.path("go")).claude_tool_result("toolu_1", "done").claude_result(TEXT);
            Fault::new(Cli::Fake(rest.read_to_end()), TEXT).then([Step::Await(Moment::Tool)])
        }
        Column::Real(_) => {
            let (go, here) = (cell.path("go"), cell.path("here"));
            let waits = format!(": > {}; until [ -e {} ]; do sleep 0.1; done", here.display(), go.display());
            cell.runs(&waits).then([Step::Await(Moment::TextRead), Step::Await(Moment::File("here"))])
        }
    };
    fault.asking(|request| request.limits.tool = HALTED / 2).then([
        Step::HaltHost,
        Step::Touch("go"),
        Step::ContinueHostAfter(HALTED),
    ])
}

fn home_not_writable(cell: &CellEnv) -> Fault {
    let fault = cell
        .answers()
        .host_after(&format!("export HOME={READ_ONLY} XDG_STATE_HOME={READ_ONLY}"))
        .asking(|request| _ = request.env.insert("HOME".to_owned(), READ_ONLY.to_owned()));
    // Most exit before they emit text.
    if ["fake", "claude"].contains(&cell.column.name()) { fault } else { fault.expecting_text("") }
}

/// When the disk is full, the rest waits in the pipe, and the CLI waits too.
fn disk_full_of_events(cell: &CellEnv) -> Fault {
    waiting_events().host_after(&disk::of_kib(cell, SPACE_KIB, &["tmp"]))
}

/// Returns a CLI with more events than there is space for. The caller does not read them at first.
fn waiting_events() -> Fault {
    let script = started().claude_burst(BURST).claude_result(TEXT).read_to_end();
    Fault::new(Cli::Fake(script), counted(BURST))
        .asking(|request| request.limits.backlog_bytes = 64 << 10)
        .warning(WarningCode::Spilled)
        .then([
            Step::Await(Moment::Running),
            Step::Command("pause"),
            Step::Await(Moment::Spilled(u64::from(SPACE_KIB) << 10)),
            Step::Command("resume"),
        ])
}

/// A real CLI removes the directory by its shell tool, and then runs another command in it.
fn directory_removed(cell: &CellEnv) -> Fault {
    match cell.column {
        Column::Fake => {
            let script = started().claude_text(TEXT).await_file(&cell.path("go")).claude_result(TEXT).read_to_end();
            Fault::new(Cli::Fake(script), TEXT).then([
                Step::Await(Moment::TextRead),
                Step::RemoveProject,
                Step::Touch("go"),
            ])
        }
        Column::Real(agent) => {
            let runs = |command| {
                let (tool, input) = agent.shell(command);
                agent.reply().tool(tool, input)
            };
            let (tool, input) = agent.shell("rm -rf \"$PWD\"");
            let scenario = Scenario::new()
                .reply(agent.reply().text(TEXT).tool(tool, input))
                .reply(runs("pwd"))
                .reply(agent.reply().text("Done."));
            Fault::new(Cli::Real(scenario), TEXT).then([Step::Await(Moment::TextRead)])
        }
    }
}
