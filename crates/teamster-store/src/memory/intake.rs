//! Messages and turns in the model.

use async_trait::async_trait;

use super::MemoryStore;
use super::state::State;
use crate::error::{Entity, Queue, Result, StoreError};
use crate::ids::{ConversationId, Timestamp, TurnId};
use crate::records::{
    Accepted, AcceptedTurn, CancelOutcome, CancelScope, ChatAddress, EditOutcome, Effects, IdempotencyKey, Message,
    MessageEdit, NewMessage, Progress, QueueLimits, Target, Turn, TurnState, Usage,
};
use crate::store::IntakeStore;

#[async_trait]
impl IntakeStore for MemoryStore {
    async fn known_message(
        &self,
        channel: String,
        channel_ids: Vec<String>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<Accepted>> {
        self.with(|state| match state.by_idempotency_key(idempotency.as_ref())? {
            Some(known) => Ok(Some(known)),
            None => state.by_channel_ids(&channel, &channel_ids),
        })
    }

    async fn accept(&self, message: NewMessage, limits: QueueLimits, now: Timestamp) -> Result<Accepted> {
        self.with(|state| state.accept(message, limits, now))
    }

    async fn edit_message(&self, edit: MessageEdit, _now: Timestamp) -> Result<EditOutcome> {
        self.with(|state| {
            let known = state.channel_ids.get(&(edit.channel, edit.channel_id)).copied().flatten();
            let Some(id) = known else { return Ok(EditOutcome::Unknown) };
            let turn = state.turn_mut(id)?;
            if turn.state != TurnState::Queued {
                return Ok(EditOutcome::TooLate(id));
            }
            turn.message.text = edit.text;
            if let Some(details) = edit.details {
                turn.message.details = details;
            }
            let conversation = turn.conversation;
            state.append_events(conversation, edit.events.into_iter().map(|event| event.of_turn(id)).collect())?;
            Ok(EditOutcome::Replaced(id))
        })
    }

    async fn cancel_turn(
        &self,
        id: TurnId,
        scope: CancelScope,
        effects: Effects,
        now: Timestamp,
    ) -> Result<CancelOutcome> {
        self.with(|state| {
            let turn = state.turn(id)?;
            let conversation = turn.conversation;
            match (turn.state, turn.joined) {
                (TurnState::Queued, _) => {
                    state.check_deliveries(&effects.deliveries)?;
                    let turn = state.turn_mut(id)?;
                    turn.state = TurnState::Aborted;
                    turn.ended_at = Some(now);
                    state.apply(conversation, effects, now)?;
                    Ok(CancelOutcome::Aborted)
                }
                (TurnState::Running, lead) if scope == CancelScope::Open => {
                    state.turn_mut(id)?.abort_requested = true;
                    state.turn_mut(lead.unwrap_or(id))?.abort_requested = true;
                    Ok(CancelOutcome::Requested)
                }
                (unchanged, _) => Ok(CancelOutcome::Unchanged(unchanged)),
            }
        })
    }

    async fn requeue_turn(&self, id: TurnId, limits: QueueLimits, effects: Effects, now: Timestamp) -> Result<Turn> {
        self.with(|state| {
            state.check_deliveries(&effects.deliveries)?;
            let turn = state.turn(id)?;
            if !matches!(turn.state, TurnState::Failed | TurnState::Aborted) {
                return Err(StoreError::WrongState {
                    entity: Entity::Turn,
                    id: id.to_string(),
                    state: turn.state.name(),
                    required: "failed or aborted",
                });
            }
            let address = state.room(turn.conversation)?.address.clone();
            state.check_queues(&address, limits)?;
            let turn = state.turn_mut(id)?;
            turn.state = TurnState::Queued;
            turn.attempts = 0;
            turn.progress = Progress::Nothing;
            turn.ran_tools = false;
            turn.joined = None;
            turn.taken = false;
            turn.not_before = now;
            turn.abort_requested = false;
            turn.result = None;
            turn.error_code = None;
            turn.started_at = None;
            turn.ended_at = None;
            let (requeued, conversation) = (turn.clone(), turn.conversation);
            state.apply(conversation, effects, now)?;
            Ok(requeued)
        })
    }
}

impl State {
    pub(super) fn accept(&mut self, message: NewMessage, limits: QueueLimits, now: Timestamp) -> Result<Accepted> {
        if let Some(known) = self.by_idempotency_key(message.idempotency.as_ref())? {
            return Ok(known);
        }
        let address = match &message.target {
            Target::Existing(id) => self.room(*id)?.address.clone(),
            Target::Address(new) => new.address.clone(),
        };
        if let Some(known) = self.by_channel_ids(&address.channel, &message.channel_ids)? {
            return Ok(known);
        }
        self.check_queues(&address, limits)?;
        if self.turns.iter().any(|(id, (_, turn))| *id == message.turn || turn.message.id == message.id) {
            return Err(StoreError::exists(Entity::Turn, message.turn));
        }
        let conversation = match &message.target {
            Target::Existing(id) => *id,
            Target::Address(new) => match self.addresses.get(&new.address) {
                Some(id) => *id,
                None => self.create(new.clone(), now)?,
            },
        };
        self.store_message(message, conversation, &address, now)
    }

