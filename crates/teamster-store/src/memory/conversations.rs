//! Conversations in the model.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{Key, Room, State, check_limit, key_of};
use crate::error::{Entity, Result, StoreError, TOO_LARGE_FORK};
use crate::ids::{ConversationId, Cursor, Epoch, Seq, Timestamp};
use crate::records::{
    ChatAddress, Conversation, ConversationFilter, ConversationPatch, Effects, Event, Fork, MAX_FORK_BYTES,
    MAX_FORK_EVENTS, NewConversation, NewEvent, Page, PageRequest,
};
use crate::store::ConversationStore;

#[async_trait]
impl ConversationStore for MemoryStore {
    async fn create_conversation(
        &self,
        new: NewConversation,
        fork: Option<Fork>,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.with(|state| {
            let copied = fork.map(|fork| state.events_of_fork(fork)).transpose()?.unwrap_or_default();
            let id = state.create(new, now)?;
            state.append_events(id, copied)?;
            state.conversation(id, now)
        })
    }

    async fn update_conversation(
        &self,
        id: ConversationId,
        patch: ConversationPatch,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.with(|state| {
            state.check_deliveries(&effects.deliveries)?;
            let room = state.room_mut(id)?;
            if patch.expected_version.is_some_and(|expected| expected != room.version) {
                return Err(StoreError::VersionConflict { current: room.version });
            }
            let ConversationPatch { agent, title, settings, expected_version: _ } = patch;
            if agent.is_some() || title.is_some() || settings.is_some() {
                room.version += 1;
            }
            room.agent = agent.unwrap_or_else(|| room.agent.clone());
            room.title = title.unwrap_or_else(|| room.title.clone());
            room.settings = settings.unwrap_or_else(|| room.settings.clone());
            state.apply(id, effects, now)?;
            state.conversation(id, now)
        })
    }

    async fn resume_conversation(&self, id: ConversationId, effects: Effects, now: Timestamp) -> Result<Conversation> {
        self.with(|state| {
            state.check_deliveries(&effects.deliveries)?;
            state.room_mut(id)?.paused_until = None;
            state.apply(id, effects, now)?;
            state.conversation(id, now)
        })
    }

    async fn delete_conversation(&self, id: ConversationId, now: Timestamp) -> Result<()> {
        self.with(|state| {
            if state.room(id)?.held.as_ref().is_some_and(|held| held.until > now) {
                return Err(StoreError::ConversationBusy { conversation: id });
            }
            if let Some(room) = state.conversations.remove(&id) {
                state.addresses.remove(&room.address);
            }
            state.turns.retain(|_, (_, turn)| turn.conversation != id);
            state.forget_deleted_turns();
            state.permissions.retain(|_, one| one.conversation != id);
            state.deliveries.retain(|_, one| one.delivery.conversation != Some(id));
            state.schedules.retain(|_, one| one.conversation != id);
            state.feed.retain(|_, (conversation, _)| *conversation != id);
            Ok(())
        })
    }

    async fn conversation(&self, id: ConversationId, now: Timestamp) -> Result<Option<Conversation>> {
        self.with(|state| state.conversations.contains_key(&id).then(|| state.conversation(id, now)).transpose())
    }

    async fn conversation_at(&self, address: ChatAddress, now: Timestamp) -> Result<Option<Conversation>> {
        self.with(|state| {
            let id = state.addresses.get(&address).copied();
            id.map(|id| state.conversation(id, now)).transpose()
        })
    }

    async fn forget_sessions(&self, id: ConversationId, effects: Effects, now: Timestamp) -> Result<Conversation> {
        self.with(|state| {
            state.check_deliveries(&effects.deliveries)?;
            let room = state.room_mut(id)?;
            if room.held.is_some() {
                return Err(StoreError::ConversationBusy { conversation: id });
            }
            room.sessions.clear();
            room.epoch = room.epoch.next();
            state.apply(id, effects, now)?;
            state.conversation(id, now)
        })
    }

