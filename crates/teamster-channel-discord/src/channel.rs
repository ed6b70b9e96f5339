//! The implementation of the channel.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use serde_json::Value;
use teamster_channel::{Address, Capabilities, Channel, ChannelError, Inbox, Outgoing, SendOutcome};
use tokio_util::sync::CancellationToken;

use crate::api::{Body, Call};
use crate::receive::receive;
use crate::send::target;
use crate::service::DiscordChannel;
use crate::text::LIMIT;

/// The name of the channel.
const NAME: &str = "discord";

#[async_trait]
impl Channel for DiscordChannel {
    fn name(&self) -> &str {
        NAME
    }

    /// Rates and limits are those of <https://discord.com/developers/docs/topics/rate-limits>: 50 calls per second in all, and
    /// about 5 messages in 5 seconds for a channel. A nonce is recognized for "a few minutes". Messages older than an hour can be
    /// edited at a low rate only.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edits: true,
            threads: true,
            buttons: true,
            max_file_bytes: self.config().max_upload_bytes,
            text_limit: LIMIT,
            recognizes_repeats_for: Some(Duration::from_mins(2)),
            chat_interval: Duration::from_millis(500),
            channel_interval: Duration::from_millis(25),
            edit_interval: Duration::from_millis(1_500),
            edit_window: Some(Duration::from_mins(55)),
            typing_lasts: Some(Duration::from_secs(10)),
            send_timeout: Duration::from_mins(1),
            ..Capabilities::default()
        }
    }

    async fn check(&self) -> Result<(), ChannelError> {
        self.check_service().await
    }

    async fn receive(&self, inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        receive(self, inbox, stop).await
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        self.send_part(outgoing).await
    }

    async fn typing(&self, address: &Address) {
        let Some(channel) = target(address) else { return };
        let call = Call::new(Method::POST, "typing", channel, vec!["channels", channel, "typing"]);
        // A failure has no consequence.
        _ = self.api().call::<Value>(&call, Body::None).await;
    }
}
