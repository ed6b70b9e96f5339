//! The objects of the Bot API that are used, <https://core.telegram.org/bots/api#available-types>. Unknown fields are ignored.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The kinds of updates that are requested. The service remembers the list, so each poll states it.
pub(crate) const UPDATE_KINDS: [&str; 3] = ["message", "edited_message", "callback_query"];

/// The bot itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Bot {
    pub(crate) id: i64,
    #[serde(default)]
    pub(crate) username: String,
    /// Whether privacy mode is off.
    #[serde(default)]
    pub(crate) can_read_all_group_messages: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WebhookInfo {
    #[serde(default)]
    pub(crate) url: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Update {
    pub(crate) update_id: i64,
    pub(crate) message: Option<Message>,
    pub(crate) edited_message: Option<Message>,
    pub(crate) callback_query: Option<CallbackQuery>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub(crate) message_id: i64,
    #[serde(default)]
    pub(crate) date: i64,
    pub(crate) from: Option<User>,
    /// The chat in whose name it was written: an anonymous administrator, or a channel.
    pub(crate) sender_chat: Option<IgnoredAny>,
    #[serde(default)]
    pub(crate) chat: Chat,
    pub(crate) message_thread_id: Option<i64>,
    /// Only a message of a topic has it. A reply in a plain group has a `message_thread_id` as well.
    #[serde(default)]
    pub(crate) is_topic_message: bool,
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) entities: Vec<MessageEntity>,
    pub(crate) caption: Option<String>,
    #[serde(default)]
    pub(crate) caption_entities: Vec<MessageEntity>,
    pub(crate) media_group_id: Option<String>,
    pub(crate) reply_to_message: Option<Box<Message>>,
    pub(crate) reply_markup: Option<InlineKeyboard>,
    pub(crate) forum_topic_created: Option<IgnoredAny>,
    pub(crate) migrate_to_chat_id: Option<i64>,
    pub(crate) migrate_from_chat_id: Option<i64>,
    #[serde(default)]
    pub(crate) photo: Vec<FileRef>,
    pub(crate) document: Option<FileRef>,
    pub(crate) audio: Option<FileRef>,
    pub(crate) voice: Option<FileRef>,
    pub(crate) video: Option<FileRef>,
    pub(crate) video_note: Option<FileRef>,
    pub(crate) animation: Option<FileRef>,
    pub(crate) sticker: Option<FileRef>,
    pub(crate) location: Option<IgnoredAny>,
    pub(crate) contact: Option<IgnoredAny>,
    pub(crate) poll: Option<IgnoredAny>,
    pub(crate) dice: Option<IgnoredAny>,
    pub(crate) story: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct User {
    pub(crate) id: i64,
    #[serde(default)]
    pub(crate) is_bot: bool,
    #[serde(default)]
    pub(crate) first_name: String,
    pub(crate) last_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Chat {
    pub(crate) id: i64,
    /// `private`, `group`, `supergroup` or `channel`.
    #[serde(default)]
    pub(crate) r#type: String,
}

/// A part of a text with a meaning. Offset and length are in UTF-16 units.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct MessageEntity {
    #[serde(default)]
    pub(crate) r#type: String,
    #[serde(default)]
    pub(crate) offset: i64,
    #[serde(default)]
    pub(crate) length: i64,
    pub(crate) user: Option<User>,
}

/// A file in a message: a document, a voice message, one size of a photo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct FileRef {
    #[serde(default)]
    pub(crate) file_id: String,
    pub(crate) file_name: Option<String>,
    pub(crate) mime_type: Option<String>,
    /// Missing if the service does not know it.
    pub(crate) file_size: Option<u64>,
}

/// The answer of `getFile`.
#[derive(Debug, Deserialize)]
pub(crate) struct FilePath {
    pub(crate) file_path: Option<String>,
    pub(crate) file_size: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CallbackQuery {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) from: User,
    pub(crate) message: Option<Message>,
    pub(crate) data: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct InlineKeyboard {
    #[serde(default)]
    pub(crate) inline_keyboard: Vec<Vec<InlineButton>>,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct InlineButton {
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) callback_data: Option<String>,
}

/// Without the data, which enables its reader to answer a prompt.
impl std::fmt::Debug for InlineButton {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("InlineButton").field("text", &self.text).finish_non_exhaustive()
    }
}

/// A message that the service has stored.
#[derive(Debug, Deserialize)]
pub(crate) struct SentMessage {
    pub(crate) message_id: i64,
}
