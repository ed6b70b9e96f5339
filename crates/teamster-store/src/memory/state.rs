//! The contents of the model, and the rules that several operations share.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Entity, Result, StoreError};
use crate::ids::{
    ConversationId, Cursor, Day, DeliveryId, Epoch, Json, PermissionId, ScheduleId, Seq, Timestamp, TurnId, WorkerId,
};
use crate::records::{
    AuditEntry, ChatAddress, Conversation, ConversationState, Delivery, DeliveryPart, DeliveryState, Effects, Event,
    Lease, NewDelivery, NewEvent, Page, PageRequest, Permission, Schedule, Session, Token, Turn, TurnState, Usage,
};

/// The position of a record in the order of creation.
pub(super) type Key = u64;

#[derive(Debug, Default)]
pub(super) struct State {
    last_key: Key,
    pub(super) conversations: BTreeMap<ConversationId, Room>,
    pub(super) addresses: BTreeMap<ChatAddress, ConversationId>,
    pub(super) turns: BTreeMap<TurnId, (Key, Turn)>,
    /// The turn of each channel id; `None` if it was deleted.
    pub(super) channel_ids: BTreeMap<(String, String), Option<TurnId>>,
    /// The body hash and the turn of each idempotency key.
    pub(super) idempotency: BTreeMap<(String, String), ([u8; 32], Option<TurnId>)>,
    pub(super) permissions: BTreeMap<Key, Permission>,
    pub(super) deliveries: BTreeMap<Key, QueuedDelivery>,
    pub(super) schedules: BTreeMap<Key, Schedule>,
    pub(super) usage: BTreeMap<(Day, String, ConversationId, String), Usage>,
    pub(super) spent: BTreeMap<(String, Day), u64>,
    pub(super) reserved: BTreeMap<(TurnId, String), (Day, u64)>,
    pub(super) tokens: BTreeMap<Key, Token>,
    pub(super) audit: Vec<AuditEntry>,
    pub(super) channel_state: BTreeMap<String, Json>,
    /// The conversation and number of each event, by position.
    pub(super) feed: BTreeMap<Key, (ConversationId, Seq)>,
    pub(super) last_position: Key,
    /// The last position that retention has deleted.
    pub(super) pruned_position: Key,
}

/// A conversation with what belongs to it.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) key: Key,
    pub(super) address: ChatAddress,
    pub(super) agent: String,
    pub(super) title: Option<String>,
    pub(super) settings: Json,
    pub(super) version: u64,
    pub(super) created_at: Timestamp,
    pub(super) events: BTreeMap<Seq, Event>,
    pub(super) last_seq: Seq,
    pub(super) oldest_seq: Seq,
    /// The session of each agent, with the last event when it was stored.
    pub(super) sessions: BTreeMap<String, (Session, Seq)>,
    pub(super) epoch: Epoch,
    pub(super) held: Option<Held>,
    pub(super) paused_until: Option<Timestamp>,
    /// When the last turn was released.
    pub(super) free_since: Timestamp,
}

/// Who holds a conversation, and for which turn.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) worker: WorkerId,
    pub(super) until: Timestamp,
    pub(super) turn: TurnId,
}

#[derive(Debug)]
pub(super) struct QueuedDelivery {
    pub(super) delivery: Delivery,
    pub(super) epoch: Epoch,
    /// Who sends it, and until when.
    pub(super) held: Option<(WorkerId, Timestamp)>,
}

impl State {
    pub(super) fn next_key(&mut self) -> Key {
        self.last_key += 1;
        self.last_key
    }

    pub(super) fn room(&self, id: ConversationId) -> Result<&Room> {
        self.conversations.get(&id).ok_or_else(|| StoreError::not_found(Entity::Conversation, id))
    }

    pub(super) fn room_mut(&mut self, id: ConversationId) -> Result<&mut Room> {
        self.conversations.get_mut(&id).ok_or_else(|| StoreError::not_found(Entity::Conversation, id))
    }

