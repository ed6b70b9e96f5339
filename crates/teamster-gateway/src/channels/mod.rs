//! The inbox of channels, and the delivery of what they show.
//!
//! | module | contents |
//! |---|---|
//! | `deliveries` | builds the deliveries of a turn, for the engine |
//! | `body`, `token`, `wording` | the stored document, the tokens of buttons, the texts |
//! | `delivery` | claims deliveries and sends those of different chats at the same time |
//! | `attempt`, `send`, `ending` | one attempt, its parts, and its end |
//! | `receive`, `inbox`, `commands` | what channels receive, through the access rules to the engine |
//! | `tasks` | the tasks of all channels |
//! | `decision`, `parts` | what happens next, and the parts of a content, as pure functions |

mod attempt;
mod body;
mod commands;
mod decision;
pub mod deliveries;
mod delivery;
mod ending;
mod failpoint;
mod inbox;
mod pages;
mod parts;
mod receive;
mod send;
mod settings;
mod tasks;
#[cfg(test)]
mod tests;
mod token;
mod wording;

pub use receive::ChannelStatus;
pub use settings::{BotSettings, ChannelSettings, DeliverySettings, UnknownOutcome};
pub use tasks::{ChannelTasks, start};

/// A webhook channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {}
