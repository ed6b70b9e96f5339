//! Messages, and what clients change in turns.

use async_trait::async_trait;
use rusqlite::{Connection, named_params, params};

use super::SqliteStore;
use super::conversations::create;
use super::effects::{append_events, apply, refresh_ready, turn_keys};
use super::failure::Outcome;
use super::query::{first, run, value};
use super::rows::{conversation_key, find_turn};
use crate::error::{Entity, Queue, Result, StoreError};
use crate::ids::{ConversationId, Timestamp, TurnId};
use crate::records::{
    Accepted, AcceptedTurn, CancelOutcome, CancelScope, ChatAddress, EditOutcome, Effects, IdempotencyKey, MessageEdit,
    NewMessage, QueueLimits, Target, Turn, TurnState,
};
use crate::store::IntakeStore;

#[async_trait]
impl IntakeStore for SqliteStore {
    async fn known_message(
        &self,
        channel: String,
        channel_ids: Vec<String>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<Accepted>> {
        self.read(move |db| {
            let known = idempotency.as_ref().map(|key| by_idempotency_key(db, key)).transpose()?.flatten();
            known.map_or_else(|| by_channel_ids(db, &channel, &channel_ids), |known| Ok(Some(known)))
        })
        .await
    }

    async fn accept(&self, message: NewMessage, limits: QueueLimits, now: Timestamp) -> Result<Accepted> {
        self.write(move |db| accept(db, message, limits, now)).await
    }

    async fn edit_message(&self, edit: MessageEdit, _now: Timestamp) -> Result<EditOutcome> {
        self.write(move |db| {
            let sql = "SELECT turn.id, turn.key, turn.conversation, state
                FROM channel_id JOIN turn ON turn.key = channel_id.turn WHERE channel = ?1 AND channel_id.id = ?2";
            let found = first(db, sql, [&edit.channel, &edit.channel_id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
            let Some((id, turn, conversation, state)): Option<(TurnId, i64, i64, TurnState)> = found else {
                return Ok(EditOutcome::Unknown);
            };
            if state != TurnState::Queued {
                return Ok(EditOutcome::TooLate(id));
            }
            let sql = "UPDATE turn SET text = ?2, details = coalesce(?3, details) WHERE key = ?1";
            run(db, sql, params![turn, edit.text, edit.details])?;
            let events = edit.events.into_iter().map(|event| event.of_turn(id)).collect();
            append_events(db, conversation, events)?;
            Ok(EditOutcome::Replaced(id))
        })
        .await
    }

    async fn cancel_turn(
        &self,
        id: TurnId,
        scope: CancelScope,
        effects: Effects,
        now: Timestamp,
    ) -> Result<CancelOutcome> {
        self.write(move |db| cancel(db, id, scope, effects, now)).await
    }

    async fn requeue_turn(&self, id: TurnId, limits: QueueLimits, effects: Effects, now: Timestamp) -> Result<Turn> {
        self.write(move |db| {
            let turn = find_turn(db, id)?;
            if !matches!(turn.state, TurnState::Failed | TurnState::Aborted) {
                let (state, required) = (turn.state.name(), "failed or aborted");
                return Err(StoreError::WrongState { entity: Entity::Turn, id: id.to_string(), state, required }.into());
            }
            check_queues(db, &address_of(db, turn.conversation)?, limits)?;
            let (conversation, key) = turn_keys(db, id)?;
            let sql = "UPDATE turn SET state = 0, attempts = 0, progress = 0, ran_tools = 0, joined = NULL, taken = 0,
                    not_before = ?2, abort_requested = 0, result = NULL, error_code = NULL, started_at = NULL, ended_at = NULL
                WHERE key = ?1";
            run(db, sql, params![key, now])?;
            refresh_ready(db, conversation, now)?;
            apply(db, conversation, effects, now)?;
            find_turn(db, id)
        })
        .await
    }
}

fn cancel(db: &Connection, id: TurnId, scope: CancelScope, effects: Effects, now: Timestamp) -> Outcome<CancelOutcome> {
    let turn = find_turn(db, id)?;
    match turn.state {
        TurnState::Queued => {
            let (conversation, key) = turn_keys(db, id)?;
            run(db, "UPDATE turn SET state = 4, ended_at = ?2 WHERE key = ?1", params![key, now])?;
            refresh_ready(db, conversation, now)?;
            apply(db, conversation, effects, now)?;
            Ok(CancelOutcome::Aborted)
        }
        TurnState::Running if scope == CancelScope::Open => {
            // Should the agent not take it, it must not start later.
            let lead = turn.joined.unwrap_or(id);
            run(db, "UPDATE turn SET abort_requested = 1 WHERE id IN (?1, ?2)", [id, lead])?;
            Ok(CancelOutcome::Requested)
        }
        unchanged => Ok(CancelOutcome::Unchanged(unchanged)),
    }
}

/// Accepts a message once.
pub(super) fn accept(db: &Connection, new: NewMessage, limits: QueueLimits, now: Timestamp) -> Outcome<Accepted> {
    if let Some(known) = new.idempotency.as_ref().map(|key| by_idempotency_key(db, key)).transpose()?.flatten() {
        return Ok(known);
    }
    let address = match &new.target {
        Target::Existing(id) => address_of(db, *id)?,
        Target::Address(target) => target.address.clone(),
    };
    if let Some(known) = by_channel_ids(db, &address.channel, &new.channel_ids)? {
        return Ok(known);
    }
    check_queues(db, &address, limits)?;
    let sql = "SELECT 1 FROM turn WHERE id = ?1 OR message = ?2";
    if first(db, sql, params![new.turn, new.id], |_| Ok(()))?.is_some() {
        return Err(StoreError::exists(Entity::Turn, new.turn).into());
    }
    let (id, key) = match &new.target {
        Target::Existing(id) => (*id, conversation_key(db, *id)?),
        Target::Address(target) => {
            let sql = "SELECT id, key FROM conversation WHERE channel = ?1 AND chat = ?2 AND thread = ?3";
            let ChatAddress { channel, chat, thread } = &target.address;
            match first(db, sql, [channel, chat, thread], |row| Ok((row.get(0)?, row.get(1)?)))? {
                Some(found) => found,
                None => (target.id, create(db, target.clone(), now)?),
            }
        }
    };
    store(db, new, (id, key), &address.channel, now)
}

fn store(
    db: &Connection,
    new: NewMessage,
    (conversation, key): (ConversationId, i64),
    channel: &str,
    now: Timestamp,
) -> Outcome<Accepted> {
    let NewMessage { id, turn, target: _, channel_ids, idempotency, author, text, details, mode, event } = new;
    let seq = append_events(db, key, vec![event])?;
    let sql =
        "INSERT INTO turn (id, conversation, message, author, text, details, mode, accepted_at, state, not_before,
            queued_seq)
        VALUES (:id, :conversation, :message, :author, :text, :details, :mode, :now, 0, :now, :seq)";
    run(
        db,
        sql,
        named_params! {
            ":id": turn, ":conversation": key, ":message": id, ":author": author, ":text": text, ":details": details,
            ":mode": mode, ":now": now, ":seq": seq,
        },
    )?;
    let turn_key = db.last_insert_rowid();
    for channel_id in channel_ids {
        let sql = "INSERT OR IGNORE INTO channel_id (channel, id, turn) VALUES (?1, ?2, ?3)";
        run(db, sql, params![channel, channel_id, turn_key])?;
    }
    if let Some(IdempotencyKey { scope, key, body_hash }) = idempotency {
        let sql = "INSERT INTO idempotency (scope, key, body_hash, turn) VALUES (?1, ?2, ?3, ?4)";
        run(db, sql, params![scope, key, body_hash, turn_key])?;
    }
    refresh_ready(db, key, now)?;
    Ok(Accepted::New(AcceptedTurn { conversation, message: id, turn, seq }))
}

fn address_of(db: &Connection, id: ConversationId) -> Outcome<ChatAddress> {
    let sql = "SELECT channel, chat, thread FROM conversation WHERE id = ?1";
    let found = first(db, sql, [id], super::rows::address)?;
    Ok(found.ok_or_else(|| StoreError::not_found(Entity::Conversation, id))?)
}

fn by_idempotency_key(db: &Connection, key: &IdempotencyKey) -> Outcome<Option<Accepted>> {
    let sql = "SELECT body_hash, turn FROM idempotency WHERE scope = ?1 AND key = ?2";
    let found: Option<([u8; 32], Option<i64>)> =
        first(db, sql, [&key.scope, &key.key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match found {
        None => Ok(None),
        Some((hash, _)) if hash != key.body_hash => {
            Err(StoreError::IdempotencyMismatch { key: key.key.clone() }.into())
        }
        Some((_, turn)) => duplicate(db, turn).map(Some),
    }
}

fn by_channel_ids(db: &Connection, channel: &str, ids: &[String]) -> Outcome<Option<Accepted>> {
    for id in ids {
        let sql = "SELECT turn FROM channel_id WHERE channel = ?1 AND id = ?2";
        if let Some(turn) = first(db, sql, [channel, id], |row| row.get(0))? {
            return duplicate(db, turn).map(Some);
        }
    }
    Ok(None)
}

/// Returns the first outcome of a message that was accepted before.
fn duplicate(db: &Connection, turn: Option<i64>) -> Outcome<Accepted> {
    let sql = "SELECT conversation.id, message, turn.id, queued_seq
        FROM turn JOIN conversation ON conversation.key = turn.conversation WHERE turn.key = ?1";
    let found = first(db, sql, [turn], |row| {
        Ok(AcceptedTurn { conversation: row.get(0)?, message: row.get(1)?, turn: row.get(2)?, seq: row.get(3)? })
    })?;
    Ok(found.map_or(Accepted::Deleted, Accepted::Duplicate))
}

fn check_queues(db: &Connection, address: &ChatAddress, limits: QueueLimits) -> Outcome<()> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM conversation JOIN turn ON turn.conversation = conversation.key
        WHERE channel = ?1 AND chat = ?2 AND state = 0 LIMIT ?3)";
    let chat: u32 = value(db, sql, params![address.channel, address.chat, limits.chat])?;
    if chat >= limits.chat {
        return Err(StoreError::QueueFull { queue: Queue::Chat, limit: limits.chat }.into());
    }
    let total: u32 = value(db, "SELECT count(*) FROM (SELECT 1 FROM turn WHERE state = 0 LIMIT ?1)", [limits.total])?;
    if total >= limits.total {
        return Err(StoreError::QueueFull { queue: Queue::Total, limit: limits.total }.into());
    }
    Ok(())
}
