//! Conversations and their logs.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{ConversationId, FeedCursor, Seq, Timestamp, TurnId};
use crate::records::{
    ChatAddress, Conversation, ConversationFilter, ConversationPatch, Effects, Event, EventPage, FeedPage, Fork,
    NewConversation, Page, PageRequest, Turn,
};

/// Creates, changes and lists conversations.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// Creates a conversation, empty or with a copy of another one's log.
    ///
    /// Fails with `Exists` if the id or the address is in use, with `EventsPruned` if the copy would not start with the
    /// first event, and with `Invalid` if it would be larger than a fork may be.
    async fn create_conversation(
        &self,
        new: NewConversation,
        fork: Option<Fork>,
        now: Timestamp,
    ) -> Result<Conversation>;

    /// Changes a conversation and appends to its log.
    ///
    /// Fails with `VersionConflict` if the patch expects another version.
    async fn update_conversation(
        &self,
        id: ConversationId,
        patch: ConversationPatch,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Conversation>;

    /// Ends a pause, so that the next turn can start.
    async fn resume_conversation(&self, id: ConversationId, effects: Effects, now: Timestamp) -> Result<Conversation>;

    /// Deletes a conversation with its log, turns, schedules and deliveries. Channel ids of its messages remain known.
    ///
    /// Fails with `ConversationBusy` while a turn runs.
    async fn delete_conversation(&self, id: ConversationId, now: Timestamp) -> Result<()>;

    /// Returns a conversation.
    async fn conversation(&self, id: ConversationId, now: Timestamp) -> Result<Option<Conversation>>;

    /// Returns the conversation with an address.
    async fn conversation_at(&self, address: ChatAddress, now: Timestamp) -> Result<Option<Conversation>>;

    /// Removes the sessions of all agents, so that the next attempt starts a new one. It raises the epoch like a claim,
    /// so a process that keeps a session between two of its claims notices the change.
    ///
    /// Fails with `ConversationBusy` while a turn runs: its end would store its session.
    async fn forget_sessions(&self, id: ConversationId, effects: Effects, now: Timestamp) -> Result<Conversation>;

    /// Lists conversations, the newest first. A page may have fewer than requested if their settings are large.
    async fn conversations(
        &self,
        filter: ConversationFilter,
        page: PageRequest,
        now: Timestamp,
    ) -> Result<Page<Conversation>>;
}

/// Reads turns and events.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// Returns a turn.
    async fn turn(&self, id: TurnId) -> Result<Option<Turn>>;

    /// Returns the turn of a message by one of the channel's own ids.
    async fn turn_of_message(&self, channel: String, channel_id: String) -> Result<Option<Turn>>;

    /// Lists the turns of a conversation, the oldest first.
    async fn turns(&self, conversation: ConversationId, page: PageRequest) -> Result<Page<Turn>>;

    /// Returns the turns of a conversation that have not ended, the oldest first. The limits of the queues bound their number.
    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<Turn>>;

    /// Returns the number of waiting turns of an author in the conversations of a channel, at most `limit`.
    async fn waiting_turns(&self, channel: String, author: String, limit: u32) -> Result<u32>;

    /// Reads the log of a conversation after an event number, at most `limit` events.
    ///
    /// Fails with `EventsPruned` if the next event is deleted.
    async fn events(&self, conversation: ConversationId, after: Seq, limit: u32) -> Result<EventPage>;

    /// Reads the events with the types [`MESSAGE_EVENTS`](crate::MESSAGE_EVENTS) before an event number, the newest first, at most `limit`. Deleted
    /// events are left out.
    async fn messages_before(&self, conversation: ConversationId, before: Seq, limit: u32) -> Result<Vec<Event>>;

    /// Reads the events of all conversations after a position. `None` is the start.
    ///
    /// The position never passes an event that is not visible yet. Events of deleted conversations are left out. Fails with
    /// `FeedPruned` if retention may have deleted events after the position, unless it is the start.
    async fn feed(&self, after: Option<FeedCursor>, limit: u32) -> Result<FeedPage>;

    /// Returns the end of the feed: the position of a reader that wants new events only.
    async fn feed_end(&self) -> Result<FeedCursor>;
}
