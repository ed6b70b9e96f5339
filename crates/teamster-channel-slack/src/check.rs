//! What is verified with the service before messages are received. Nothing is sent to a chat.

use std::borrow::Cow;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::timeout;
use tokio_websockets::Message;

use crate::api::CALL_TIMEOUT;
use crate::config::Channels;
use crate::envelope::{Frame, Hello, read};
use crate::error::{CallError, SERVICE, TokenName, channel_error};
use crate::handshake::Stream;
use crate::service::SlackChannel;
use crate::types::{Bot, BotInfo};
use teamster_channel::ChannelError;

/// How long the first message of a connection may take.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// What it means that the service refuses connections.
pub(crate) const SOCKET_MODE_OFF: &str = "Socket Mode is off, so the Slack app gets no messages: turn it on in the settings of \
                                          the app under \"Socket Mode\"";

impl SlackChannel {
    /// Checks both tokens, the scopes, and that the service opens a connection.
    pub(crate) async fn check_service(&self) -> Result<(), ChannelError> {
        let answered = self.bot().await.map_err(|error| channel_error(&error, TokenName::Bot))?;
        if let Some(scopes) = &answered.scopes {
            self.check_scopes(scopes)?;
        }
        let mut stream = self.api().open_socket().await.map_err(|error| socket_error(&error))?;
        let hello = timeout(HELLO_TIMEOUT, hello(&mut stream)).await.unwrap_or_else(|_| Err(silent()));
        _ = timeout(HELLO_TIMEOUT, futures_util::SinkExt::send(&mut stream, Message::close(None, ""))).await;
        self.check_app(&answered.result, &hello?).await
    }

    /// Returns the scopes that the settings need.
    fn needed_scopes(&self) -> Vec<&'static str> {
        let config = self.config();
        let mut needed = vec!["chat:write", "commands", "im:history", "users:read"];
        if config.channels != Channels::Off {
            needed.extend(["app_mentions:read", "channels:history", "groups:history", "mpim:history"]);
        }
        if config.max_download_bytes > 0 {
            needed.push("files:read");
        }
        if config.max_upload_bytes > 0 {
            needed.push("files:write");
        }
        needed
    }

    fn check_scopes(&self, scopes: &str) -> Result<(), ChannelError> {
        let has = |scope: &str| scopes.split(',').any(|granted| granted.trim() == scope);
        let missing: Vec<_> = self.needed_scopes().into_iter().filter(|scope| !has(scope)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(ChannelError::Setting(TokenName::Bot.without_scope(&missing.join(", "))))
    }

    /// Checks that both tokens belong to the same app. If the service does not state it, nothing is wrong.
    async fn check_app(&self, bot: &Bot, hello: &Hello) -> Result<(), ChannelError> {
        let app = &hello.connection_info.app_id;
        let parameters = vec![("bot", Cow::Borrowed(bot.bot_id.as_str()))];
        let Ok(info) = self.api().call::<BotInfo>("bots.info", &parameters, CALL_TIMEOUT).await else { return Ok(()) };
        let other = info.bot.app_id;
        if app.is_empty() || other.is_empty() || *app == other {
            return Ok(());
        }
        Err(ChannelError::Setting(format!(
            "the tokens belong to two Slack apps: the bot is of {other}, the app-level token is of {app}. Take both from the \
             settings of one app"
        )))
    }
}

/// Returns what a failed connection means for the whole channel.
pub(crate) fn socket_error(error: &CallError) -> ChannelError {
    match error.refusal() {
        Some("socket_mode_not_enabled" | "link_disabled") => ChannelError::Setting(SOCKET_MODE_OFF.to_owned()),
        _ => channel_error(error, TokenName::App),
    }
}

fn silent() -> ChannelError {
    ChannelError::Unreachable { service: SERVICE, reason: "a connection of Socket Mode gets no greeting".to_owned() }
}

/// Waits for the first message of a connection.
async fn hello(stream: &mut Stream) -> Result<Hello, ChannelError> {
    while let Some(Ok(message)) = stream.next().await {
        match message.as_text().map(read) {
            Some(Frame::Hello(hello)) => return Ok(hello),
            Some(Frame::Disconnect { reason }) if reason == "link_disabled" => {
                return Err(ChannelError::Setting(SOCKET_MODE_OFF.to_owned()));
            }
            _ => {}
        }
    }
    Err(silent())
}
