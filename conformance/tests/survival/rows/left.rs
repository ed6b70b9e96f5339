//! Processes that the CLI leaves behind.

use teamster::request::Background;

use crate::fault::{Fault, Moment, Step};
use crate::place::Place;
use crate::row::{Column, Row, success};

use super::SHORT;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("grandchild_keeps_stdout", "a grandchild keeps stdout open", |place| {
            place.answers().after_shell("sleep $T &").asking(|request| request.limits.drain = SHORT).then(said())
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("daemon", "a daemon: a session of its own, its parents end at once", |place| {
            daemon(place, "setsid sleep")
        })
        .fake(success(5))
        .real(success(10)),
        Row::new("daemon_without_environment", "a daemon that threw its environment away (`env -i`)", |place| {
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
        .elsewhere("alike"),
        Row::new("kept", "a daemon and its child, which are to be kept (`--keep-background`)", kept)
            .fake(success(5).keeping(2))
            .real(success(10).keeping(2)),
    ]
}

fn said() -> [Step; 1] {
    [Step::Await(Moment::Said)]
}

fn daemon(place: &Place, program: &str) -> Fault {
    leaving(place, &format!("{program} {}", place.token))
}

/// They end by themselves before long, whatever becomes of the test that looks for them.
fn kept(place: &Place) -> Fault {
    let daemon = format!("setsid sh -c 'sleep 300.{}; :'", place.token);
    leaving(place, &daemon).asking(|request| request.background = Background::Keep)
}

/// The fake agent finds it in its surroundings; a real CLI starts it by its shell tool.
fn leaving(place: &Place, daemon: &str) -> Fault {
    let start = format!("({daemon} </dev/null >/dev/null 2>&1 &)");
    let fault = match place.column {
        Column::Fake => place.answers().after_shell(&start),
        Column::Real(_) => place.runs(&start),
    };
    fault.then(said())
}
