//! Tokens, the audit log, state of channels, usage, retention and figures in the model.

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{Key, Room, State, check_limit, page};
use crate::error::{Entity, Result, StoreError};
use crate::file_names::take_names;
use crate::ids::{ConversationId, Day, Json, Seq, Timestamp, TokenId, TurnId};
use crate::records::{
    ABANDONED_CHANNEL, AuditEntry, BudgetStatus, DeliveryState, NewAuditEntry, Page, PageRequest, Pruned,
    RetentionPolicy, StoreStatus, Token, TurnState, UsageQuery, UsageRow,
};
use crate::store::{AccessStore, MaintenanceStore};

#[async_trait]
impl AccessStore for MemoryStore {
    async fn add_token(&self, token: Token) -> Result<()> {
        self.with(|state| {
            if state.tokens.values().any(|one| one.id == token.id || one.hash == token.hash) {
                return Err(StoreError::exists(Entity::Token, token.id));
            }
            let key = state.next_key();
            state.tokens.insert(key, token);
            Ok(())
        })
    }

    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>> {
        self.with(|state| Ok(state.tokens.values().find(|token| token.hash == hash).cloned()))
    }

    async fn revoke_token(&self, id: TokenId, now: Timestamp) -> Result<Token> {
        self.with(|state| {
            let token = state.tokens.values_mut().find(|token| token.id == id);
            let token = token.ok_or_else(|| StoreError::not_found(Entity::Token, id))?;
            token.revoked_at = token.revoked_at.or(Some(now));
            Ok(token.clone())
        })
    }

    async fn remove_token(&self, id: TokenId) -> Result<bool> {
        self.with(|state| {
            let before = state.tokens.len();
            state.tokens.retain(|_, token| token.id != id);
            Ok(state.tokens.len() < before)
        })
    }

    async fn tokens(&self, request: PageRequest) -> Result<Page<Token>> {
        self.with(|state| page(state.tokens.iter().map(|(key, token)| (*key, token.clone())), &request))
    }

    async fn record_audit(&self, entry: NewAuditEntry, now: Timestamp) -> Result<()> {
        self.with(|state| {
            let number = Key::try_from(state.audit.len()).unwrap_or(Key::MAX).saturating_add(1);
            state.audit.push(AuditEntry { number, at: now, entry });
            Ok(())
        })
    }

    async fn audit_log(&self, request: PageRequest) -> Result<Page<AuditEntry>> {
        self.with(|state| page(state.audit.iter().map(|entry| (entry.number, entry.clone())), &request))
    }
}

#[async_trait]
impl MaintenanceStore for MemoryStore {
    async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>> {
        self.with(|state| {
            let in_query = |day: Day, id: ConversationId| {
                (query.from..=query.to).contains(&day) && query.conversation.is_none_or(|wanted| wanted == id)
            };
            let rows = state.usage.iter().filter(|((day, _, id, _), _)| in_query(*day, *id));
            let rows = rows.map(|((day, agent, conversation, author), usage)| UsageRow {
                day: *day,
                agent: agent.clone(),
                conversation: *conversation,
                author: author.clone(),
                usage: *usage,
            });
            Ok(rows.collect())
        })
    }

    async fn budget(&self, scope: String, day: Day) -> Result<BudgetStatus> {
        self.with(|state| Ok(state.budget_without(&scope, day, None)))
    }

    async fn prune(&self, policy: RetentionPolicy, _now: Timestamp) -> Result<Pruned> {
        self.with(|state| {
            let batch = check_limit(policy.batch)?;
            let events = state.prune_events(policy, batch);
            let is_old = |ended: Option<Timestamp>| {
                policy.ended_before.is_some_and(|before| ended.is_some_and(|ended| ended < before))
            };
            let turns = state.turns.values().filter(|(_, turn)| is_old(turn.ended_at));
            let mut turns: Vec<_> = turns.map(|(key, turn)| (*key, turn.id)).collect();
            turns.sort_unstable();
            turns.truncate(batch);
            for (_, id) in &turns {
                state.turns.remove(id);
            }
            state.forget_deleted_turns();
            let deliveries = state.deliveries.iter().filter(|(_, one)| is_old(one.delivery.ended_at));
            let deliveries: Vec<_> = deliveries.map(|(key, _)| *key).take(batch).collect();
            for key in &deliveries {
                state.deliveries.remove(key);
            }
            let conversations = state.prune_conversations(policy, batch);
            let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            let more = [events, turns.len(), deliveries.len(), conversations].into_iter().any(|count| count >= batch);
            Ok(Pruned {
                events: count(events),
                turns: count(turns.len()),
                deliveries: count(deliveries.len()),
                conversations: count(conversations),
                more,
            })
        })
    }

    async fn needed_files(&self, hashes: Vec<String>) -> Result<Vec<String>> {
        self.with(|state| {
            let (mut wanted, mut found) = (hashes.into_iter().collect(), Vec::new());
            let turns = state.turns.values().map(|(_, turn)| &turn.message.details);
            let deliveries = state.deliveries.values().map(|one| &one.delivery.body);
            let events = state.conversations.values().flat_map(|room| room.events.values());
            let events = events.filter(|event| event.kind == "message_sent").map(|event| &event.body);
            for document in turns.chain(deliveries).chain(events) {
                take_names(document.as_str(), &mut wanted, &mut found);
            }
            found.sort_unstable();
            Ok(found)
        })
    }

