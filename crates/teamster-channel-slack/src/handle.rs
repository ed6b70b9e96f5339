//! What follows an event.

use std::time::Duration;

use serde_json::Value;
use teamster_channel::{Author, ChatCommand, Edit, InboxError, Message, Receipt, render};

use crate::download::Files;
use crate::envelope::Envelope;
use crate::handler::{Handler, help};
use crate::interact::Ack;
use crate::mapping::{Context, Incoming, Location, Received, incoming};
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
    /// Handles an envelope. What cannot be stored now is tried again until the gateway stops: the service sends an envelope three
    /// times only.
    pub(crate) async fn handle(&'a self, envelope: &Envelope) -> Handled<'a> {
        let mut delay = FIRST_DELAY;
        loop {
            let handled = match envelope.r#type.as_str() {
                "events_api" => self.event(&envelope.payload).await.map(|()| Ack::plain()),
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

    async fn event(&self, payload: &Value) -> Result<(), InboxError> {
        let event = match EventPayload::deserialize_from(payload) {
            Ok(EventPayload { event, .. }) => event,
            Err(error) => {
                tracing::error!(%error, "an event of Slack cannot be read; it is skipped");
                return Ok(());
            }
        };
        match self.incoming(&event) {
            Incoming::Message(received) => self.once(received, Kind::Message).await,
            Incoming::Command { name, argument, message } => self.once(message, Kind::Command(name, argument)).await,
            Incoming::Help(received) => self.once(received, Kind::Help).await,
            Incoming::Edit { id, text } => self.inbox.edit(Edit { id, text }).await.map(|_| ()),
            Incoming::Delete { id } => self.inbox.delete(&id).await,
            Incoming::Nothing => Ok(()),
        }
    }

    fn incoming(&self, event: &Event) -> Incoming {
        let threads = self.channel.threads();
        let config = self.channel.config();
        let context = Context { bot: &self.bot, channels: config.channels, replies: config.replies, threads: &threads };
        incoming(event, context)
    }

    /// Handles a message, unless its other event was handled. The events of a chat are handled one after the other.
    async fn once(&self, received: Received, kind: Kind) -> Result<(), InboxError> {
        let id = received.id.clone();
        let is_addressed = received.is_addressed;
        if self.handled().contains(&id) {
            return Ok(());
        }
        match kind {
            Kind::Message => self.message(received).await?,
            Kind::Command(name, argument) => self.command(name, argument, received).await?,
            Kind::Help => {
                let text = help(&received.author, &received.place.address.chat, self.channel.config().replies);
                self.reply(&received.place.address, &text).await;
            }
        }
        if is_addressed {
            self.handled().insert(id);
        }
        Ok(())
    }

    async fn message(&self, received: Received) -> Result<(), InboxError> {
        let Received { id, author, is_bot, place, text, files, is_addressed } = received;
        let attachments = match self.files(&files, is_addressed).await? {
            Files::Loaded(attachments) => attachments,
            Files::Refused(reason) => {
                self.reply(&place.address, &reason).await;
                return Ok(());
            }
        };
        let author = if is_addressed {
            self.people.author(self.channel.api(), &author, is_bot).await
        } else {
            // The inbox ignores it.
            Author { name: author.clone(), id: author, is_bot }
        };
        let address = place.address.clone();
        let message = Message { ids: vec![id], address, author, text, attachments, is_addressed };
        match self.inbox.message(message).await? {
            Receipt::Accepted { .. } | Receipt::Duplicate => self.joined(&place).await?,
            Receipt::Refused(reason) => self.reply(&place.address, &render::escape(&reason)).await,
            Receipt::Busy(reason) => {
                let text = format!("{} Send the message again later.", render::escape(&reason));
                self.reply(&place.address, &text).await;
            }
            Receipt::Ignored => {}
        }
        Ok(())
    }

    /// Remembers a thread in which the bot answers, before the message is acknowledged.
    async fn joined(&self, place: &Location) -> Result<(), InboxError> {
        if place.is_direct || place.address.thread.is_empty() {
            return Ok(());
        }
        let threads = {
            let mut threads = self.channel.threads();
            if !threads.add(&place.address.chat, &place.address.thread) {
                return Ok(());
            }
            threads.to_value()
        };
        self.inbox.set_state(&state_key(&self.bot), threads).await
    }

    async fn command(&self, name: &str, argument: String, received: Received) -> Result<(), InboxError> {
        let address = received.place.address;
        let author = self.people.author(self.channel.api(), &received.author, received.is_bot).await;
        let command = ChatCommand { name: name.to_owned(), argument, author, address: address.clone() };
        let reply = self.inbox.command(command).await?;
        self.reply(&address, &reply.text).await;
        Ok(())
    }
}

/// What a message to the bot is.
enum Kind {
    Message,
    Command(&'static str, String),
    Help,
}

impl EventPayload {
    fn deserialize_from(payload: &Value) -> Result<Self, serde_json::Error> {
        serde::Deserialize::deserialize(payload)
    }
}

/// Returns the key of the stored threads. Each workspace has its own.
pub(crate) fn state_key(bot: &Bot) -> String {
    format!("threads:{}:{}", bot.team_id, bot.user_id)
}
