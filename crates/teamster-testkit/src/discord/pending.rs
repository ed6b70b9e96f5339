//! An interaction that the bot can answer, as data.

use std::time::Instant;

use serde_json::Value;

/// An interaction.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) token: String,
    pub(super) since: Instant,
    /// The message with the pressed button.
    pub(super) message: Option<u64>,
    pub(super) channel: u64,
    /// The kind of the first answer.
    pub(super) answered: Option<u64>,
    /// The form that the bot has opened.
    pub(super) form: Option<Value>,
    /// What the person sees of it, besides the message with the button.
    pub(super) shown: Vec<Value>,
}
