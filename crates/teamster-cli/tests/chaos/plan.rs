//! The size of the test.

/// How much is sent, and how often the gateway is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) messages: usize,
    pub(crate) conversations: usize,
    pub(crate) kills: u32,
}

impl Plan {
    /// Reads the variable `TEAMSTER_CHAOS`. The default is a size for CI.
    pub(crate) fn from_variable() -> Self {
        let mut plan = Self { messages: 120, conversations: 12, kills: 6 };
        let value = std::env::var("TEAMSTER_CHAOS").unwrap_or_default();
        for part in value.split(',').filter(|part| !part.is_empty()) {
            let (name, number) = part.split_once('=').expect("NAME=NUMBER");
            let number: usize = number.parse().expect("a number");
            match name {
                "messages" => plan.messages = number,
                "conversations" => plan.conversations = number,
                "kills" => plan.kills = u32::try_from(number).expect("a small number"),
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