    fn store_message(
        &mut self,
        new: NewMessage,
        conversation: ConversationId,
        address: &ChatAddress,
        now: Timestamp,
    ) -> Result<Accepted> {
        let seq = self.append_events(conversation, vec![new.event])?;
        for id in new.channel_ids {
            self.channel_ids.insert((address.channel.clone(), id), Some(new.turn));
        }
        if let Some(key) = new.idempotency {
            self.idempotency.insert((key.scope, key.key), (key.body_hash, Some(new.turn)));
        }
        let NewMessage { id, turn, author, text, details, mode, .. } = new;
        let queued = Turn {
            id: turn,
            conversation,
            message: Message { id, author, text, details, mode, accepted_at: now },
            state: TurnState::Queued,
            attempts: 0,
            progress: Progress::Nothing,
            ran_tools: false,
            joined: None,
            taken: false,
            not_before: now,
            abort_requested: false,
            result: None,
            error_code: None,
            usage: Usage::default(),
            queued_seq: seq,
            started_at: None,
            ended_at: None,
        };
        let key = self.next_key();
        self.turns.insert(turn, (key, queued));
        Ok(Accepted::New(AcceptedTurn { conversation, message: id, turn, seq }))
    }

    fn by_channel_ids(&self, channel: &str, ids: &[String]) -> Result<Option<Accepted>> {
        let mut keys = ids.iter().map(|id| (channel.to_owned(), id.clone()));
        let known = keys.find_map(|key| self.channel_ids.get(&key).copied());
        known.map(|turn| self.duplicate(turn)).transpose()
    }

    fn by_idempotency_key(&self, key: Option<&IdempotencyKey>) -> Result<Option<Accepted>> {
        let Some(key) = key else { return Ok(None) };
        match self.idempotency.get(&(key.scope.clone(), key.key.clone())) {
            None => Ok(None),
            Some((hash, _)) if *hash != key.body_hash => Err(StoreError::IdempotencyMismatch { key: key.key.clone() }),
            Some((_, turn)) => self.duplicate(*turn).map(Some),
        }
    }

    fn duplicate(&self, turn: Option<TurnId>) -> Result<Accepted> {
        let Some(turn) = turn else { return Ok(Accepted::Deleted) };
        let turn = self.turn(turn)?;
        Ok(Accepted::Duplicate(AcceptedTurn {
            conversation: turn.conversation,
            message: turn.message.id,
            turn: turn.id,
            seq: turn.queued_seq,
        }))
    }

    fn check_queues(&self, address: &ChatAddress, limits: QueueLimits) -> Result<()> {
        let waiting = self.turns.values().filter(|(_, turn)| turn.state == TurnState::Queued);
        let of_chat = |turn: &Turn| {
            let room = self.conversations.get(&turn.conversation);
            room.is_some_and(|room| room.address.channel == address.channel && room.address.chat == address.chat)
        };
        let (mut chat, mut total) = (0, 0);
        for (_, turn) in waiting {
            total += 1;
            chat += u32::from(of_chat(turn));
        }
        if chat >= limits.chat {
            return Err(StoreError::QueueFull { queue: Queue::Chat, limit: limits.chat });
        }
        if total >= limits.total {
            return Err(StoreError::QueueFull { queue: Queue::Total, limit: limits.total });
        }
        Ok(())
    }
}
