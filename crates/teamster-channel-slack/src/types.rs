//! The objects of the Web API and of events that are used. Unknown fields are ignored.

use serde::Deserialize;
use serde_json::Value;

/// The bot, as `auth.test` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Bot {
    pub(crate) user_id: String,
    #[serde(default)]
    pub(crate) bot_id: String,
    pub(crate) team_id: String,
}

/// The answer of `bots.info`.
#[derive(Debug, Deserialize)]
pub(crate) struct BotInfo {
    pub(crate) bot: BotApp,
}

#[derive(Debug, Deserialize)]
pub(crate) struct BotApp {
    #[serde(default)]
    pub(crate) app_id: String,
}

/// The answer of `users.info`.
#[derive(Debug, Deserialize)]
pub(crate) struct UserInfo {
    pub(crate) user: User,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct User {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) username: String,
    #[serde(default)]
    pub(crate) real_name: String,
    #[serde(default)]
    pub(crate) is_bot: bool,
    #[serde(default)]
    pub(crate) profile: Profile,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Profile {
    #[serde(default)]
    pub(crate) display_name: String,
    #[serde(default)]
    pub(crate) real_name: String,
}

/// The payload of an event.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct EventPayload {
    #[serde(default)]
    pub(crate) event: Event,
}

/// An event: a message, or a change of one.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Event {
    #[serde(default)]
    pub(crate) r#type: String,
    pub(crate) subtype: Option<String>,
    #[serde(default)]
    pub(crate) channel: String,
    pub(crate) user: Option<String>,
    pub(crate) bot_id: Option<String>,
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) ts: String,
    pub(crate) thread_ts: Option<String>,
    #[serde(default)]
    pub(crate) files: Vec<FileObject>,
    /// The changed message.
    pub(crate) message: Option<Box<Event>>,
    /// The message before its change or its deletion.
    pub(crate) previous_message: Option<Box<Event>>,
    pub(crate) edited: Option<Edited>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Edited {
    #[serde(default)]
    pub(crate) user: String,
}

/// A file of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct FileObject {
    #[serde(default)]
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) mimetype: Option<String>,
    /// `hosted`, `snippet`, `external`, `tombstone`, …
    pub(crate) mode: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) url_private: Option<String>,
    pub(crate) url_private_download: Option<String>,
    /// `check_file_info` for a file of another workspace: `files.info` has the rest.
    pub(crate) file_access: Option<String>,
}

/// The answer of `files.info`.
#[derive(Debug, Deserialize)]
pub(crate) struct FileInfo {
    pub(crate) file: FileObject,
}

/// The answer of `files.getUploadURLExternal`.
#[derive(Debug, Deserialize)]
pub(crate) struct UploadUrl {
    pub(crate) upload_url: String,
    pub(crate) file_id: String,
}

/// The answer of `chat.postMessage`.
#[derive(Debug, Deserialize)]
pub(crate) struct Posted {
    pub(crate) ts: String,
}

/// The payload of a press, or of a dialog that was sent.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Interaction {
    /// `block_actions`, `view_submission`, …
    #[serde(default)]
    pub(crate) r#type: String,
    #[serde(default)]
    pub(crate) user: User,
    pub(crate) channel: Option<ObjectId>,
    pub(crate) message: Option<PressedMessage>,
    #[serde(default)]
    pub(crate) actions: Vec<Action>,
    #[serde(default)]
    pub(crate) trigger_id: String,
    #[serde(default)]
    pub(crate) response_url: String,
    pub(crate) view: Option<View>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ObjectId {
    #[serde(default)]
    pub(crate) id: String,
}

/// The message of a pressed button.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PressedMessage {
    #[serde(default)]
    pub(crate) ts: String,
    pub(crate) thread_ts: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct Action {
    #[serde(default)]
    pub(crate) action_id: String,
    pub(crate) value: Option<String>,
}

/// Without the value, which enables its reader to answer a prompt.
impl std::fmt::Debug for Action {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Action").field("action_id", &self.action_id).finish_non_exhaustive()
    }
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct View {
    #[serde(default)]
    pub(crate) callback_id: String,
    #[serde(default)]
    pub(crate) private_metadata: String,
    #[serde(default)]
    pub(crate) state: Value,
}

/// Without the metadata, which contains the token of a button.
impl std::fmt::Debug for View {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("View").field("callback_id", &self.callback_id).finish_non_exhaustive()
    }
}

/// The payload of a slash command.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct SlashCommand {
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) user_id: String,
    #[serde(default)]
    pub(crate) user_name: String,
    #[serde(default)]
    pub(crate) channel_id: String,
    #[serde(default)]
    pub(crate) channel_name: String,
    #[serde(default)]
    pub(crate) response_url: String,
}

/// A page of `conversations.history` or `conversations.replies`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct History {
    #[serde(default)]
    pub(crate) messages: Vec<StoredMessage>,
    #[serde(default)]
    pub(crate) has_more: bool,
    #[serde(default)]
    pub(crate) response_metadata: Cursor,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Cursor {
    #[serde(default)]
    pub(crate) next_cursor: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct StoredMessage {
    #[serde(default)]
    pub(crate) ts: String,
    pub(crate) metadata: Option<Metadata>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    pub(crate) event_type: String,
    #[serde(default)]
    pub(crate) event_payload: Value,
}
