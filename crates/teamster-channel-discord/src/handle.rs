//! What follows a message.

use serde_json::json;
use teamster_channel::{ChatCommand, Edit, InboxError, Message, Receipt, render, split};

use crate::api::CallError;
use crate::download::Files;
use crate::mapping::{Context, Incoming, Origin, Received, edited, incoming};
use crate::receive::Receiver;
use crate::send::{message_body, set_nonce};
use crate::text::LIMIT;
use crate::types;

/// What the mapping needs to know about the origin of a message.
struct Surroundings {
    roles: Vec<String>,
    channel: Option<types::Channel>,
}

impl Receiver<'_> {
    /// Handles a message. Returns whether it had an effect.
    pub(crate) async fn message(&mut self, message: &types::Message) -> Result<bool, InboxError> {
        if message.author.id == self.bot {
            return Ok(false);
        }
        let surroundings = self.surroundings(message).await?;
        let mapped = incoming(message, self.context(&surroundings));
        let guild = message.guild_id.as_deref();
        let has_effect = match mapped {
            Incoming::Message(received) => self.received(received, guild).await?,
            // The history has it, and so has the queue of events. The inbox does not recognize its repeat.
            Incoming::Command { .. } | Incoming::Unreadable { .. }
                if self.state.is_handled(&message.channel_id, &message.id) =>
            {
                false
            }
            // A reply to a program could make it reply too, without end.
            Incoming::Command { author, .. } | Incoming::Unreadable { author, .. } if author.is_bot => false,
            // A stranger learns the reason in a direct message, and does not make the bot write in a channel.
            Incoming::Command { author, origin, .. }
                if guild.is_some() && !self.inbox.is_admitted(&origin.address, &author) =>
            {
                false
            }
            Incoming::Command { name, argument, author, origin } => {
                let command = ChatCommand { name: name.to_owned(), argument, author, address: origin.address.clone() };
                let reply = self.inbox.command(command).await?;
                self.reply_with(&origin, &reply.text).await;
                true
            }
            Incoming::Unreadable { author, origin } if !self.inbox.is_admitted(&origin.address, &author) => false,
            Incoming::Unreadable { origin, .. } => {
                self.reply_with(&origin, "This kind of message cannot be read. Send a text or a file.").await;
                true
            }
            Incoming::Nothing => false,
        };
        self.state.handled(&message.channel_id, &message.id, guild, false);
        Ok(has_effect)
    }

    /// Handles a change of a message by its author.
    pub(crate) async fn edited(&self, message: &types::Message) -> Result<bool, InboxError> {
        if message.edited_timestamp.is_none() || message.author.id == self.bot {
            return Ok(false);
        }
        let surroundings = self.surroundings(message).await?;
        let Some((id, text)) = edited(message, self.context(&surroundings)) else { return Ok(false) };
        self.inbox.edit(Edit { id, text }).await.map(|_| true)
    }

    async fn surroundings(&self, message: &types::Message) -> Result<Surroundings, InboxError> {
        let Some(guild) = &message.guild_id else { return Ok(Surroundings { roles: Vec::new(), channel: None }) };
        let roles = if message.mention_roles.is_empty() {
            Vec::new()
        } else {
            let roles = self.channel.roles_in(guild, &self.bot).await;
            roles.map_err(|error| InboxError(format!("the roles of the bot cannot be read: {error}")))?
        };
        Ok(Surroundings { roles, channel: Some(self.channel_of(&message.channel_id).await?) })
    }

    fn context<'b>(&'b self, surroundings: &'b Surroundings) -> Context<'b> {
        let config = self.channel.config();
        Context {
            bot: &self.bot,
            servers: config.servers,
            threads: config.threads,
            roles: &surroundings.roles,
            channel: surroundings.channel.as_ref(),
        }
    }

    async fn received(&mut self, received: Received, guild: Option<&str>) -> Result<bool, InboxError> {
        let Received { author, origin, text, files, is_addressed, opens_thread } = received;
        if !files.is_empty() && !self.inbox.is_admitted(&origin.address, &author) {
            return Ok(false);
        }
        let is_bot = author.is_bot;
        let attachments = match self.files(&files, is_addressed, &origin.message).await? {
            Files::Loaded(attachments) => attachments,
            Files::Refused(reason) => {
                self.refuse(&origin, is_bot, &reason).await;
                return Ok(true);
            }
        };
        let (ids, address) = (vec![origin.message.clone()], origin.address.clone());
        let name = text.clone();
        let receipt = self.inbox.message(Message { ids, address, author, text, attachments, is_addressed }).await?;
        match receipt {
            Receipt::Accepted { .. } | Receipt::Duplicate => {
                self.state.handled(&origin.channel, &origin.message, guild, true);
                if opens_thread {
                    self.open(&origin, &name).await;
                    self.state.handled(&origin.address.thread, &origin.message, guild, true);
                }
            }
            Receipt::Refused(reason) => self.refuse(&origin, is_bot, &render::escape(&reason)).await,
            Receipt::Busy(reason) => {
                let reason = format!("{} Send the message again later.", render::escape(&reason));
                self.refuse(&origin, is_bot, &reason).await;
            }
            Receipt::Ignored => return Ok(false),
        }
        Ok(true)
    }

    /// Opens the thread of an accepted message. If that fails for now, the first answer opens it.
    async fn open(&self, origin: &Origin, name: &str) {
        let Err(error) = self.channel.open_thread(&origin.address.chat, &origin.message, Some(name)).await else {
            return;
        };
        tracing::warn!(%error, "a thread in Discord was not opened");
        if matches!(error, CallError::Refused { status: 403, .. }) {
            let text = "I may not open a thread here, so I cannot answer. Grant my role the permissions *Create Public \
                        Threads* and *Send Messages in Threads*, or set `threads = false` in the gateway.";
            self.reply_with(origin, text).await;
        }
    }

    /// Replies to a person why a message was not accepted. A program gets no reply, since it could reply too, without end.
    async fn refuse(&self, origin: &Origin, is_bot: bool, markdown: &str) {
        if is_bot {
            tracing::info!(message = origin.message, "a message of a program in Discord is refused");
        } else {
            self.reply_with(origin, markdown).await;
        }
    }

    /// Writes a reply in Markdown, directly: it is not stored, and it is not sent again.
    async fn reply_with(&self, origin: &Origin, markdown: &str) {
        for (index, part) in split(markdown, LIMIT).iter().enumerate() {
            let mut body = message_body(part, &[], false);
            if let Some(body) = body.as_object_mut() {
                let reference = json!({"message_id": origin.message, "fail_if_not_exists": false});
                body.insert("message_reference".to_owned(), reference);
            }
            set_nonce(&mut body, &format!("{}.{index}", origin.message));
            if let Err(error) = self.channel.create(&origin.channel, &body, None).await {
                tracing::warn!(%error, "a reply in Discord was not sent");
                return;
            }
        }
    }
}
