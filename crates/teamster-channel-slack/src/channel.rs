//! The implementation of the channel.

use std::time::Duration;

use async_trait::async_trait;
use teamster_channel::{Capabilities, Channel, ChannelError, Inbox, Outgoing, SendOutcome, TextLimit, TextUnit};
use tokio_util::sync::CancellationToken;

use crate::receive::receive;
use crate::send::MAX_TEXT;
use crate::service::SlackChannel;

/// The name of the channel.
const NAME: &str = "slack";

#[async_trait]
impl Channel for SlackChannel {
    fn name(&self) -> &str {
        NAME
    }

    /// The rates are those of <https://docs.slack.dev/apis/web-api/rate-limits>: a message per second in a chat, and at least 50
    /// edits per minute in all (tier 3). There is no typing indicator: that of Slack ends with a new message, not with an edit.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edits: true,
            threads: true,
            buttons: true,
            max_file_bytes: self.config().max_upload_bytes,
            text_limit: TextLimit { max: MAX_TEXT, unit: TextUnit::Chars },
            chat_interval: Duration::from_secs(1),
            channel_interval: Duration::from_millis(100),
            edit_interval: Duration::from_secs(3),
            send_timeout: Duration::from_mins(5),
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

    async fn find(&self, outgoing: &Outgoing) -> Option<SendOutcome> {
        self.find_part(outgoing).await
    }
}
