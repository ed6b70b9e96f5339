//! What people do.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::SentFile;
use super::clock::{now_ms, timestamp};
use super::files::Upload;
use super::messages::id_of;
use super::world::{BOT_ID, World, bot};

/// A person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The id.
    pub id: u64,
    /// The name.
    pub name: String,
    /// Whether it is another bot.
    #[serde(default)]
    pub is_bot: bool,
}

/// What a person writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Post {
    /// The channel; missing for a direct message.
    #[serde(default)]
    pub channel: Option<u64>,
    /// Who writes.
    pub from: Person,
    /// The text. `<@ID>` is a mention, `<@&ID>` one of a role.
    #[serde(default)]
    pub text: String,
    /// The message that it replies to.
    #[serde(default)]
    pub reply_to: Option<u64>,
    /// The files.
    #[serde(default)]
    pub files: Vec<Upload>,
    /// Whether it has a sticker.
    #[serde(default)]
    pub has_sticker: bool,
    /// The kind of message; 0 and 19 are written by people.
    #[serde(default)]
    pub kind: Option<u8>,
    /// Whether it comes from a webhook.
    #[serde(default)]
    pub is_webhook: bool,
}

impl Person {
    /// Describes a person.
    pub fn new(id: u64, name: &str) -> Self {
        Self { id, name: name.to_owned(), is_bot: false }
    }

    /// Returns the id of the private channel with the bot.
    pub fn direct(&self) -> u64 {
        self.id + 1_000_000
    }

    pub(super) fn object(&self) -> Value {
        json!({"id": self.id.to_string(), "username": self.name.to_lowercase(), "global_name": self.name,
            "discriminator": "0", "avatar": null, "bot": self.is_bot, "public_flags": 0})
    }
}

impl Post {
    /// A direct message to the bot.
    pub fn private(from: &Person, text: &str) -> Self {
        Self {
            channel: None,
            from: from.clone(),
            text: text.to_owned(),
            reply_to: None,
            files: Vec::new(),
            has_sticker: false,
            kind: None,
            is_webhook: false,
        }
    }

    /// A message in a channel.
    pub fn to(channel: u64, from: &Person, text: &str) -> Self {
        Self { channel: Some(channel), ..Self::private(from, text) }
    }

    /// A message in a channel that mentions the bot.
    pub fn mention(channel: u64, from: &Person, text: &str) -> Self {
        Self::to(channel, from, &format!("<@{BOT_ID}> {text}"))
    }

    /// Replies to a message.
    #[must_use]
    pub fn reply_to(mut self, message: u64) -> Self {
        self.reply_to = Some(message);
        self
    }

    /// Has a file.
    #[must_use]
    pub fn file(mut self, name: &str, content: &str) -> Self {
        let (name, media_type) = (name.to_owned(), "text/plain".to_owned());
        self.files.push(Upload { name, media_type, content: content.to_owned(), stated_size: None });
        self
    }

    /// States another size of its files than they have.
    #[must_use]
    pub fn stated_size(mut self, size: u64) -> Self {
        for file in &mut self.files {
            file.stated_size = Some(size);
        }
        self
    }

    /// Has a sticker.
    #[must_use]
    pub fn sticker(mut self) -> Self {
        self.has_sticker = true;
        self
    }

    /// Is of another kind, such as 7: a person has joined.
    #[must_use]
    pub fn kind(mut self, kind: u8) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Comes from a webhook.
    #[must_use]
    pub fn webhook(mut self) -> Self {
        self.is_webhook = true;
        self
    }
}

impl World {
    /// A person writes. Returns the id of the message.
    pub(super) fn write(&mut self, post: Post) -> u64 {
        let Post { channel, from, text, reply_to, files, has_sticker, kind, is_webhook } = post;
        let channel = channel.unwrap_or_else(|| self.direct(&from));
        let mut attachments = Vec::with_capacity(files.len());
        for Upload { name, media_type, content, stated_size } in files {
            let (id, host) = (self.next_id(), self.host.clone());
            let file = SentFile { name, media_type, bytes: content.into_bytes() };
            attachments.push(self.files.add(id, &host, file, stated_size));
        }
        let replied = reply_to.and_then(|id| self.message(channel, id).ok());
        let stickers = if has_sticker { json!([{"id": "1", "name": "wave", "format_type": 1}]) } else { json!([]) };
        let more = json!({"content": text, "attachments": attachments, "referenced_message": replied,
            "sticker_items": stickers, "type": kind.unwrap_or(if replied.is_some() { 19 } else { 0 }),
            "webhook_id": is_webhook.then_some("777")});
        let parse = ["users", "roles", "everyone"].map(str::to_owned);
        let message = self.store(channel, &from.object(), &more, &parse);
        let id = message.get("id").and_then(id_of).unwrap_or_default();
        let event = self.with_guild(channel, message);
        self.dispatch("MESSAGE_CREATE", &event);
        id
    }

    /// A person changes a text.
    pub(super) fn edit(&mut self, channel: u64, message: u64, text: &str) {
        self.change_message(channel, message, json!({"content": text, "edited_timestamp": timestamp(now_ms())}));
    }

    /// Returns a user who is mentioned.
    pub(super) fn user(&self, id: u64) -> Value {
        if id == BOT_ID {
            return bot();
        }
        let known = self.channels.values().filter_map(|channel| channel.recipient.as_ref());
        let known = known.into_iter().find(|person| person.id == id).cloned();
        known.unwrap_or_else(|| Person::new(id, &format!("User{id}"))).object()
    }
}

/// Returns the users and the roles that a text mentions.
pub(super) fn found_mentions(text: &str) -> (Vec<u64>, Vec<String>) {
    let (mut users, mut roles) = (Vec::new(), Vec::new());
    for part in text.split("<@").skip(1) {
        let Some((inner, _)) = part.split_once('>') else { continue };
        if let Some(role) = inner.strip_prefix('&') {
            roles.push(role.to_owned());
        } else if let Ok(user) = inner.trim_start_matches('!').parse() {
            users.push(user);
        }
    }
    (users, roles)
}
