//! OpenCode by its own server: recorded turns once more, and what they do not show.

mod chance;
mod player;
mod steering;
mod turns;

use std::collections::BTreeMap;

use teamster_agents::agent::FailureRow;

use player::{Player, TURNS, Turn};

const LISTENS: &[u8] = b"opencode server listening on http://127.0.0.1:4096";

/// By which row of the table each recorded turn's failure is told.
pub(crate) fn told() -> BTreeMap<String, Option<&'static FailureRow>> {
    let row = |turn: &Turn| {
        let mut player = Player::session(turn);
        player.send("recorded");
        player.happened(&turn.happened);
        (format!("serve_{}", turn.name), player.outcomes.last().and_then(|outcome| outcome.classified_by))
    };
    TURNS.iter().map(row).collect()
}
