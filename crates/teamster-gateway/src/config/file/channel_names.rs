//! The names of channels that a rule may have.

use super::reader::suggestion;
use crate::config::Config;
use crate::config::rules::API;

/// The channel of messages that a schedule sends.
const SCHEDULE: &str = "schedule";

/// The chat services that the gateway knows. A rule for one of them may exist before the service is configured.
const SERVICES: [&str; 3] = ["discord", "slack", "telegram"];

/// The names of the channels of a configuration.
#[derive(Debug)]
pub(super) struct ChannelNames(Vec<String>);

impl ChannelNames {
    /// Returns the names: those of the gateway itself, of the chat services, and of each webhook.
    pub(super) fn of(config: &Config) -> Self {
        let own = [API, SCHEDULE].into_iter().chain(SERVICES).map(str::to_owned);
        Self(own.chain(config.webhooks.iter().map(|webhook| webhook_channel(&webhook.name))).collect())
    }

    /// Returns what is wrong with the name of a channel.
    pub(super) fn problem(&self, name: &str) -> Option<String> {
        let Self(known) = self;
        let is_known = |name: &str| known.iter().any(|known| known == name);
        if is_known(name) {
            return None;
        }
        let webhook = webhook_channel(name);
        let nearest = if is_known(&webhook) {
            format!("; did you mean {webhook:?}?")
        } else {
            suggestion(name, known.iter().map(String::as_str))
        };
        Some(format!("unknown channel {name:?}{nearest}; known are: {}", known.join(", ")))
    }
}

fn webhook_channel(name: &str) -> String {
    format!("webhook-{name}")
}
