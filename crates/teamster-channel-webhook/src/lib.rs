//! The webhook channel: programs send messages to agents and get the answers, as signed JSON in both directions.
//!
//! Requests are signed as <https://www.standardwebhooks.com> defines it ([`teamster_channel::signature`]). A request to the
//! gateway is accepted once by its `webhook-id`; a request of the gateway has the same `webhook-id` in each attempt, so that its
//! receiver can recognize repeats.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`WebhookConfig`] |
//! | `channel` | [`WebhookChannel`], the implementation of [`Channel`](teamster_channel::Channel) |
//! | `inbound` | the JSON that programs send |
//! | `outbound` | the JSON that programs get, and the meaning of their status codes |
//! | `address` | the addresses to which requests may be sent |
//! | `recent` | ids of commands and edits, so that a replay has no effect |
//! | `router` | the HTTP endpoint |

mod address;
mod channel;
mod config;
mod inbound;
mod outbound;
mod recent;
mod router;

pub use channel::WebhookChannel;
pub use config::{ConfigError, SecretText, WebhookConfig};
pub use router::router;
