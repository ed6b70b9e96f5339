//! The host program is killed, in each phase of a run.

use crate::fault::{Moment, Step};
use crate::row::{Row, unread};

use super::LONG;
use super::end::stays;

/// The shell outlives SIGTERM and says that it came. (A command in the background has no standard input of its own accord.)
const SAYS_TERM: &str = "\
trap ': > \"$PLACE/termed\"' TERM
exec 3<&0
\"$CLI\" \"$@\" <&3 3<&- &
wait
while :; do sleep $T; done";

/// What the issue promises.
const SECONDS: u64 = 2;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("host_killed_starting", "while the CLI starts", |place| {
            place.works().then([Step::Await(Moment::Running), Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_streaming", "while the CLI answers", |place| {
            place.streams().then([Step::Await(Moment::Streaming), Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_in_tool", "while a tool runs", |place| {
            place.works().then([Step::Await(Moment::Tool), Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_after_result", "after the result, before the CLI's exit", |place| {
            stays(place).asking(|request| request.limits.after_result = LONG).then([Step::KillHost])
        })
        .everywhere(unread(SECONDS)),
        Row::new("host_killed_ending", "while the CLI is terminated and ignores SIGTERM", |place| {
            place.works().launched_by(SAYS_TERM).asking(|request| request.limits.grace = LONG).then([
                Step::Await(Moment::Tool),
                Step::Say("abort"),
                Step::Await(Moment::File("termed")),
                Step::KillHost,
            ])
        })
        .everywhere(unread(SECONDS)),
    ]
}
