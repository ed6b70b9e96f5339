//! Turns and events in the model.

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{check_limit, page};
use crate::error::{Result, StoreError};
use crate::feed_position::FeedPosition;
use crate::ids::{ConversationId, FeedCursor, Seq, TurnId};
use crate::records::{Event, EventPage, FeedEvent, FeedPage, MESSAGE_EVENTS, Page, PageRequest, Turn, TurnState};
use crate::store::LogStore;

#[async_trait]
impl LogStore for MemoryStore {
    async fn turn(&self, id: TurnId) -> Result<Option<Turn>> {
        self.with(|state| Ok(state.turns.get(&id).map(|(_, turn)| turn.clone())))
    }

    async fn turn_of_message(&self, channel: String, channel_id: String) -> Result<Option<Turn>> {
        self.with(|state| {
            let known = state.channel_ids.get(&(channel, channel_id)).copied().flatten();
            Ok(known.and_then(|id| state.turns.get(&id)).map(|(_, turn)| turn.clone()))
        })
    }

    async fn turns(&self, conversation: ConversationId, request: PageRequest) -> Result<Page<Turn>> {
        self.with(|state| {
            state.room(conversation)?;
            page(state.turns_of(conversation).into_iter().map(|(key, turn)| (key, turn.clone())), &request)
        })
    }

    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<Turn>> {
        self.with(|state| {
            state.room(conversation)?;
            let turns = state.turns_of(conversation).into_iter().map(|(_, turn)| turn);
            Ok(turns.filter(|turn| turn.ended_at.is_none()).cloned().collect())
        })
    }

    async fn waiting_turns(&self, channel: String, author: String, limit: u32) -> Result<u32> {
        self.with(|state| {
            let is_in = |turn: &Turn| {
                state.conversations.get(&turn.conversation).is_some_and(|room| room.address.channel == channel)
            };
            let waits = |turn: &Turn| turn.state == TurnState::Queued && turn.message.author == author && is_in(turn);
            let count = state.turns.values().filter(|(_, turn)| waits(turn)).count();
            Ok(u32::try_from(count).unwrap_or(u32::MAX).min(limit))
        })
    }

    async fn events(&self, conversation: ConversationId, after: Seq, limit: u32) -> Result<EventPage> {
        self.with(|state| {
            let limit = check_limit(limit)?;
            let room = state.room(conversation)?;
            if after.next() < room.oldest_seq {
                return Err(StoreError::EventsPruned { oldest: room.oldest_seq });
            }
            let events = room.events.range(after.next()..).take(limit).map(|(_, event)| event.clone()).collect();
            Ok(EventPage { events, last_seq: room.last_seq })
        })
    }

    async fn messages_before(&self, conversation: ConversationId, before: Seq, limit: u32) -> Result<Vec<Event>> {
        self.with(|state| {
            let limit = check_limit(limit)?;
            let events = state.room(conversation)?.events.range(..before).rev().map(|(_, event)| event);
            Ok(events.filter(|event| MESSAGE_EVENTS.contains(&event.kind.as_str())).take(limit).cloned().collect())
        })
    }

    async fn feed(&self, after: Option<FeedCursor>, limit: u32) -> Result<FeedPage> {
        self.with(|state| {
            let limit = check_limit(limit)?;
            let position = FeedPosition::read(after.as_ref(), state.pruned_position, state.last_position)?;
            let mut last = position.after;
            let mut events = Vec::new();
            for (number, (conversation, seq)) in state.feed.range(last.saturating_add(1)..).take(limit) {
                last = *number;
                let event = state.conversations.get(conversation).and_then(|room| room.events.get(seq));
                let cursor = position.at(last);
                events.extend(event.cloned().map(|event| FeedEvent { conversation: *conversation, event, cursor }));
            }
            Ok(FeedPage { events, cursor: position.at(last) })
        })
    }

    async fn feed_end(&self) -> Result<FeedCursor> {
        self.with(|state| Ok(FeedCursor::new(state.last_position.to_string())))
    }
}
