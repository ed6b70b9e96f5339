//! The output of a channel.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The address of a chat, or of a thread in it, within a channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// The chat, named as the service names it. A thread of a chat has the chat of its parent.
    pub chat: String,
    /// The thread in the chat; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread: String,
}

/// One call to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The same for each attempt of this part, and different for all other parts. It has ASCII characters only.
    pub key: String,
    /// Where to write.
    pub address: Address,
    /// The conversation, for programs.
    pub conversation: Option<String>,
    /// The turn, for programs.
    pub turn: Option<String>,
    /// Whether a message is new or changes an earlier one.
    pub operation: Operation,
    /// What to write. Its text fits into the limit of the service.
    pub content: Content,
    /// The number of this part and the number of all parts.
    pub part: Part,
    /// The bytes of a [`Content::File`]; empty for other contents.
    pub bytes: Arc<[u8]>,
    /// Whether the service may have it already. If so, mark it as a possible repeat.
    pub may_be_repeat: bool,
    /// When the delivery was created, in milliseconds since 1970.
    pub created_at_ms: i64,
}

/// The mark of a possible repeat, for people.
pub const REPEAT_MARK: &str = "*(possibly a repeat)*\n";

impl Outgoing {
    /// Returns the text for people, with a mark if it may be a repeat. It fits into the limit of the service.
    pub fn shown_text(&self) -> Cow<'_, str> {
        let text = self.content.text();
        if self.may_be_repeat { Cow::Owned(format!("{REPEAT_MARK}{text}")) } else { Cow::Borrowed(text) }
    }

    /// Returns a short form of the key: 24 hexadecimal digits, for services that limit the length of a nonce.
    pub fn nonce(&self) -> String {
        let digest = Sha256::digest(self.key.as_bytes());
        digest.iter().take(12).fold(String::with_capacity(24), |mut text, byte| {
            // Writing to a text cannot fail.
            _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// The position of a part in its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, starting at 0.
    pub index: u32,
    /// The number of all parts.
    pub count: u32,
}

impl Part {
    /// The part of a delivery that has only one.
    pub const ONLY: Self = Self { index: 0, count: 1 };
}

/// What happens to a message in the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is new.
    New,
    /// It replaces the content and the buttons of the message with this id. Repeating it is harmless.
    ///
    /// If the message has this content already, the outcome is sent. If the message no longer exists, the outcome is
    /// [`SendError::Gone`].
    Edit(String),
    /// The message with this id is removed. If it does not exist, the outcome is sent.
    Delete(String),
}

/// The content of a message. All texts are Markdown.
///
/// The text of an agent or of a person is untrusted: a channel converts the Markdown into the markup of its service and
/// neutralizes mentions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Content {
    /// The agent's answer.
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
    /// A notice of the gateway.
    Notice {
        /// The text.
        text: String,
    },
    /// The agent works. The answer replaces this message where the service can edit.
    Progress {
        /// The text so far.
        text: String,
    },
    /// The agent waits for a person.
    Prompt(Prompt),
    /// A prompt was answered or has ended: its message gets this text, and its buttons are removed.
    PromptClosed {
        /// The id of the prompt.
        id: String,
        /// What happened, for people.
        text: String,
        /// What happened, for programs: `allow`, `allow_always`, `deny`, `timed_out`, `worker_lost` or `turn_ended`.
        outcome: String,
    },
    /// A file of the agent.
    File(File),
}

impl Content {
    /// Returns the text.
    pub fn text(&self) -> &str {
        match self {
            Self::Answer { text, .. }
            | Self::Notice { text }
            | Self::Progress { text }
            | Self::PromptClosed { text, .. } => text,
            Self::Failure { error, .. } => error,
            Self::Prompt(prompt) => &prompt.text,
            Self::File(file) => &file.caption,
        }
    }

    /// Returns the same content with another text.
    #[must_use]
    pub fn with_text(mut self, new: String) -> Self {
        match &mut self {
            Self::Answer { text, .. }
            | Self::Notice { text }
            | Self::Progress { text }
            | Self::PromptClosed { text, .. } => *text = new,
            Self::Failure { error, .. } => *error = new,
            Self::Prompt(prompt) => prompt.text = new,
            Self::File(file) => file.caption = new,
        }
        self
    }
}

/// A permission request or a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The id of the request.
    pub id: String,
    /// The text of the request or of the question.
    pub text: String,
    /// The possible answers.
    pub buttons: Vec<Button>,
}

/// A possible answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Button {
    /// The text on the button.
    pub label: String,
    /// An unguessable id of at most 64 bytes, which the press returns.
    pub token: String,
    /// How the button looks.
    #[serde(default)]
    pub style: ButtonStyle,
    /// Whether the press needs a text of its author, for example from an input field that the button opens.
    #[serde(default)]
    pub takes_text: bool,
}

/// Omits the token, so that a reader of a log cannot answer.
impl std::fmt::Debug for Button {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Button").field("label", &self.label).field("style", &self.style).finish_non_exhaustive()
    }
}

/// How a button looks, where the service has styles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ButtonStyle {
    /// Plain.
    #[default]
    Plain,
    /// It permits something.
    Positive,
    /// It refuses something.
    Negative,
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
    /// A caption.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caption: String,
}

/// The outcome of a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The service has it.
    Sent(Delivered),
    /// The service does not have it.
    NotSent(SendError),
    /// The service may have it: the connection broke after the request was written. The text contains no secret.
    Unknown(String),
}

/// A part that the service has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// The service's own id of the message, with which it can be edited.
    pub message_id: Option<String>,
}

/// How long nothing is sent after the service has rejected the credentials.
const AFTER_REJECTION: Duration = Duration::from_mins(1);

/// Why a part was not sent. The texts contain no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// It can be sent again later.
    Later {
        /// The reason.
        reason: String,
        /// The shortest time to wait, if the service states one.
        after: Option<Duration>,
        /// What has to wait.
        scope: RateScope,
    },
    /// No message can be sent now: the service cannot be reached, or rejects the credentials. The gateway waits for up to a
    /// day after the delivery was added, unless the channel has a number of attempts of its own.
    Unavailable {
        /// The reason.
        reason: String,
        /// How long the whole channel waits. `None`: each chat tries again on its own.
        after: Option<Duration>,
    },
    /// The message of an edit no longer exists, or is too old for an edit. The gateway sends a new message.
    Gone(String),
    /// Another attempt has the same result.
    Never(String),
}

impl SendError {
    /// Returns an error of the connection or the service, after which the same chat may be tried again.
    pub fn later(reason: impl Into<String>) -> Self {
        Self::Later { reason: reason.into(), after: None, scope: RateScope::Chat }
    }

    /// Returns what a status means that is not an answer of the service, but for example one of a proxy. `None`: the call may
    /// have had an effect.
    ///
    /// The codes are those of RFC 9110 and RFC 6585. 401, 407 and 511 concern all messages, and 413 the size of this one. The
    /// other codes from 400 to 499 may concern only this message, for example because of its content.
    pub fn of_foreign_status(status: u16, reason: impl Into<String>) -> Option<Self> {
        let reason = reason.into();
        match status {
            413 => Some(Self::Never(reason)),
            401 | 407 | 511 => Some(Self::Unavailable { reason, after: Some(AFTER_REJECTION) }),
            400..500 => Some(Self::later(reason)),
            _ => None,
        }
    }

    /// Returns the error of a service that rejects the credentials. The whole channel waits for a minute.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), after: Some(AFTER_REJECTION) }
    }
}

/// What a limit of the service concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateScope {
    /// The chat.
    Chat,
    /// All chats of the channel.
    Channel,
}
