//! The objects of the API that are used, <https://discord.com/developers/docs/resources/message>. Unknown fields are ignored.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The kinds of channels that are threads.
const THREADS: [u8; 3] = [10, 11, 12];

/// The kinds of channels in which a message can open a thread: text and announcements.
const WITH_THREADS: [u8; 2] = [0, 5];

/// The kinds of messages that people write: plain ones and replies.
const WRITTEN: [u8; 2] = [0, 19];

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) username: String,
    pub(crate) global_name: Option<String>,
    pub(crate) bot: bool,
}

/// The application of the bot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Application {
    pub(crate) id: String,
    pub(crate) flags: u64,
}

/// The answer of `GET /gateway/bot`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GatewayInfo {
    pub(crate) url: String,
    pub(crate) session_start_limit: StartLimit,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
pub(crate) struct StartLimit {
    pub(crate) remaining: u64,
    /// Milliseconds.
    pub(crate) reset_after: u64,
}

impl Default for StartLimit {
    fn default() -> Self {
        Self { remaining: 1, reset_after: 0 }
    }
}

/// A server that has the bot as a member.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Guild {
    pub(crate) name: String,
    /// What the bot may do, as a number in a text.
    pub(crate) permissions: String,
}

/// A channel: also a thread, or the private one with a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Channel {
    pub(crate) id: String,
    pub(crate) r#type: u8,
    pub(crate) parent_id: Option<String>,
    pub(crate) owner_id: Option<String>,
}

impl Channel {
    pub(crate) fn is_thread(&self) -> bool {
        THREADS.contains(&self.r#type)
    }

    /// Returns whether a message of it can open a thread.
    pub(crate) fn has_threads(&self) -> bool {
        WITH_THREADS.contains(&self.r#type)
    }
}

/// The channels of a server, when the bot sees it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GuildChannels {
    pub(crate) channels: Vec<Channel>,
    pub(crate) threads: Vec<Channel>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) channel_id: String,
    /// Missing in direct messages, and in all messages of the REST API.
    pub(crate) guild_id: Option<String>,
    pub(crate) author: User,
    pub(crate) member: Option<Member>,
    pub(crate) r#type: u8,
    #[serde(deserialize_with = "or_default")]
    pub(crate) content: String,
    /// When the author changed it.
    pub(crate) edited_timestamp: Option<String>,
    pub(crate) mentions: Vec<User>,
    pub(crate) mention_roles: Vec<String>,
    pub(crate) attachments: Vec<File>,
    pub(crate) webhook_id: Option<String>,
    pub(crate) referenced_message: Option<Box<Message>>,
    /// Stickers, polls and forwarded messages: the agent cannot get them.
    pub(crate) sticker_items: Vec<Value>,
    pub(crate) poll: Option<Value>,
    pub(crate) message_snapshots: Vec<Value>,
}

impl Message {
    /// Returns whether a person or a program wrote it, and not the service.
    pub(crate) fn is_written(&self) -> bool {
        WRITTEN.contains(&self.r#type)
    }
}

/// A message that was deleted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Deleted {
    pub(crate) id: String,
}

/// Several messages of a channel that were deleted at once.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeletedBulk {
    pub(crate) ids: Vec<String>,
}

/// A user in a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    pub(crate) user: Option<User>,
    pub(crate) nick: Option<String>,
    pub(crate) roles: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct File {
    pub(crate) filename: String,
    pub(crate) content_type: Option<String>,
    pub(crate) size: u64,
    pub(crate) url: String,
}

/// A command, a pressed button or a submitted form.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Interaction {
    pub(crate) id: String,
    pub(crate) r#type: u8,
    /// With it, any program can answer the interaction for 15 minutes.
    pub(crate) token: String,
    pub(crate) data: InteractionData,
    pub(crate) guild_id: Option<String>,
    pub(crate) channel_id: Option<String>,
    pub(crate) channel: Option<Channel>,
    pub(crate) member: Option<Member>,
    pub(crate) user: Option<User>,
}

/// Without the token and the data.
impl std::fmt::Debug for Interaction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Interaction").field("id", &self.id).field("type", &self.r#type).finish_non_exhaustive()
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InteractionData {
    /// The name of a command.
    pub(crate) name: String,
    pub(crate) options: Vec<CommandOption>,
    /// The id of a button or a form.
    pub(crate) custom_id: String,
    /// The fields of a form, in rows or in labels.
    pub(crate) components: Vec<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CommandOption {
    pub(crate) value: Value,
}

/// A message that the service has stored.
#[derive(Debug, Deserialize)]
pub(crate) struct SentMessage {
    pub(crate) id: String,
}

/// Reads a value that may be null.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}