    async fn set_channel_state(&self, key: String, value: Json) -> Result<()> {
        self.with(|state| {
            state.channel_state.insert(key, value);
            Ok(())
        })
    }

    async fn channel_state(&self, key: String) -> Result<Option<Json>> {
        self.with(|state| Ok(state.channel_state.get(&key).cloned()))
    }

    async fn status(&self, now: Timestamp) -> Result<StoreStatus> {
        self.with(|state| {
            let turns = |wanted| state.turns.values().filter(move |(_, turn)| turn.state == wanted).count();
            let rooms = || state.conversations.iter();
            let expired = rooms().filter(|(_, room)| room.held.as_ref().is_some_and(|held| held.until <= now));
            let open = state.permissions.values().filter(|one| one.closing.is_none());
            let ended = |state: DeliveryState| matches!(state, DeliveryState::Failed | DeliveryState::Unknown);
            let waits = |state: DeliveryState| matches!(state, DeliveryState::Pending | DeliveryState::Sending);
            let deliveries =
                |is: fn(DeliveryState) -> bool| state.deliveries.values().filter(|one| is(one.delivery.state)).count();
            let ready = rooms().filter_map(|(id, room)| state.ready_at(*id, room, now)).filter(|at| *at <= now);
            let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            Ok(StoreStatus {
                conversations: count(state.conversations.len()),
                queued_turns: count(turns(TurnState::Queued)),
                running_turns: count(turns(TurnState::Running)),
                expired_leases: count(expired.count()),
                open_permissions: count(open.count()),
                pending_deliveries: count(deliveries(waits)),
                failed_deliveries: count(deliveries(ended)),
                waiting_since: ready.min(),
                bytes: 0,
            })
        })
    }
}

impl State {
    /// Returns the figures of a budget without the reservation of one turn.
    pub(super) fn budget_without(&self, scope: &str, day: Day, turn: Option<TurnId>) -> BudgetStatus {
        let reserved = self.reserved.iter().filter(|((one, name), (reserved_day, _))| {
            name == scope && *reserved_day == day && turn.is_none_or(|turn| *one != turn)
        });
        BudgetStatus {
            spent_micros: self.spent.get(&(scope.to_owned(), day)).copied().unwrap_or_default(),
            reserved_micros: reserved.map(|(_, (_, amount))| *amount).fold(0, u64::saturating_add),
        }
    }

    fn prune_events(&mut self, policy: RetentionPolicy, batch: usize) -> usize {
        let mut rooms: Vec<_> = self.conversations.iter().map(|(id, room)| (room.key, *id)).collect();
        rooms.sort_unstable();
        let mut pruned = 0;
        for (_, id) in rooms {
            while pruned < batch
                && let Some(seq) = self.prunable(id, policy)
            {
                if let Some(room) = self.conversations.get_mut(&id) {
                    room.events.remove(&seq);
                    room.oldest_seq = seq.next();
                }
                let position = self.feed.iter().find(|(_, event)| **event == (id, seq)).map(|(position, _)| *position);
                if let Some(position) = position {
                    self.feed.remove(&position);
                    self.pruned_position = self.pruned_position.max(position);
                }
                pruned += 1;
            }
        }
        pruned
    }

    /// Deletes conversations that have no events and turns left.
    fn prune_conversations(&mut self, policy: RetentionPolicy, batch: usize) -> usize {
        let Some(before) = policy.ended_before else { return 0 };
        let is_empty = |id: &ConversationId, room: &Room| {
            room.address.channel == ABANDONED_CHANNEL
                && room.created_at < before
                && room.held.is_none()
                && room.events.is_empty()
                && self.turns_of(*id).is_empty()
                && self.schedules.values().all(|one| one.conversation != *id)
        };
        let empty = self.conversations.iter().filter(|(id, room)| is_empty(id, room));
        let mut empty: Vec<_> = empty.map(|(id, room)| (room.key, *id)).collect();
        empty.sort_unstable();
        empty.truncate(batch);
        for (_, id) in &empty {
            if let Some(room) = self.conversations.remove(id) {
                self.addresses.remove(&room.address);
            }
            self.deliveries.retain(|_, one| one.delivery.conversation != Some(*id));
        }
        empty.len()
    }

    /// Returns the oldest event of a conversation, if the policy deletes it.
    fn prunable(&self, id: ConversationId, policy: RetentionPolicy) -> Option<Seq> {
        let room = self.conversations.get(&id)?;
        let (seq, event) = room.events.first_key_value()?;
        let is_active =
            event.turn.and_then(|turn| self.turns.get(&turn)).is_some_and(|(_, turn)| turn.ended_at.is_none());
        let is_old = policy.events_before.is_some_and(|before| event.at < before);
        let is_excess = policy.max_events.is_some_and(|max| room.last_seq.get().saturating_sub(seq.get()) >= max);
        (!is_active && (is_old || is_excess)).then_some(*seq)
    }
}
