//! The size of the tests.

use std::time::Duration;

/// How much is sent, and how often the gateway ends.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) messages: usize,
    pub(crate) conversations: usize,
    pub(crate) kills: u32,
    /// The process ends when it reaches a failpoint for the first time, in the next round for the second time, and so on.
    pub(crate) rounds: u32,
    /// Only this failpoint is used.
    pub(crate) point: Option<String>,
}

impl Plan {
    /// Returns the time in which all messages must have ended after the last kill.
    pub(crate) fn settle(&self) -> Duration {
        Duration::from_secs(60 + u64::try_from(self.messages).unwrap_or(u64::MAX) / 2)
    }

    /// Reads the variable `TEAMSTER_CHAOS`. The default is a size for CI.
    pub(crate) fn from_variable() -> Self {
        let mut plan = Self { messages: 80, conversations: 16, kills: 5, rounds: 1, point: None };
        let value = std::env::var("TEAMSTER_CHAOS").unwrap_or_default();
        for part in value.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').expect("NAME=VALUE");
            let number = || value.parse::<u32>().unwrap_or_else(|_| panic!("TEAMSTER_CHAOS: {value:?} is no number"));
            let count = || usize::try_from(number()).expect("a small number");
            match name {
                "messages" => plan.messages = count(),
                "conversations" => plan.conversations = count(),
                "kills" => plan.kills = number(),
                "rounds" => plan.rounds = number(),
                "point" => plan.point = Some(value.to_owned()),
                other => panic!("TEAMSTER_CHAOS: unknown name {other:?}"),
            }
        }
        plan
    }
}

/// Returns a random number below `bound`.
pub(crate) fn random(bound: u64) -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0_u8) % bound.max(1)
}

/// Returns `true` once in so many calls.
pub(crate) fn one_in(count: u64) -> bool {
    random(count) == 0
}

/// Returns a random index of a list.
pub(crate) fn random_index(length: usize) -> usize {
    usize::try_from(random(length as u64)).expect("an index")
}
