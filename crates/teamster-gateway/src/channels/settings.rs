//! Settings of all channels.

use std::time::Duration;

/// Settings of all channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSettings {
    /// How deliveries are sent.
    pub delivery: DeliverySettings,
    /// What happens to messages of programs.
    pub bots: BotSettings,
}

/// How deliveries are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliverySettings {
    /// The number of deliveries of a channel that are sent at the same time. Those of one chat are sent one by one.
    pub concurrency: usize,
    /// The number of attempts after which a delivery is given up, unless its channel has another limit.
    pub max_attempts: u32,
    /// The delay after the first failed attempt. It doubles with each further one.
    pub first_delay: Duration,
    /// The longest delay, unless the service requires a longer one.
    pub max_delay: Duration,
    /// What the gateway does with a part whose outcome is unknown.
    pub unknown: UnknownOutcome,
    /// How long a delivery belongs to this process without a renewal.
    pub lease: Duration,
    /// How often the queue is checked without a notification.
    pub poll_interval: Duration,
    /// How long a shutdown waits for the calls in progress.
    pub shutdown_timeout: Duration,
}

/// What the gateway does with a part whose outcome is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownOutcome {
    /// It is sent again, marked as a possible repeat.
    #[default]
    Repeat,
    /// It is not sent again. The chat and the operator are informed.
    Report,
}

/// What happens to messages of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BotSettings {
    /// Whether they are accepted. Messages without an authenticated person can start loops.
    pub accept: bool,
    /// The number of messages of programs that are accepted in a chat after the last message of a person.
    pub max_in_a_row: u32,
}

impl Default for DeliverySettings {
    fn default() -> Self {
        Self {
            concurrency: 16,
            max_attempts: 20,
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_mins(5),
            unknown: UnknownOutcome::Repeat,
            lease: Duration::from_secs(30),
            poll_interval: Duration::from_secs(1),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for BotSettings {
    fn default() -> Self {
        Self { accept: false, max_in_a_row: 10 }
    }
}
