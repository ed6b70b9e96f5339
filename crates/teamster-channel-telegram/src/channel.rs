//! The implementation of the channel.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use teamster_channel::{
    Address, Capabilities, Channel, ChannelError, Inbox, Outgoing, SendOutcome, TextLimit, TextUnit,
};
use tokio_util::sync::CancellationToken;

use crate::api::CALL_TIMEOUT;
use crate::receive::receive;
use crate::send::Target;
use crate::service::TelegramChannel;
use crate::text::MAX_TEXT;

/// The name of the channel.
const NAME: &str = "telegram";

#[derive(Serialize)]
struct Typing {
    #[serde(flatten)]
    target: Target,
    action: &'static str,
}

#[async_trait]
impl Channel for TelegramChannel {
    fn name(&self) -> &str {
        NAME
    }

    /// The rates are those of <https://core.telegram.org/bots/faq>: a message per second in a chat, 20 per minute in a group, 30
    /// per second in all.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edits: true,
            threads: true,
            buttons: true,
            max_file_bytes: self.config().max_upload_bytes,
            text_limit: TextLimit { max: MAX_TEXT, unit: TextUnit::Utf16 },
            chat_interval: Duration::from_secs(1),
            channel_interval: Duration::from_millis(34),
            edit_interval: Duration::from_secs(3),
            typing_lasts: Some(Duration::from_secs(5)),
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
        let Some(target) = self.target(address) else { return };
        // A failure has no consequence.
        _ = self.api().call::<Value>("sendChatAction", &Typing { target, action: "typing" }, CALL_TIMEOUT).await;
    }
}
