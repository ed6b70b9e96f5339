//! The inbox of channels, and the delivery of what they show.

/// A webhook channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {}
