//! The host program is killed, in each phase of a run.

use crate::fault::{Moment, Step};
use crate::row::{Row, unread};

use super::LONG;
use super::end::stays;

/// The shell ignores SIGTERM and reports it. (By default, a background command has no standard input.)
const REPORTS_TERM: &str = "\
trap ': > \"$CELL_DIR/termed\"' TERM
exec 3<&0
\"$CLI\" \"$@\" <&3 3<&- &
wait
while :; do sleep $T; done";

/// The promised time limit.
const SECONDS: u64 = 2;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("host_killed_starting", "while the CLI starts", |cell| {
            cell.works().then([Step::Await(Moment::Running), Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_streaming", "while the CLI answers", |cell| {
            cell.streams().then([Step::Await(Moment::Streaming), Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_in_tool", "while a tool runs", |cell| {
            cell.works().then([Step::Await(Moment::Tool), Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_after_result", "after the result, before the CLI's exit", |cell| {
            stays(cell).asking(|request| request.limits.after_result = LONG).then([Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_ending", "while the CLI is terminated and ignores SIGTERM", |cell| {
            cell.works().launched_by(REPORTS_TERM).asking(|request| request.limits.grace = LONG).then([
                Step::Await(Moment::Tool),
                Step::Command("abort"),
                Step::Await(Moment::File("termed")),
                Step::KillHost,
            ])
        })
        .everywhere(unread(SECONDS)),
    ]
}
