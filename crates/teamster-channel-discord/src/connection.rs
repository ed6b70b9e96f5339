//! The connection to the gateway: it receives events and passes them on in order, with the session to resume after each.
//!
//! The connection never waits for the inbox, except when the queue between them is full: then it is not read, the service ends it,
//! and the session is resumed after the last event that was read.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use teamster_channel::ChannelError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::{CloseFrame, ConfigBuilder, Intents, Message as Frame, Shard, ShardId, ShardState};

use crate::acknowledge::Acknowledging;
use crate::config::{DiscordConfig, Servers};
use crate::identify::Identifies;
use crate::service::{DiscordChannel, channel_error, no_content_intent, rejected};
use crate::state::Session;
use crate::types::{Channel, Deleted, DeletedBulk, GuildChannels, Interaction, Message};

/// The time without any sign of the gateway after which the connection counts as dead. Its heartbeats are more frequent.
const SILENCE: Duration = Duration::from_mins(2);

/// The number of connections in a row that end before a session, after which the session is given up.
const MAX_FAILURES: u32 = 3;

/// The delay after the first failure. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_mins(1);

/// The longest wait for starts that the service permits, until it is asked again.
const MAX_START_WAIT: Duration = Duration::from_mins(10);

/// The time for sending the end of a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What is received.
pub(crate) enum Event {
    Message(Box<Message>),
    Edited(Box<Message>),
    Deleted(Vec<String>),
    Interaction(Box<Interaction>, Acknowledging),
    /// A new session has started: messages may have been missed.
    Started,
    /// Only the session has changed.
    Nothing,
}

/// An event, and the session after it.
pub(crate) struct Item {
    pub(crate) event: Event,
    pub(crate) session: Option<Session>,
}

/// The connection.
pub(crate) struct Connection<'a> {
    channel: &'a DiscordChannel,
    stop: CancellationToken,
    items: mpsc::Sender<Item>,
    identifies: Identifies,
    session: Option<Session>,
    intents: Intents,
    failures: u32,
}

/// How the use of a shard ends.
enum End {
    Stopped,
    /// Connect again, and resume.
    Again,
    /// Connect again, with a new session.
    Anew,
    Fatal(ChannelError),
}

/// A message of the gateway.
#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(default)]
    t: Option<String>,
    #[serde(borrow, default)]
    d: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ready {
    resume_gateway_url: String,
}

impl<'a> Connection<'a> {
    /// Describes a connection that resumes `session`. A resume keeps the intents of the session, so a session with other intents
    /// than the configured ones is replaced.
    pub(crate) fn new(
        channel: &'a DiscordChannel,
        stop: CancellationToken,
        session: Option<Session>,
        items: mpsc::Sender<Item>,
    ) -> Self {
        let identifies = Identifies::new(channel.config().identify_interval);
        let intents = intents(channel.config());
        let session = session.filter(|session| session.intents == intents.bits());
        Self { channel, stop, items, identifies, session, intents, failures: 0 }
    }

    /// Connects until `stop` is cancelled.
    pub(crate) async fn run(mut self) -> Result<(), ChannelError> {
        loop {
            let Some(mut shard) = self.shard().await? else { return Ok(()) };
            let end = self.drive(&mut shard).await;
            self.session = self.session_of(&shard);
            match end {
                End::Stopped => return Ok(()),
                End::Fatal(error) => return Err(error),
                End::Again => {}
                End::Anew => self.session = None,
            }
            let delay = self.next_delay();
            tracing::warn!(?delay, "the connection to Discord's gateway is made again");
            self.wait(delay).await;
        }
    }

    /// Returns a shard that is not connected. `None`: the gateway stops.
    async fn shard(&mut self) -> Result<Option<Shard<Identifies>>, ChannelError> {
        let config = self.channel.config();
        let url = match &config.gateway_url {
            Some(url) => url.clone(),
            None => match self.gateway_url().await? {
                Some(url) => url,
                None => return Ok(None),
            },
        };
        let mut builder = ConfigBuilder::new(config.token.expose().to_owned(), self.intents).proxy_url(url);
        if let Some(session) = &self.session {
            builder = builder.session(twilight_gateway::Session::new(session.sequence, session.id.clone()));
            if config.check_gateway_url(&session.url).is_ok() {
                builder = builder.resume_url(session.url.clone());
            }
        }
        let config = builder.queue(self.identifies.clone()).build();
        Ok(Some(Shard::with_config(ShardId::ONE, config)))
    }

