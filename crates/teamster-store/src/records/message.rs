//! Messages: the input of a channel, and the results of the store.

use super::conversation::NewConversation;
use super::page::NewEvent;
use crate::ids::{ConversationId, Json, MessageId, Seq, Timestamp, TurnId};

/// A message to accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Its id, if it is new.
    pub id: MessageId,
    /// The id of its turn, if it is new.
    pub turn: TurnId,
    /// Its conversation.
    pub target: Target,
    /// The channel's own ids: several for an album. Each is unique in the channel, for all time.
    pub channel_ids: Vec<String>,
    /// The caller's idempotency key.
    pub idempotency: Option<IdempotencyKey>,
    /// Who wrote it.
    pub author: String,
    /// Its text.
    pub text: String,
    /// Attachments and other fields.
    pub details: Json,
    /// Whether it may join a running turn.
    pub mode: MessageMode,
    /// The event `turn_queued`.
    pub event: NewEvent,
}

/// The conversation of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A conversation that exists.
    Existing(ConversationId),
    /// The conversation with this address. It is created if there is none.
    Address(NewConversation),
}

/// An idempotency key. A repeated call with the same key has no second effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Whose key it is, for example the id of the token.
    pub scope: String,
    /// The key.
    pub key: String,
    /// A hash of the body.
    pub body_hash: [u8; 32],
}

/// Whether a message may go into a running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageMode {
    /// It waits for its own turn.
    Queue,
    /// It joins the running turn if possible.
    Steer,
}

/// The limits of the queues. They count waiting turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The largest number of waiting turns of a chat, in all of its threads.
    pub chat: u32,
    /// The largest number of waiting turns of all conversations.
    pub total: u32,
}

/// A message in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Who wrote it.
    pub author: String,
    /// Its text.
    pub text: String,
    /// Attachments and other fields.
    pub details: Json,
    /// Whether it may join a running turn.
    pub mode: MessageMode,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

/// The outcome of an accepted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The message is new and durable now.
    New(AcceptedTurn),
    /// The message was accepted before; this is the first outcome.
    Duplicate(AcceptedTurn),
    /// The message was accepted before. It has been deleted since.
    Deleted,
}

/// A message's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedTurn {
    /// The conversation.
    pub conversation: ConversationId,
    /// The message.
    pub message: MessageId,
    /// The turn.
    pub turn: TurnId,
    /// The number of the event `turn_queued`.
    pub seq: Seq,
}

/// A changed message of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageEdit {
    /// The channel.
    pub channel: String,
    /// One of the channel's own ids of the message.
    pub channel_id: String,
    /// The new text.
    pub text: String,
    /// The new attachments and other fields. `None` keeps them.
    pub details: Option<Json>,
    /// Events for the log, if the message is replaced. One without a turn belongs to the turn of the message.
    pub events: Vec<NewEvent>,
}

/// The outcome of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The message waited, and it has the new text now.
    Replaced(TurnId),
    /// The turn has started or ended. Nothing has changed.
    TooLate(TurnId),
    /// No message has this id.
    Unknown,
}
