//! The order of what is received: one event after the other, and each until the inbox has accepted it.
//!
//! The session is stored as of the last event that was handled. After a crash it is resumed from there, and the service sends the
//! later events again. What was accepted before is recognized by its id.

use std::time::Duration;

use teamster_channel::{ChannelError, Inbox, InboxError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::CallError;
use crate::connection::{Connection, Event, Item};
use crate::service::{DiscordChannel, channel_error};
use crate::state::State;
use crate::types::Channel;

/// The number of received events that wait.
const QUEUE: usize = 256;

/// The delay after the first failure. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The time after which a session is stored without an event that had an effect.
const STORE_AFTER: Duration = Duration::from_secs(10);

/// The receiving side.
pub(crate) struct Receiver<'a> {
    pub(crate) channel: &'a DiscordChannel,
    pub(crate) inbox: &'a dyn Inbox,
    /// The id of the bot.
    pub(crate) bot: String,
    /// The id of its application.
    pub(crate) application: String,
    pub(crate) state: State,
    /// Failures of a download, by the message.
    pub(crate) failed_download: Option<(String, u32)>,
    /// Cancelled when the gateway stops, or the connection ends with an error that no retry can change.
    pub(crate) stop: CancellationToken,
    failures: u32,
    /// When the state must be stored.
    store_at: Option<Instant>,
}

/// Receives until `stop` is cancelled, or the connection ends with an error that no retry can change.
pub(crate) async fn receive(
    channel: &DiscordChannel,
    inbox: &dyn Inbox,
    stop: CancellationToken,
) -> Result<(), ChannelError> {
    let stop = stop.child_token();
    let Some(mut receiver) = Receiver::start(channel, inbox, stop.clone()).await? else { return Ok(()) };
    let (items, queue) = mpsc::channel(QUEUE);
    let connection = Connection::new(channel, stop.clone(), receiver.state.session.clone(), items);
    let connection = async {
        let connected = connection.run().await;
        if connected.is_err() {
            // An event that is tried again and again, for example with a token that is not valid any longer, must not hide the error.
            stop.cancel();
        }
        connected
    };
    let (connected, ()) = tokio::join!(connection, receiver.run(queue));
    connected
}

impl<'a> Receiver<'a> {
    /// Asks for the bot, reads the stored state, and registers the commands. `None`: the gateway stops.
    async fn start(
        channel: &'a DiscordChannel,
        inbox: &'a dyn Inbox,
        stop: CancellationToken,
    ) -> Result<Option<Self>, ChannelError> {
        let mut receiver = Self {
            channel,
            inbox,
            bot: String::new(),
            application: String::new(),
            state: State::default(),
            failed_download: None,
            stop,
            failures: 0,
            store_at: None,
        };
        loop {
            let identity = async { Ok::<_, CallError>((channel.bot().await?, channel.application().await?)) };
            let identity = tokio::select! {
                () = receiver.stop.cancelled() => return Ok(None),
                identity = identity => identity,
            };
            match identity {
                Ok((bot, application)) => {
                    (receiver.bot, receiver.application) = (bot.id, application.id);
                    break;
                }
                Err(error) if error.status() == Some(401) => return Err(channel_error(&error)),
                Err(error) => {
                    tracing::warn!(%error, "Discord does not answer; it is asked again");
                    let delay = receiver.next_delay();
                    receiver.wait(delay).await;
                }
            }
        }
        receiver.failures = 0;
        let stored = inbox.state(&receiver.key()).await.map_err(|error| ChannelError::Setting(error.to_string()))?;
        receiver.state = stored.and_then(|stored| serde_json::from_value(stored).ok()).unwrap_or_default();
        if let Err(error) = channel.register_commands(&receiver.application).await {
            tracing::warn!(%error, "cannot register the commands of the Discord bot");
        }
        Ok(Some(receiver))
    }

    /// Returns the key of the state. Each bot has its own.
    fn key(&self) -> String {
        format!("state:{}", self.bot)
    }

    /// Handles what is received, in order.
    async fn run(&mut self, mut received: mpsc::Receiver<Item>) {
        loop {
            let item = tokio::select! {
                biased;
                () = tokio::time::sleep_until(self.store_at.unwrap_or_else(Instant::now)), if self.store_at.is_some() => {
                    self.store().await;
                    continue;
                }
                item = received.recv() => item,
            };
            let Some(item) = item else { break };
            if !self.take(item).await {
                // The channel ends. What is not handled is received again.
                break;
            }
        }
        self.store().await;
    }

    /// Handles an event until that succeeds. Returns whether it was handled.
    async fn take(&mut self, mut item: Item) -> bool {
        loop {
            match self.handle(&mut item.event).await {
                Ok(has_effect) => {
                    self.failures = 0;
                    self.state.session = item.session.or_else(|| self.state.session.take());
                    if has_effect {
                        self.store().await;
                    } else {
                        self.store_at.get_or_insert_with(|| Instant::now() + STORE_AFTER);
                    }
                    return true;
                }
                Err(error) => {
                    if !self.stop.is_cancelled() {
                        let delay = self.next_delay();
                        tracing::warn!(%error, ?delay, "an event of Discord is not accepted now; it is tried again");
                        self.wait(delay).await;
                    }
                    if self.stop.is_cancelled() {
                        return false;
                    }
                }
            }
        }
    }

    /// Returns whether the event had an effect.
    async fn handle(&mut self, event: &mut Event) -> Result<bool, InboxError> {
        match event {
            Event::Message(message) => self.message(message).await,
            Event::Edited(message) => self.edited(message).await,
            Event::Deleted(ids) => {
                for id in ids {
                    self.inbox.delete(id).await?;
                }
                Ok(false)
            }
            Event::Interaction(interaction, acknowledging) => self.interaction(interaction, acknowledging).await,
            Event::Started => self.missed().await.map(|()| true),
            Event::Nothing => Ok(false),
        }
    }

    /// Returns a channel of a server.
    pub(crate) async fn channel_of(&self, id: &str) -> Result<Channel, InboxError> {
        let found = self.channel.channel_of(id).await;
        found.map_err(|error| InboxError(format!("a channel cannot be read: {error}")))
    }

    /// Stores the state. A failure only means that events are received again.
    pub(crate) async fn store(&mut self) {
        self.store_at = None;
        let stored = match serde_json::to_value(&self.state) {
            Ok(state) => self.inbox.set_state(&self.key(), state).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = stored {
            tracing::warn!(error, "cannot store the session of Discord's gateway");
            self.store_at = Some(Instant::now() + STORE_AFTER);
        }
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
