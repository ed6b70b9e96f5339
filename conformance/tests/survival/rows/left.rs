//! Processes that the CLI leaves behind.

use teamster::request::OrphanPolicy;

use crate::fault::{Fault, Moment, Step};
use crate::place::Place;
use crate::row::{Column, Row, error, success};
use crate::storm;

use super::SHORT;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("grandchild_keeps_stdout", "a grandchild keeps stdout open", |place| {
            place.answers().after_shell("sleep $T &").asking(|request| request.limits.drain = SHORT).then(said())
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("daemon", "a daemon: it has its own session, and its parents exit at once", |place| {
            daemon(place, "setsid sleep")
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("daemon_without_environment", "a daemon that cleared its environment (`env -i`)", |place| {
            daemon(place, "setsid env -i sleep")
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("stubborn_daemon", "a daemon that ignores SIGTERM and SIGHUP and holds stdout and stderr", |place| {
            place.answers().after_shell("(trap '' TERM HUP; setsid sleep $T &)").asking(|request| {
                request.limits.drain = SHORT;
                request.limits.grace = SHORT;
            })
        })
        .fake(success(5))
        .elsewhere("same"),
        Row::new(
            "storm_of_processes",
            "a program that forks, exits and opens sessions in an endless loop, then an abort",
            |place| {
                let storm = storm::shell().unwrap_or_default();
                place.works().after_shell(&storm).asking(|request| request.limits.grace = SHORT).then([
                    Step::Await(Moment::Tool),
                    Step::Await(Moment::File(storm::UP)),
                    Step::Say("abort"),
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

fn said() -> [Step; 1] {
    [Step::Await(Moment::Said)]
}

fn daemon(place: &Place, program: &str) -> Fault {
    leaving(place, &in_background(&format!("{program} {}", place.token)))
}

/// The CLI goes on when both are what they are to be. They end by themselves before long, whatever becomes of the test that
/// looks for them.
fn kept(place: &Place) -> Fault {
    let (up, token) = (place.path("up"), &place.token);
    let up = up.display();
    let daemon = in_background(&format!(
        "setsid sh -c 'sleep 300.{token} & until read -r NAME < /proc/$!/comm && [ $NAME = sleep ]; do :; done; : > {up}; wait'"
    ));
    let fault = leaving(place, &format!("{daemon}; until [ -e {up} ]; do sleep 0.01; done"));
    fault.asking(|request| request.orphans = OrphanPolicy::Keep)
}

fn in_background(command: &str) -> String {
    format!("({command} </dev/null >/dev/null 2>&1 &)")
}

/// The fake agent finds them in its surroundings; a real CLI starts them by its shell tool.
fn leaving(place: &Place, start: &str) -> Fault {
    let fault = match place.column {
        Column::Fake => place.answers().after_shell(start),
        Column::Real(_) => place.runs(start),
    };
    fault.then(said())
}
