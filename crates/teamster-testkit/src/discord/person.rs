//! People, and what they write, as data.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bot::BOT_ID;
use super::files::Upload;

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
