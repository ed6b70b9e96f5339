//! The server interface of OpenCode: recorded turns, and cases that no recording has.

mod harness;
mod random_inputs;
mod steering;
mod turns;

use std::collections::BTreeMap;

use teamster_agents::agent::FailureRow;

use harness::{Harness, RecordedTurn, TURNS};

/// The line with which the server reports its address.
const ADDRESS_LINE: &[u8] = b"opencode server listening on http://127.0.0.1:4096";

/// Returns the row of the failure table that classifies each recorded turn.
pub(crate) fn failure_rows() -> BTreeMap<String, Option<&'static FailureRow>> {
    let row = |turn: &RecordedTurn| {
        let mut harness = Harness::session(turn);
        harness.send("recorded");
        harness.replay(&turn.inputs);
        (format!("serve_{}", turn.name), harness.outcomes.last().and_then(|outcome| outcome.classified_by))
    };
    TURNS.iter().map(row).collect()
}
