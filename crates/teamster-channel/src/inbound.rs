//! The input of a channel.

use async_trait::async_trait;
use serde_json::Value;

use crate::outbound::Address;

/// A message of a person or a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The service's own ids: several for an album or a text that its client has split. Each is unique in the channel.
    pub ids: Vec<String>,
    /// Where it was written.
    pub address: Address,
    /// Who wrote it.
    pub author: Author,
    /// Its text, without the mention of the bot.
    pub text: String,
    /// Its attachments. An album is one message with several ids: hold its updates until it is complete.
    pub attachments: Vec<Attachment>,
    /// Whether it is addressed to the bot: by a mention, a direct message or a reply.
    pub is_addressed: bool,
}

/// Who wrote a message or pressed a button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The service's own id, which a person cannot choose.
    pub id: String,
    /// The name for people. It is untrusted.
    pub name: String,
    /// Whether the author is a program.
    pub is_bot: bool,
}

/// An attachment that the channel has downloaded.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The sender's file name, for people only. It never becomes a path.
    pub name: String,
    /// The media type, as the sender states it.
    pub media_type: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Without the content.
impl std::fmt::Debug for Attachment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, media_type, bytes } = self;
        write!(formatter, "Attachment {{ name: {name:?}, media_type: {media_type:?}, bytes: {} }}", bytes.len())
    }
}

/// A changed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The service's own id of the message.
    pub id: String,
    /// The new text.
    pub text: String,
}

/// The outcome of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The message waits, and it has the new text.
    Edited,
    /// The agent works on the message, or its turn has ended. It keeps its text.
    NotWaiting,
    /// No accepted message has this id.
    Unknown,
    /// A rule or a hook rejects the new text, with a reason for the author. The message keeps its text. The chat gets a
    /// notice about it.
    Refused(String),
}

/// An answer to a [`Prompt`](crate::Prompt), from a button or a text command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptAnswer {
    /// The token of the pressed button ([`Button::token`](crate::Button)).
    pub token: String,
    /// The text for a button that takes one, or a reason for the agent.
    pub message: Option<String>,
    /// Who pressed it.
    pub author: Author,
    /// Where it was pressed.
    pub address: Address,
}

/// The outcome of a button press.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptDecision {
    /// The answer is accepted.
    Applied,
    /// The request was answered before, or it has ended. Remove the buttons.
    Closed,
    /// The author may not answer. The request stays open.
    NotAllowed,
}

/// A command to the gateway, such as `/stop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatCommand {
    /// Its name without the slash.
    pub name: String,
    /// The rest of the line.
    pub argument: String,
    /// Who sent it.
    pub author: Author,
    /// Where it was sent.
    pub address: Address,
}

/// The answer to a command: a text in Markdown. Show it to the sender only, where the service can do that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandReply {
    /// The text.
    pub text: String,
}

/// The outcome of a message. The channel may acknowledge it in each case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The message is durable.
    Accepted {
        /// The turn that answers it.
        turn: String,
    },
    /// It was accepted before.
    Duplicate,
    /// A rule rejects it, or it is not addressed to the bot. Nothing is stored.
    Ignored,
    /// It is refused, with a text for its author. Sending it again has the same result.
    Refused(String),
    /// A queue is full, with a text for its author. It can be sent again later.
    Busy(String),
}

/// Why a call of the inbox failed. Do not acknowledge the message: the service sends it again.
#[derive(Debug, thiserror::Error)]
#[error("the gateway cannot store the message: {0}")]
pub struct InboxError(pub String);

/// Accepts what channels receive. A returned value is durable.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Returns whether rules permit that an author writes at an address.
    ///
    /// Ask it before a download or a refusal: a stranger gets neither. [`Inbox::message`] checks it again. An inbox without rules
    /// admits each author.
    fn is_admitted(&self, _address: &Address, _author: &Author) -> bool {
        true
    }

    /// Accepts a message.
    async fn message(&self, message: Message) -> Result<Receipt, InboxError>;

    /// Replaces the text of a message that waits. A message that an agent works on stays as it was.
    ///
    /// Call it only for an edit by the message's author. A chat service needs no reaction to the outcome.
    async fn edit(&self, edit: Edit) -> Result<EditOutcome, InboxError>;

    /// Withdraws a message that waits: its turn is cancelled. A message that an agent works on is not withdrawn.
    ///
    /// Call it only if the message of a person was removed from the service. An inbox without this ignores it.
    async fn delete(&self, _id: &str) -> Result<(), InboxError> {
        Ok(())
    }

    /// Answers a permission request or a question.
    async fn answer(&self, answer: PromptAnswer) -> Result<PromptDecision, InboxError>;

    /// Runs a command.
    async fn command(&self, command: ChatCommand) -> Result<CommandReply, InboxError>;

    /// Returns the stored state of the channel under a key.
    async fn state(&self, key: &str) -> Result<Option<Value>, InboxError>;

    /// Stores a state of the channel, such as the offset of a poll.
    async fn set_state(&self, key: &str, state: Value) -> Result<(), InboxError>;
}