    pub(super) fn turn(&self, id: TurnId) -> Result<&Turn> {
        self.turns.get(&id).map(|(_, turn)| turn).ok_or_else(|| StoreError::not_found(Entity::Turn, id))
    }

    pub(super) fn turn_mut(&mut self, id: TurnId) -> Result<&mut Turn> {
        self.turns.get_mut(&id).map(|(_, turn)| turn).ok_or_else(|| StoreError::not_found(Entity::Turn, id))
    }

    /// Checks that the lease is the last claim of a conversation whose turn runs.
    pub(super) fn check_lease(&self, lease: Lease) -> Result<()> {
        let held = self.conversations.get(&lease.conversation).filter(|room| room.epoch == lease.epoch);
        match held.and_then(|room| room.held.as_ref()) {
            Some(held) if held.turn == lease.turn => Ok(()),
            _ => Err(StoreError::LeaseLost { conversation: lease.conversation, epoch: lease.epoch }),
        }
    }

    /// Returns the turns of a conversation in order.
    pub(super) fn turns_of(&self, id: ConversationId) -> Vec<(Key, &Turn)> {
        let mut turns: Vec<_> =
            self.turns.values().filter(|(_, turn)| turn.conversation == id).map(|(key, turn)| (*key, turn)).collect();
        turns.sort_by_key(|(key, _)| *key);
        turns
    }

    /// Returns since when a conversation can be claimed, even if that is in the future.
    pub(super) fn ready_at(&self, id: ConversationId, room: &Room, now: Timestamp) -> Option<Timestamp> {
        if let Some(held) = &room.held {
            return Some(held.until);
        }
        let (_, head) = self.turns_of(id).into_iter().find(|(_, turn)| turn.state == TurnState::Queued)?;
        // The end of the last turn only orders conversations.
        if head.abort_requested {
            return Some(room.free_since.min(now));
        }
        Some(head.not_before.max(room.free_since.min(now)).max(room.paused_until.unwrap_or_default()))
    }

    /// Returns whether a running turn waits for a person.
    pub(super) fn waits(&self, held: &Held) -> bool {
        self.permissions.values().any(|one| one.turn == held.turn && one.closing.is_none())
    }

    pub(super) fn conversation(&self, id: ConversationId, now: Timestamp) -> Result<Conversation> {
        let room = self.room(id)?;
        let queued = self.turns_of(id).iter().filter(|(_, turn)| turn.state == TurnState::Queued).count();
        let state = match &room.held {
            Some(held) if self.waits(held) => ConversationState::Waiting,
            Some(_) => ConversationState::Running,
            None if queued == 0 => ConversationState::Idle,
            None if room.paused_until.is_some_and(|until| until > now) => ConversationState::Paused,
            None => ConversationState::Queued,
        };
        Ok(Conversation {
            id,
            address: room.address.clone(),
            agent: room.agent.clone(),
            title: room.title.clone(),
            settings: room.settings.clone(),
            version: room.version,
            state,
            last_seq: room.last_seq,
            oldest_seq: room.oldest_seq,
            queued: u32::try_from(queued).unwrap_or(u32::MAX),
            session_id: room.sessions.get(&room.agent).map(|(session, _)| session.id.clone()),
            worker: room.held.as_ref().map(|held| held.worker.clone()),
            epoch: room.epoch,
            paused_until: room.paused_until,
            created_at: room.created_at,
        })
    }

    /// Appends events to the log of a conversation, and returns the number of the last one.
    pub(super) fn append_events(&mut self, id: ConversationId, events: Vec<NewEvent>) -> Result<Seq> {
        for event in events {
            self.last_position += 1;
            let position = self.last_position;
            let room = self.room_mut(id)?;
            let seq = room.last_seq.next();
            let NewEvent { kind, turn, at, body } = event;
            room.events.insert(seq, Event { seq, kind, turn, at, body });
            room.last_seq = seq;
            self.feed.insert(position, (id, seq));
        }
        Ok(self.room(id)?.last_seq)
    }

