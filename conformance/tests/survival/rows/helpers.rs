//! The keeper of a run, which is the parent of its CLI, and the supervisor, which is the parent of keepers, are stopped
//! (SIGSTOP) or killed while a tool runs.

use rustix::process::Signal;

use crate::fault::{Fault, Helper, Moment, Step};
use crate::place::Place;
use crate::row::{Row, error, unread};

use super::SHORT;

/// Why the other CLIs have no cells.
const ALIKE: &str = "same";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("keeper_stopped", "the keeper is stopped, then the caller aborts", |place| {
            during_a_tool(place, [stop(Helper::Keeper), Step::Say("abort")])
        })
        .fake(error("ABORTED", 5))
        .on("claude", error("ABORTED", 5))
        .elsewhere(ALIKE),
        Row::new("keeper_stopped_deadline", "the keeper is stopped before the run's deadline of 2 s", |place| {
            during_a_tool(place, [stop(Helper::Keeper)])
                .asking(|request| (request.limits.deadline, request.limits.grace) = (SHORT * 7, SHORT))
        })
        .fake(error("DEADLINE_EXCEEDED", 8))
        .elsewhere(ALIKE),
        Row::new("helpers_stopped", "the keeper and the supervisor are stopped, then the caller aborts", |place| {
            during_a_tool(place, [stop(Helper::Supervisor), stop(Helper::Keeper), Step::Say("abort")])
        })
        .fake(error("ABORTED", 5))
        .on("claude", error("ABORTED", 5))
        .elsewhere(ALIKE),
        Row::new("keeper_stopped_host_killed", "the keeper is stopped, then the host is killed", |place| {
            during_a_tool(place, [stop(Helper::Keeper), Step::KillHost])
        })
        .fake(unread(3))
        .on("claude", unread(3))
        .elsewhere(ALIKE),
        Row::new(
            "helpers_stopped_host_killed",
            "the keeper and the supervisor are stopped, then the host is killed",
            |place| during_a_tool(place, [stop(Helper::Supervisor), stop(Helper::Keeper), Step::KillHost]),
        )
        .fake(unread(3))
        .on("claude", unread(3))
        .elsewhere(ALIKE),
        Row::new(
            "helpers_killed",
            "the keeper and the supervisor are killed at the same moment, and the host lives",
            |place| {
                // Stopped first, so that neither can do anything about the death of the other.
                let kill = |helper| Step::Helper(helper, Signal::KILL);
                during_a_tool(place, [stop(Helper::Supervisor), kill(Helper::Keeper), kill(Helper::Supervisor)])
            },
        )
        .fake(error("PROTOCOL", 8))
        .on("claude", error("PROTOCOL", 8))
        .elsewhere(ALIKE),
    ]
}

fn stop(helper: Helper) -> Step {
    Step::Helper(helper, Signal::STOP)
}

fn during_a_tool<const COUNT: usize>(place: &Place, steps: [Step; COUNT]) -> Fault {
    place.works().then([Step::Await(Moment::Tool)]).then(steps)
}