    async fn conversations(
        &self,
        filter: ConversationFilter,
        page: PageRequest,
        now: Timestamp,
    ) -> Result<Page<Conversation>> {
        self.with(|state| {
            let limit = check_limit(page.limit)?;
            let before = key_of(page.cursor.as_ref())?;
            let mut keys: Vec<(Key, ConversationId)> =
                state.conversations.iter().map(|(id, room)| (room.key, *id)).collect();
            keys.sort_by_key(|(key, _)| Reverse(*key));
            let mut found = Vec::new();
            for (key, id) in keys {
                let conversation = state.conversation(id, now)?;
                if before.is_none_or(|before| key < before) && state.matches(&conversation, &filter) {
                    found.push((key, conversation));
                }
            }
            let is_last = found.len() <= limit;
            found.truncate(limit);
            let next = found.last().filter(|_| !is_last).map(|(key, _)| Cursor::new(key.to_string()));
            Ok(Page { items: found.into_iter().map(|(_, conversation)| conversation).collect(), next })
        })
    }
}

impl State {
    /// Creates an empty conversation.
    pub(super) fn create(&mut self, new: NewConversation, now: Timestamp) -> Result<ConversationId> {
        let NewConversation { id, address, agent, title, settings } = new;
        if self.conversations.contains_key(&id) {
            return Err(StoreError::exists(Entity::Conversation, id));
        }
        if self.addresses.contains_key(&address) {
            let ChatAddress { channel, chat, thread } = address;
            return Err(StoreError::exists(Entity::Conversation, format!("{channel}/{chat}/{thread}")));
        }
        self.addresses.insert(address.clone(), id);
        let room = Room {
            key: self.next_key(),
            address,
            agent,
            title,
            settings,
            version: 1,
            created_at: now,
            events: BTreeMap::new(),
            last_seq: Seq::START,
            oldest_seq: Seq::START.next(),
            sessions: BTreeMap::new(),
            epoch: Epoch::default(),
            held: None,
            paused_until: None,
            free_since: Timestamp::default(),
        };
        self.conversations.insert(id, room);
        Ok(id)
    }

    fn events_of_fork(&self, fork: Fork) -> Result<Vec<NewEvent>> {
        let room = self.room(fork.from)?;
        if room.oldest_seq > Seq::new(1) {
            return Err(StoreError::EventsPruned { oldest: room.oldest_seq });
        }
        if fork.after > room.last_seq {
            return Err(StoreError::Invalid { reason: "the fork is after the end of the log" });
        }
        let size: usize = room.events.range(..=fork.after).map(|(_, event)| event.body.as_str().len()).sum();
        if fork.after.get() > MAX_FORK_EVENTS || u64::try_from(size).unwrap_or(u64::MAX) > MAX_FORK_BYTES {
            return Err(StoreError::Invalid { reason: TOO_LARGE_FORK });
        }
        let copied = room.events.range(..=fork.after).map(|(_, event)| {
            let Event { seq: _, kind, turn, at, body } = event.clone();
            NewEvent { kind, turn, at, body }
        });
        Ok(copied.collect())
    }

    /// Removes the deleted turn from channel ids and idempotency keys, but keeps the ids and keys.
    pub(super) fn forget_deleted_turns(&mut self) {
        let turns = &self.turns;
        let forget = |turn: &mut Option<_>| *turn = turn.filter(|turn| turns.contains_key(turn));
        self.channel_ids.values_mut().for_each(forget);
        self.idempotency.values_mut().for_each(|(_, turn)| forget(turn));
        self.reserved.retain(|(turn, _), _| turns.contains_key(turn));
        self.permissions.retain(|_, one| turns.contains_key(&one.turn));
    }

    fn matches(&self, conversation: &Conversation, filter: &ConversationFilter) -> bool {
        let contains = |text: &str, part: &str| text.to_ascii_lowercase().contains(&part.to_ascii_lowercase());
        let is_text = |part: &String| {
            conversation.title.as_ref().is_some_and(|title| contains(title, part))
                || self.turns_of(conversation.id).iter().any(|(_, turn)| contains(&turn.message.text, part))
        };
        filter.state.is_none_or(|state| conversation.state == state)
            && filter.agent.as_ref().is_none_or(|agent| conversation.agent == *agent)
            && filter.channel.as_ref().is_none_or(|channel| conversation.address.channel == *channel)
            && filter.text.as_ref().is_none_or(is_text)
    }
}
