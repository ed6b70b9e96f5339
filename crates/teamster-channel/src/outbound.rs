//! What a channel sends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where something is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The chat, named as the service names it.
    pub chat: String,
    /// The thread in the chat; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread: String,
}

/// What a service supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether a sent message can be edited.
    pub edits: bool,
    /// Whether chats have threads.
    pub threads: bool,
    /// Whether files can be sent.
    pub files: bool,
    /// Whether a message can have buttons.
    pub buttons: bool,
    /// Whether a repeated send with the same key is recognized by the service.
    pub idempotent_sends: bool,
    /// The maximum length of a text, in the service's unit.
    pub max_text: usize,
    /// The shortest time between two edits in a chat.
    pub edit_interval: Duration,
}

/// One call to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The same for each attempt of this part, and different for all other parts.
    pub key: String,
    /// Where to write.
    pub place: Place,
    /// Whether a message is new or changes an earlier one.
    pub operation: Operation,
    /// What to write.
    pub content: Content,
    /// Whether the service may have it already. Mark it as a possible repeat.
    pub may_be_repeat: bool,
    /// When the delivery was created, in milliseconds since 1970.
    pub created_at_ms: i64,
}

/// What happens to a message in the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is new.
    New,
    /// It replaces the content of the message with this id.
    Edit(String),
    /// The message with this id is removed.
    Delete(String),
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Content {
    /// The agent's answer, in Markdown.
    Answer {
        /// The text.
        text: String,
        /// The agent's session, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
    },
    /// The turn has failed.
    Failure {
        /// The text for people.
        error: String,
        /// The stable code.
        code: String,
    },
    /// A notice of the gateway, in Markdown.
    Notice {
        /// The text.
        text: String,
    },
    /// The agent waits for a person.
    Prompt(Prompt),
    /// A file of the agent.
    File(File),
}

/// A permission request or a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// What the agent wants to do or to know, in Markdown.
    pub text: String,
    /// The possible answers.
    pub buttons: Vec<Button>,
}

/// A possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Button {
    /// The text on the button.
    pub label: String,
    /// An unguessable id of at most 64 bytes, which the press returns.
    pub token: String,
}

/// A file to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// The name for people.
    pub name: String,
    /// The media type.
    pub media_type: String,
    /// The hash under which the gateway stores the content.
    pub hash: String,
    /// A caption in Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caption: String,
}

/// The outcome of a send.
#[derive(Debug)]
pub enum SendOutcome {
    /// The service has it.
    Sent(Delivered),
    /// The service does not have it.
    NotSent(SendError),
    /// The service may have it: the connection broke after the request was written.
    Unknown(String),
}

/// A part that the service has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// The service's own id of the message, with which it can be edited.
    pub message_id: Option<String>,
}

/// Why a part was not sent. The text contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// It can be sent again later.
    Later {
        /// The reason.
        reason: String,
        /// The shortest time to wait, if the service states one.
        after: Option<Duration>,
    },
    /// Another attempt has the same result.
    Never(String),
}
