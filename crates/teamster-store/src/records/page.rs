//! Pages of lists, events of the log, and what an operation adds to the log and to the delivery queue.

use super::delivery::NewDelivery;
use crate::ids::{ConversationId, Cursor, FeedCursor, Json, Seq, Timestamp, TurnId};

/// Which part of a list is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The largest number of items; at least 1.
    pub limit: u32,
    /// The position after which the page starts. `None` is the start of the list.
    pub cursor: Option<Cursor>,
}

impl PageRequest {
    /// Requests the first items of a list.
    pub const fn first(limit: u32) -> Self {
        Self { limit, cursor: None }
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The position of the next page. `None` if the list ends here.
    pub next: Option<Cursor>,
}

/// An event to append to a conversation's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// The type of the event, for example `turn_started`.
    pub kind: String,
    /// The turn to which it belongs.
    pub turn: Option<TurnId>,
    /// When it happened, which may be before it is stored.
    pub at: Timestamp,
    /// Its fields.
    pub body: Json,
}

impl NewEvent {
    /// Returns the event as one of a turn, unless it belongs to another one.
    pub(crate) fn of_turn(self, turn: TurnId) -> Self {
        Self { turn: self.turn.or(Some(turn)), ..self }
    }
}

/// The types of the events that contain the messages and answers of a conversation.
pub const MESSAGE_EVENTS: [&str; 4] = ["turn_queued", "turn_edited", "done", "conversation_restarted"];

/// An event of a conversation's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in the conversation.
    pub seq: Seq,
    /// The type of the event.
    pub kind: String,
    /// The turn to which it belongs.
    pub turn: Option<TurnId>,
    /// When it happened.
    pub at: Timestamp,
    /// Its fields.
    pub body: Json,
}

/// A part of a conversation's log, in order and without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// The last number of the log at the time of the call. If it is the last of `events`, the page is complete.
    pub last_seq: Seq,
}

/// An event in the feed of all conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedEvent {
    /// The conversation.
    pub conversation: ConversationId,
    /// The event.
    pub event: Event,
    /// The position after it, with which a reader continues.
    pub cursor: FeedCursor,
}

/// A part of the feed. Events of one conversation are in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPage {
    /// The events.
    pub events: Vec<FeedEvent>,
    /// The position after the page, with which the caller continues.
    pub cursor: FeedCursor,
}

/// What an operation adds in the same transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Events for the conversation's log.
    pub events: Vec<NewEvent>,
    /// Deliveries. One whose key exists is not added again.
    pub deliveries: Vec<NewDelivery>,
}

impl Effects {
    /// Adds events only.
    pub const fn events(events: Vec<NewEvent>) -> Self {
        Self { events, deliveries: Vec::new() }
    }
}