    /// Asks for the URL of the gateway, until there is an answer and a start is permitted. `None`: the gateway stops.
    async fn gateway_url(&mut self) -> Result<Option<String>, ChannelError> {
        loop {
            let info = tokio::select! {
                () = self.stop.cancelled() => return Ok(None),
                info = self.channel.gateway() => info,
            };
            let delay = match info {
                Ok(info) if info.session_start_limit.remaining == 0 && self.session.is_none() => {
                    let reset = Duration::from_millis(info.session_start_limit.reset_after);
                    tracing::error!(?reset, "the Discord bot has used all its starts of a day; it waits");
                    reset.clamp(FIRST_DELAY, MAX_START_WAIT)
                }
                Ok(info) => match self.channel.config().check_gateway_url(&info.url) {
                    Ok(()) => return Ok(Some(info.url)),
                    Err(error) => {
                        tracing::error!(%error, "the gateway that Discord names is not used");
                        self.next_delay()
                    }
                },
                Err(error) if error.status() == Some(401) => return Err(channel_error(&error)),
                Err(error) => {
                    let delay = self.next_delay();
                    tracing::warn!(%error, ?delay, "Discord does not name its gateway; it is asked again");
                    delay
                }
            };
            self.wait(delay).await;
        }
    }

    /// Receives from a shard until it cannot be used any longer.
    async fn drive(&mut self, shard: &mut Shard<Identifies>) -> End {
        let (mut closes, mut refused) = (0, 0);
        let mut code = None;
        while closes < MAX_FAILURES && refused < MAX_FAILURES {
            let received = tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    self.leave(shard).await;
                    return End::Stopped;
                }
                received = tokio::time::timeout(SILENCE, next(shard)) => received,
            };
            match received {
                Err(_) => {
                    tracing::warn!("Discord's gateway is silent");
                    return End::Again;
                }
                Ok(None) => return End::Fatal(fatal(code)),
                Ok(Some(Err(error))) if matches!(error.kind(), ReceiveMessageErrorType::Reconnect) => {
                    tracing::warn!(%error, "Discord's gateway cannot be reached");
                    refused += 1;
                }
                // The error has the whole event, which is not for a log.
                Ok(Some(Err(_))) => tracing::error!("an event of Discord's gateway cannot be read"),
                Ok(Some(Ok(Frame::Close(frame)))) => {
                    code = frame.as_ref().map(|frame| frame.code);
                    tracing::info!(?code, "Discord's gateway has closed the connection");
                    closes += 1;
                }
                Ok(Some(Ok(Frame::Text(text)))) => match self.dispatch(self.session_of(shard), &text).await {
                    Ok(Progress::Started) => {
                        (closes, refused, self.failures) = (0, 0, 0);
                    }
                    Ok(Progress::None) => {}
                    Err(end) => return end,
                },
            }
        }
        // A session that is refused again and again is given up. If there is no connection at all, it is not to blame.
        if refused < MAX_FAILURES { End::Anew } else { End::Again }
    }

    /// Passes an event on.
    async fn dispatch(&self, session: Option<Session>, text: &str) -> Result<Progress, End> {
        let Ok(Payload { t: Some(name), d: Some(data) }) = serde_json::from_str::<Payload<'_>>(text) else {
            return Ok(Progress::None);
        };
        let data = data.get();
        let event = match name.as_str() {
            "READY" => {
                let url = read::<Ready>(&name, data).unwrap_or_default().resume_gateway_url;
                if let Err(error) = self.channel.config().check_gateway_url(&url) {
                    tracing::error!(%error, "Discord names no usable gateway to resume at");
                    return Err(End::Anew);
                }
                Some(Event::Started)
            }
            "RESUMED" => Some(Event::Nothing),
            "MESSAGE_CREATE" => read(&name, data).map(Event::Message),
            "MESSAGE_DELETE" => read::<Deleted>(&name, data).map(|message| Event::Deleted(vec![message.id])),
            "MESSAGE_DELETE_BULK" => read::<DeletedBulk>(&name, data).map(|messages| Event::Deleted(messages.ids)),
            "MESSAGE_UPDATE" => read(&name, data).map(Event::Edited),
            "INTERACTION_CREATE" => read::<Box<Interaction>>(&name, data).map(|interaction| {
                let acknowledging = Acknowledging::start(self.channel.api(), &interaction);
                Event::Interaction(interaction, acknowledging)
            }),
            "GUILD_CREATE" => {
                let GuildChannels { channels, threads } = read(&name, data).unwrap_or_default();
                self.channel.remember(channels.into_iter().chain(threads));
                None
            }
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                self.channel.remember(read::<Channel>(&name, data));
                None
            }
            _ => None,
        };
        let is_started = matches!(name.as_str(), "READY" | "RESUMED");
        if let Some(event) = event {
            let item = Item { event, session };
            tokio::select! {
                // The session is resumed before this event, so its sequence must not be stored as that of the end.
                () = self.stop.cancelled() => return Err(End::Stopped),
                _ = self.items.send(item) => {}
            }
        }
        Ok(if is_started { Progress::Started } else { Progress::None })
    }

    /// Closes the connection so that the session can be resumed by the next start.
    async fn leave(&self, shard: &mut Shard<Identifies>) {
        // The session is that before the close: what arrives now is received again.
        _ = self.items.try_send(Item { event: Event::Nothing, session: self.session_of(shard) });
        shard.close(CloseFrame::RESUME);
        // The shard would connect again after the answer, so it is not awaited.
        let closing = std::future::poll_fn(|context| {
            let polled = Pin::new(&mut *shard).poll_next(context);
            let is_sent = matches!(shard.state(), ShardState::Disconnected { .. });
            match polled {
                _ if is_sent => Poll::Ready(()),
                Poll::Ready(Some(Ok(_))) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            }
        });
        _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    }

    fn session_of(&self, shard: &Shard<Identifies>) -> Option<Session> {
        let session = shard.session()?;
        let url = shard.resume_url().unwrap_or_default().to_owned();
        Some(Session { id: session.id().to_owned(), sequence: session.sequence(), url, intents: self.intents.bits() })
    }

    fn next_delay(&mut self) -> Duration {
        let delay = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(MAX_DELAY);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    async fn wait(&self, delay: Duration) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// Whether an event has started a session.
enum Progress {
    Started,
    None,
}

async fn next(shard: &mut Shard<Identifies>) -> Option<Result<Frame, twilight_gateway::error::ReceiveMessageError>> {
    std::future::poll_fn(|context| Pin::new(&mut *shard).poll_next(context)).await
}

/// Returns the events that the configuration needs.
fn intents(config: &DiscordConfig) -> Intents {
    let mut intents = Intents::GUILDS | Intents::DIRECT_MESSAGES;
    if config.servers != Servers::Off {
        intents |= Intents::GUILD_MESSAGES;
    }
    if config.wants_content() {
        intents |= Intents::MESSAGE_CONTENT;
    }
    intents
}

/// Reads an event. One that has not the documented form is skipped, since it would block all that follow.
fn read<T: DeserializeOwned>(name: &str, data: &str) -> Option<T> {
    match serde_json::from_str(data) {
        Ok(event) => Some(event),
        Err(error) => {
            // The text of the error quotes the event, which is not for a log.
            let kind = error.classify();
            tracing::error!(name, ?kind, "an event of Discord cannot be read; it is skipped");
            None
        }
    }
}

/// Returns what a close means after which no connection helps,
/// <https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes>.
fn fatal(code: Option<u16>) -> ChannelError {
    match code {
        Some(4_004) => rejected("its gateway does not accept the token (close code 4004)"),
        Some(4_014) => ChannelError::Setting(no_content_intent()),
        Some(4_011) => ChannelError::Setting(
            "the Discord bot is in more servers than one connection may serve (close code 4011): remove it from some"
                .to_owned(),
        ),
        code => {
            let code = code.map_or_else(|| "no code".to_owned(), |code| format!("close code {code}"));
            ChannelError::Setting(format!("Discord's gateway refuses this bot for good ({code})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Token;

    #[tokio::test]
    async fn a_stop_while_the_queue_is_full_ends_before_the_event() {
        let channel = DiscordChannel::new(DiscordConfig::new(Token::new("a.b.c").unwrap())).unwrap();
        let (items, _queue) = mpsc::channel(1);
        items.try_send(Item { event: Event::Nothing, session: None }).ok().unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let connection = Connection::new(&channel, stop, None, items);
        let event = r#"{"t": "MESSAGE_CREATE", "d": {"id": "1"}}"#;
        assert!(matches!(connection.dispatch(None, event).await, Err(End::Stopped)));
    }
}
