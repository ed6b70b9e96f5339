//! Surroundings that break.

use std::time::Duration;

use serde_json::json;
use teamster::event::WarningCode;
use teamster_testkit::provider::Scenario;

use crate::disk;
use crate::fault::{Cli, Fault, Moment, Step};
use crate::place::{Place, SAID, begun};
use crate::row::{Column, Row, error, success};

use super::output::counted;

/// A directory in which nobody can make a file, root neither.
const READ_ONLY: &str = "/proc";

/// A small disk, and more events than that and a pipe can hold.
const SPACE_KIB: u32 = 1024;
const BURST: u64 = 40_000;

/// For how long the host is halted.
const HALTED: Duration = Duration::from_secs(6);

pub(super) fn rows() -> Vec<Row> {
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
        Row::new("no_space", "files cannot grow (`ulimit -f 0`)", |place| {
            place.answers_in_one_shot().host_after("ulimit -f 0").saying("")
        })
        .fake(error("SPAWN_FAILED", 5))
        .real(error("SPAWN_FAILED", 20)),
        Row::new("disk_full", "the disk for private files is full", |place| {
            place.answers_in_one_shot().host_after(&disk::of_kib(place, 0, &["runtime", "tmp", "state"])).saying("")
        })
        .fake(error("SPAWN_FAILED", 5))
        .real(error("SPAWN_FAILED", 20)),
        Row::new(
            "disk_full_for_the_ledger",
            "the disk for the ledger is full, in a run without private files",
            |place| {
                place
                    .answers()
                    .host_after(&disk::of_kib(place, 0, &["runtime"]))
                    .asking(|request| request.system_prompt = None)
                    .warning(WarningCode::LedgerUnavailable)
            },
        )
        .fake(success(5))
        .elsewhere("same"),
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
        Row::new("few_files", "the host may open only 14 files (`ulimit -n`)", |place| {
            place.answers().host_after("ulimit -n 14").saying("")
        })
        .fake(error("SPAWN_FAILED", 5))
        .on("claude", error("SPAWN_FAILED", 5))
        .elsewhere("same"),
        Row::new("signals_inherited", "the host inherits blocked signals and an ignored SIGCHLD", |place| {
            place.answers().host_after("exec env --block-signal --ignore-signal=CHLD \"$0\" \"$@\"")
        })
        .fake(success(5))
        .on("claude", success(20))
        .elsewhere("same"),
        Row::new("umask_0777", "the host's umask is 0777", |place| {
            // The CLI's own files are not at issue.
            place.answers().host_after("umask 0777").after_shell("umask 022")
        })
        .fake(success(5))
        .on("claude", success(20))
        .elsewhere("same"),
        Row::new("disk_full_of_events", "events that wait for the consumer fill the disk", disk_full_of_events)
            .fake(success(20))
            .elsewhere("same"),
    ]
}

/// The CLI finishes its tool and its answer while the host is halted: everything waits to be read when the limit has passed.
fn halted(place: &Place) -> Fault {
    let fault = match place.column {
        Column::Fake => {
            let tool = begun().claude_text(SAID).claude_tool("toolu_1", "Bash", &json!({"command": "wait"}));
            let rest = tool.await_file(&place.path("go")).claude_tool_result("toolu_1", "done").claude_result(SAID);
            Fault::new(Cli::Fake(rest.read_to_end()), SAID).then([Step::Await(Moment::Tool)])
        }
        Column::Real(_) => {
            let (go, here) = (place.path("go"), place.path("here"));
            let waits = format!(": > {}; until [ -e {} ]; do sleep 0.1; done", here.display(), go.display());
            place.runs(&waits).then([Step::Await(Moment::Said), Step::Await(Moment::File("here"))])
        }
    };
    fault.asking(|request| request.limits.tool = HALTED / 2).then([
        Step::HaltHost,
        Step::Touch("go"),
        Step::ContinueHostAfter(HALTED),
    ])
}

fn home_not_writable(place: &Place) -> Fault {
    let fault = place
        .answers()
        .host_after(&format!("export HOME={READ_ONLY} XDG_STATE_HOME={READ_ONLY}"))
        .asking(|request| _ = request.env.insert("HOME".to_owned(), READ_ONLY.to_owned()));
    // Most give up before they say anything.
    if ["fake", "claude"].contains(&place.column.name()) { fault } else { fault.saying("") }
}

/// What then does not fit waits in the pipe, and the CLI waits too.
fn disk_full_of_events(place: &Place) -> Fault {
    waiting_events().host_after(&disk::of_kib(place, SPACE_KIB, &["tmp"]))
}

/// More events than there is space for, and nobody who reads them at first.
fn waiting_events() -> Fault {
    let script = begun().claude_burst(BURST).claude_result(SAID).read_to_end();
    Fault::new(Cli::Fake(script), counted(BURST))
        .asking(|request| request.limits.backlog_bytes = 64 << 10)
        .warning(WarningCode::Spilled)
        .then([
            Step::Await(Moment::Running),
            Step::Say("pause"),
            Step::Await(Moment::Spilled(u64::from(SPACE_KIB) << 10)),
            Step::Say("resume"),
        ])
}

/// A real CLI removes it by its shell tool, and uses it once more.
fn directory_removed(place: &Place) -> Fault {
    match place.column {
        Column::Fake => {
            let script = begun().claude_text(SAID).await_file(&place.path("go")).claude_result(SAID).read_to_end();
            Fault::new(Cli::Fake(script), SAID).then([
                Step::Await(Moment::Said),
                Step::RemoveProject,
                Step::Touch("go"),
            ])
        }
        Column::Real(agent) => {
            let call = |command| {
                let (tool, input) = agent.shell(command);
                agent.reply().tool(tool, input)
            };
            let (tool, input) = agent.shell("rm -rf \"$PWD\"");
            let scenario = Scenario::new()
                .reply(agent.reply().text(SAID).tool(tool, input))
                .reply(call("pwd"))
                .reply(agent.reply().text("Done."));
            Fault::new(Cli::Real(scenario), SAID).then([Step::Await(Moment::Said)])
        }
    }
}
