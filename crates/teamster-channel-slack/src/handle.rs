//! What follows an event.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value;
use teamster_channel::{Author, ChatCommand, Edit, InboxError, Message, Receipt, render};
use tokio::sync::SemaphorePermit;

use crate::download::Files;
use crate::envelope::Envelope;
use crate::handler::{Handler, Reply, help};
use crate::interact::Ack;
use crate::mapping::{Context, Incoming, IncomingFile, Location, Received, incoming};
use crate::types::{Bot, Event, EventPayload};

/// The delay after the first failed attempt at a message. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(200);

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// How an envelope was handled.
pub(crate) enum Handled<'a> {
    /// It must be acknowledged.
    Done(Ack<'a>),
    /// The gateway stops before its content was stored.
    NotDone,
}

impl<'a> Handler<'a> {
    /// Handles an envelope. What cannot be stored now is tried again until the gateway stops: the service sends an envelope again
    /// at most three times.
    pub(crate) async fn handle(&'a self, envelope: &Envelope) -> Handled<'a> {
        let mut delay = FIRST_DELAY;
        loop {
            let handled = match envelope.r#type.as_str() {
                "events_api" => self.event(&envelope.payload).await.map(|reply| self.acknowledged_then(reply)),
                "interactive" => self.interaction(&envelope.payload).await,
                "slash_commands" => Ok(self.slash_command(envelope).await),
                _ => Ok(Ack::plain()),
            };
            match handled {
                Ok(ack) => return Handled::Done(ack),
                Err(_) if self.stop.is_cancelled() => return Handled::NotDone,
                Err(error) => {
                    tracing::warn!(%error, ?delay, "a message of Slack is not accepted now; it is tried again");
                }
            }
            self.pause(delay).await;
            delay = delay.saturating_mul(2).min(MAX_DELAY);
        }
    }

