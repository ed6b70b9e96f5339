//! The inbox of channels, and the delivery of what they show.
//!
//! | module | contents |
//! |---|---|
//! | `deliveries` | builds the deliveries of a turn, for the engine |
//! | `body`, `token`, `wording` | the stored document, the tokens of buttons, the texts |
//! | `closing` | shows how a permission request was closed |
//! | `delivery` | claims deliveries and sends those of different chats at the same time |
//! | `attempt`, `send`, `ending`, `context` | one attempt, its parts, its end, and what they share |
//! | `live`, `live_text` | the display of an unfinished answer |
//! | `receive`, `inbox`, `order`, `commands` | what channels receive, through the access rules to the engine |
//! | `tasks` | the tasks of all channels |
//! | `services`, `discord`, `slack`, `telegram`, `secret` | the channels of chat services, and their tokens |
//! | `check`, `status` | whether a channel can be used, for the operator |
//! | `decision`, `parts` | the next step after an attempt, and the parts of a content, as pure functions |

mod absent;
mod attempt;
mod body;
mod check;
mod closing;
mod commands;
mod context;
mod decision;
pub mod deliveries;
mod delivery;
#[cfg(feature = "discord")]
mod discord;
mod ending;
mod failpoint;
mod inbox;
mod live;
mod live_text;
mod order;
mod pages;
mod parts;
mod receive;
#[cfg(any(feature = "discord", feature = "slack", feature = "telegram"))]
mod secret;
mod send;
pub(crate) mod services;
mod settings;
#[cfg(feature = "slack")]
mod slack;
pub(crate) mod status;
mod tasks;
#[cfg(feature = "telegram")]
mod telegram;
#[cfg(test)]
mod tests;
mod token;
mod wording;

use std::sync::Arc;

pub use check::{CheckError, check};
pub(crate) use live::LiveAnswer;
pub use services::services;
pub use settings::{BotSettings, ChannelSettings, DeliverySettings, UnknownOutcome};
pub use status::ChannelStatus;
pub use tasks::{ChannelTasks, start};
pub use teamster_channel_webhook::{ConfigError, SecretText, WebhookChannel, WebhookConfig, router};

/// Creates the webhook channels of a configuration. Give them to [`Parts::channels`](crate::Parts::channels), and their
/// [`router`] to the HTTP server.
///
/// # Errors
/// A webhook is invalid, or two have the same name.
pub fn webhooks(configs: &[WebhookConfig]) -> Result<Vec<Arc<WebhookChannel>>, ConfigError> {
    let mut channels: Vec<Arc<WebhookChannel>> = Vec::with_capacity(configs.len());
    for config in configs {
        if channels.iter().any(|channel| channel.config().name == config.name) {
            return Err(ConfigError::Repeated(config.name.clone()));
        }
        channels.push(Arc::new(WebhookChannel::new(config.clone())?));
    }
    Ok(channels)
}
