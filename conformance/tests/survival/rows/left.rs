//! Processes that the CLI leaves behind.

use teamster::request::OrphanPolicy;

use crate::cell_env::CellEnv;
use crate::fault::{Fault, Moment, Step};
use crate::row::{Column, Row, error, success};
use crate::storm;

use super::SHORT;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("grandchild_keeps_stdout", "a grandchild keeps stdout open", |cell| {
            cell.answers().after_shell("sleep $T &").asking(|request| request.limits.drain = SHORT).then(text_read())
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("daemon", "a daemon: it has its own session, and its parents exit at once", |cell| {
            daemon(cell, "setsid sleep")
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("daemon_without_environment", "a daemon that cleared its environment (`env -i`)", |cell| {
            daemon(cell, "setsid env -i sleep")
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("stubborn_daemon", "a daemon that ignores SIGTERM and SIGHUP and holds stdout and stderr", |cell| {
            cell.answers().after_shell("(trap '' TERM HUP; setsid sleep $T &)").asking(|request| {
                request.limits.drain = SHORT;
                request.limits.grace = SHORT;
            })
        })
        .fake(success(5))
        .elsewhere("same"),
        Row::new(
            "storm_of_processes",
            "a program that forks, exits and opens sessions in an endless loop, then an abort",
            |cell| {
                let storm = storm::shell().unwrap_or_default();
                cell.works().after_shell(&storm).asking(|request| request.limits.grace = SHORT).then([
                    Step::Await(Moment::Tool),
                    Step::Await(Moment::File(storm::UP)),
                    Step::Command("abort"),
                ])
            },
        )
        .fake(error("ABORTED", 5))
        .on("claude", error("ABORTED", 5))
        .elsewhere("same"),
        Row::new("kept", "a daemon and its child, kept on request (`--keep-background`)", kept)
            .fake(success(5).keeping(2))
            .real(success(10).keeping(2)),
    ]
}

fn text_read() -> [Step; 1] {
    [Step::Await(Moment::TextRead)]
}

fn daemon(cell: &CellEnv, program: &str) -> Fault {
    leaving(cell, &in_background(&format!("{program} {}", cell.token)))
}

/// The CLI continues when both processes run their final programs. They exit by themselves, also if the test fails.
fn kept(cell: &CellEnv) -> Fault {
    let (up, token) = (cell.path("up"), &cell.token);
    let up = up.display();
    let daemon = in_background(&format!(
        "setsid sh -c 'sleep 300.{token} & until read -r NAME < /proc/$!/comm && [ $NAME = sleep ]; do :; done; : > {up}; wait'"
    ));
    let fault = leaving(cell, &format!("{daemon}; until [ -e {up} ]; do sleep 0.01; done"));
    fault.asking(|request| request.orphans = OrphanPolicy::Keep)
}

fn in_background(command: &str) -> String {
    format!("({command} </dev/null >/dev/null 2>&1 &)")
}

/// The shell around the fake agent starts them. A real CLI starts them by its shell tool.
fn leaving(cell: &CellEnv, start: &str) -> Fault {
    let fault = match cell.column {
        Column::Fake => cell.answers().after_shell(start),
        Column::Real(_) => cell.runs(start),
    };
    fault.then(text_read())
}
