//! The keeper of a run, which is the parent of its CLI, and the supervisor, which is the parent of keepers, are stopped
//! (SIGSTOP) or killed while a tool runs.

use rustix::process::Signal;

use crate::cell_env::CellEnv;
use crate::fault::{Fault, Helper, Moment, Step};
use crate::row::{Row, error, unread};

use super::SHORT;

/// The text of the empty cells.
const ALIKE: &str = "same";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("keeper_stopped", "the keeper is stopped, then the caller aborts", |cell| {
            during_a_tool(cell, [stop(Helper::Keeper), Step::Command("abort")])
        })
        .fake(error("ABORTED", 5))
        .on("claude", error("ABORTED", 5))
        .elsewhere(ALIKE),
        Row::new("keeper_stopped_deadline", "the keeper is stopped before the run's deadline of 2 s", |cell| {
            during_a_tool(cell, [stop(Helper::Keeper)])
                .asking(|request| (request.limits.deadline, request.limits.grace) = (SHORT * 7, SHORT))
        })
        .fake(error("DEADLINE_EXCEEDED", 8))
        .elsewhere(ALIKE),
        Row::new("helpers_stopped", "the keeper and the supervisor are stopped, then the caller aborts", |cell| {
            during_a_tool(cell, [stop(Helper::Supervisor), stop(Helper::Keeper), Step::Command("abort")])
        })
        .fake(error("ABORTED", 5))
        .on("claude", error("ABORTED", 5))
        .elsewhere(ALIKE),
        Row::new("keeper_stopped_host_killed", "the keeper is stopped, then the host is killed", |cell| {
            during_a_tool(cell, [stop(Helper::Keeper), Step::KillHost])
        })
        .fake(unread(3))
        .on("claude", unread(3))
        .elsewhere(ALIKE),
        Row::new(
            "helpers_stopped_host_killed",
            "the keeper and the supervisor are stopped, then the host is killed",
            |cell| during_a_tool(cell, [stop(Helper::Supervisor), stop(Helper::Keeper), Step::KillHost]),
        )
        .fake(unread(3))
        .on("claude", unread(3))
        .elsewhere(ALIKE),
        Row::new(
            "helpers_killed",
            "the keeper and the supervisor are killed at the same moment, and the host lives",
            |cell| {
                // Stopped first, so that neither can react to the other's death.
                let kill = |helper| Step::Helper(helper, Signal::KILL);
                during_a_tool(cell, [stop(Helper::Supervisor), kill(Helper::Keeper), kill(Helper::Supervisor)])
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

fn during_a_tool<const COUNT: usize>(cell: &CellEnv, steps: [Step; COUNT]) -> Fault {
    cell.works().then([Step::Await(Moment::Tool)]).then(steps)
}
