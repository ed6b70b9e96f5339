//! The inbox of channels, and the delivery of what they show.
//!
//! | module | contents |
//! |---|---|
//! | `deliveries` | builds the deliveries of a turn, for the engine |
//! | `body`, `token`, `wording` | the stored document, the tokens of buttons, the texts |
//! | `delivery` | claims deliveries and sends those of different chats at the same time |
//! | `attempt`, `send`, `ending` | one attempt, its parts, and its end |
//! | `decision`, `parts` | what happens next, and the parts of a content, as pure functions |

mod attempt;
mod body;
mod decision;
pub mod deliveries;
mod delivery;
mod ending;
mod failpoint;
mod pages;
mod parts;
mod send;
mod settings;
mod token;
mod wording;

pub use settings::{BotSettings, ChannelSettings, DeliverySettings, UnknownOutcome};

/// A webhook channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {}