    /// The service waits for three seconds, and a reply may take longer.
    fn acknowledged_then(&'a self, reply: Option<Reply>) -> Ack<'a> {
        reply.map_or_else(Ack::plain, |reply| Ack::then(self.reply(reply)))
    }

    async fn event(&self, payload: &Value) -> Result<Option<Reply>, InboxError> {
        let event = match EventPayload::deserialize(payload) {
            Ok(EventPayload { event, .. }) => event,
            Err(error) => {
                // The error itself can quote what a person has written.
                let (kind, problem) = (payload.pointer("/event/type").and_then(Value::as_str), error.classify());
                tracing::error!(kind, ?problem, "an event of Slack cannot be read; it is skipped");
                return Ok(None);
            }
        };
        match self.incoming(&event) {
            Incoming::Message(received) => self.once(received, Kind::Message).await,
            Incoming::Command { name, argument, message } => self.once(message, Kind::Command(name, argument)).await,
            Incoming::Help(received) => self.once(received, Kind::Help).await,
            Incoming::Edit { id, text } => self.inbox.edit(Edit { id, text }).await.map(|_| None),
            Incoming::Delete { id } => self.inbox.delete(&id).await.map(|()| None),
            Incoming::Nothing => Ok(None),
        }
    }

    fn incoming(&self, event: &Event) -> Incoming {
        let threads = self.channel.threads();
        let config = self.channel.config();
        let context = Context { bot: &self.bot, channels: config.channels, replies: config.replies, threads: &threads };
        incoming(event, context)
    }

    /// Handles a message, unless its other event was handled. The events of a chat are handled one after the other.
    async fn once(&self, received: Received, kind: Kind) -> Result<Option<Reply>, InboxError> {
        let id = received.id.clone();
        let Received { is_addressed, is_bot, .. } = received;
        if self.handled().contains(&id) {
            return Ok(None);
        }
        let reply = match kind {
            Kind::Message => self.message(received).await?,
            Kind::Command(..) | Kind::Help if !self.may_get_reply(&received) => None,
            Kind::Command(name, argument) => self.command(name, argument, received).await?,
            Kind::Help => {
                let text = help(&received.author, &received.place.address.chat, self.channel.config().replies);
                Some(Reply { address: received.place.address, text })
            }
        };
        if is_addressed {
            self.handled().insert(id);
        }
        // Two programs could answer each other without end. The inbox counts the messages of programs, and not these replies.
        Ok(reply.filter(|_| !is_bot))
    }

    /// Returns whether the bot replies when the author sends a command or asks for help. It replies to a person that the rules
    /// admit, and to every person in a direct message.
    fn may_get_reply(&self, received: &Received) -> bool {
        let Received { author, is_bot, place, .. } = received;
        let author = Author { id: author.clone(), name: author.clone(), is_bot: *is_bot };
        !author.is_bot && (place.is_direct || self.inbox.is_admitted(&place.address, &author))
    }

    async fn message(&self, received: Received) -> Result<Option<Reply>, InboxError> {
        let Received { id, author, is_bot, place, text, files, is_addressed } = received;
        let unnamed = Author { name: author.clone(), id: author.clone(), is_bot };
        // A stranger costs no download, no call and no reply.
        if is_addressed && !self.inbox.is_admitted(&place.address, &unnamed) {
            return Ok(None);
        }
        let _permit = self.download_permit(&files, is_addressed).await?;
        let attachments = match self.files(&files, is_addressed).await? {
            Files::Loaded(attachments) => attachments,
            Files::Refused(text) => return Ok(Some(Reply { address: place.address, text })),
        };
        let author = if is_addressed {
            self.people.author(self.channel.api(), &author, is_bot).await
        } else {
            // The inbox ignores it.
            unnamed
        };
        let address = place.address.clone();
        let message = Message { ids: vec![id], address, author, text, attachments, is_addressed };
        let text = match self.inbox.message(message).await? {
            Receipt::Accepted { .. } | Receipt::Duplicate => {
                self.joined(&place).await?;
                return Ok(None);
            }
            Receipt::Refused(reason) => render::escape(&reason),
            Receipt::Busy(reason) => format!("{} Send the message again later.", render::escape(&reason)),
            Receipt::Ignored => return Ok(None),
        };
        Ok(Some(Reply { address: place.address, text }))
    }

    /// Waits until the files of a message may be downloaded and kept. `None`: there are none to download.
    async fn download_permit(
        &self,
        files: &[IncomingFile],
        is_addressed: bool,
    ) -> Result<Option<SemaphorePermit<'_>>, InboxError> {
        if files.is_empty() || !is_addressed {
            return Ok(None);
        }
        tokio::select! {
            () = self.stop.cancelled() => Err(InboxError("the gateway stops".to_owned())),
            permit = self.downloads.acquire() => Ok(permit.ok()),
        }
    }

    /// Remembers a thread in which the bot answers, before the message is acknowledged. What is not stored is not remembered, so that
    /// the next attempt at the message stores it.
    async fn joined(&self, place: &Location) -> Result<(), InboxError> {
        if place.is_direct || place.address.thread.is_empty() {
            return Ok(());
        }
        let _one_at_a_time = self.joining.lock().await;
        let mut threads = self.channel.threads().clone();
        if !threads.add(&place.address.chat, &place.address.thread) {
            return Ok(());
        }
        self.inbox.set_state(&state_key(&self.bot), threads.to_value()).await?;
        *self.channel.threads() = threads;
        Ok(())
    }

    async fn command(&self, name: &str, argument: String, received: Received) -> Result<Option<Reply>, InboxError> {
        let address = received.place.address;
        let author = self.people.author(self.channel.api(), &received.author, received.is_bot).await;
        let command = ChatCommand { name: name.to_owned(), argument, author, address: address.clone() };
        let reply = self.inbox.command(command).await?;
        Ok(Some(Reply { address, text: reply.text }))
    }
}

/// What a message to the bot is.
enum Kind {
    Message,
    Command(&'static str, String),
    Help,
}

/// Returns the key of the stored threads. Each workspace has its own.
pub(crate) fn state_key(bot: &Bot) -> String {
    format!("threads:{}:{}", bot.team_id, bot.user_id)
}