    /// Checks that deliveries can be added: a new key needs a new id.
    pub(super) fn check_deliveries<'a>(&self, deliveries: impl IntoIterator<Item = &'a NewDelivery>) -> Result<()> {
        let known = |key: &str| self.deliveries.values().any(|one| one.delivery.key == key);
        let mut keys = BTreeSet::new();
        let mut ids: BTreeSet<DeliveryId> = self.deliveries.values().map(|one| one.delivery.id).collect();
        for new in deliveries {
            if !known(&new.key) && keys.insert(new.key.as_str()) && !ids.insert(new.id) {
                return Err(StoreError::exists(Entity::Delivery, new.id));
            }
        }
        Ok(())
    }

    /// Adds deliveries with new keys, and returns their number.
    pub(super) fn add_deliveries(&mut self, deliveries: Vec<NewDelivery>, now: Timestamp) -> u32 {
        let mut added = 0;
        for new in deliveries {
            if self.deliveries.values().any(|one| one.delivery.key == new.key) {
                continue;
            }
            added += 1;
            let key = self.next_key();
            self.deliveries.insert(key, queued(new, now));
        }
        added
    }

    /// Applies effects. The caller has checked the deliveries.
    pub(super) fn apply(&mut self, id: ConversationId, effects: Effects, now: Timestamp) -> Result<Seq> {
        let seq = self.append_events(id, effects.events)?;
        self.add_deliveries(effects.deliveries, now);
        Ok(seq)
    }

    pub(super) fn permission_key(&self, id: PermissionId) -> Option<Key> {
        self.permissions.iter().find(|(_, one)| one.id == id).map(|(key, _)| *key)
    }

    pub(super) fn schedule_key(&self, id: ScheduleId) -> Option<Key> {
        self.schedules.iter().find(|(_, one)| one.id == id).map(|(key, _)| *key)
    }
}

fn queued(new: NewDelivery, now: Timestamp) -> QueuedDelivery {
    let NewDelivery { id, key, address, conversation, turn, body, not_before } = new;
    let delivery = Delivery {
        id,
        key,
        address,
        conversation,
        turn,
        body,
        state: DeliveryState::Pending,
        attempts: 0,
        not_before,
        parts: Vec::<DeliveryPart>::new(),
        error: None,
        created_at: now,
        ended_at: None,
    };
    QueuedDelivery { delivery, epoch: Epoch::default(), held: None }
}

pub(super) fn check_limit(limit: u32) -> Result<usize> {
    match limit {
        0 => Err(StoreError::Invalid { reason: "the limit of a list must be at least 1" }),
        _ => Ok(usize::try_from(limit).unwrap_or(usize::MAX)),
    }
}

/// Returns the key in a cursor.
pub(super) fn key_of(cursor: Option<&Cursor>) -> Result<Option<Key>> {
    let parsed = cursor.map(|cursor| cursor.as_str().parse()).transpose();
    parsed.map_err(|_| StoreError::Invalid { reason: "the cursor is not one of this list" })
}

/// Cuts a page out of records in the order of their keys.
pub(super) fn page<T>(records: impl Iterator<Item = (Key, T)>, request: &PageRequest) -> Result<Page<T>> {
    let limit = check_limit(request.limit)?;
    let after = key_of(request.cursor.as_ref())?;
    let mut found: Vec<_> =
        records.filter(|(key, _)| after.is_none_or(|after| *key > after)).take(limit.saturating_add(1)).collect();
    let is_last = found.len() <= limit;
    found.truncate(limit);
    let next = found.last().filter(|_| !is_last).map(|(key, _)| Cursor::new(key.to_string()));
    Ok(Page { items: found.into_iter().map(|(_, record)| record).collect(), next })
}
