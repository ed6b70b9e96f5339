//! The times of the turns that run in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use teamster_store::{Claim, Timestamp, TurnId};

/// The times of the turns that this process has claimed. The worker removes a turn when its work on it ends.
#[derive(Debug, Default)]
pub(super) struct TurnTimes {
    turns: Mutex<HashMap<TurnId, Times>>,
}

#[derive(Debug)]
struct Times {
    agent: String,
    accepted_at: Timestamp,
    /// The start of the first attempt.
    started_at: Option<Timestamp>,
    /// Whether its first event was measured, or cannot be measured.
    has_event: bool,
}

/// What is known of a turn that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EndedTurn {
    pub(super) agent: String,
    /// From the start of its first attempt. `None` if there was no attempt.
    pub(super) duration: Option<Duration>,
}

impl TurnTimes {
    pub(super) fn claimed(&self, claim: &Claim) {
        let times = Times {
            agent: claim.conversation.agent.clone(),
            accepted_at: claim.turn.message.accepted_at,
            started_at: claim.turn.started_at,
            // The wait for a retry is not part of the time to the first event.
            has_event: claim.turn.attempts > 0,
        };
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).insert(claim.turn.id, times);
    }

    pub(super) fn started(&self, turn: TurnId, now: Timestamp) {
        if let Some(times) = self.turns.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&turn) {
            times.started_at.get_or_insert(now);
        }
    }

    /// Returns the time from the acceptance of the message to the first event of the agent, once for each turn.
    pub(super) fn first_event(&self, turn: TurnId, now: Timestamp) -> Option<Duration> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let times = turns.get_mut(&turn)?;
        let is_first = times.started_at.is_some() && !std::mem::replace(&mut times.has_event, true);
        is_first.then(|| between(times.accepted_at, now))
    }

    pub(super) fn ended(&self, turn: TurnId, now: Timestamp) -> Option<EndedTurn> {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let times = turns.get(&turn)?;
        let duration = times.started_at.map(|started_at| between(started_at, now));
        Some(EndedTurn { agent: times.agent.clone(), duration })
    }

    pub(super) fn left(&self, turn: TurnId) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&turn);
    }

    pub(super) fn len(&self) -> usize {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The clock may be set back: then the time is zero.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    let millis = to.as_millis().saturating_sub(from.as_millis());
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
