//! The inbox of channels, and the delivery of what they show.
//!
//! | module | contents |
//! |---|---|
//! | `deliveries` | builds the deliveries of a turn, for the engine |

mod body;
pub mod deliveries;
mod token;
mod wording;

/// A webhook channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {}
