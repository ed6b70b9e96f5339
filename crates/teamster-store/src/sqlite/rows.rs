//! How rows become records. Each query names its columns, so that a migration may add others.

use rusqlite::{Connection, Row, named_params};

use super::failure::Outcome;
use super::query::{all, first};
use super::values::unsigned;
use crate::error::{Entity, StoreError};
use crate::ids::{ConversationId, DeliveryId, Timestamp, TurnId};
use crate::records::{
    ChatAddress, Closing, Conversation, Delivery, DeliveryPart, Event, Message, PartState, Permission, Schedule, Token,
    Turn, Usage,
};

/// Selects conversations with their state at `:now`.
pub(super) const CONVERSATIONS: &str = "
    SELECT *, CASE
        WHEN worker IS NOT NULL THEN CASE WHEN waits THEN 3 ELSE 2 END
        WHEN queued = 0 THEN 0 WHEN paused_until > :now THEN 4 ELSE 1 END AS state
    FROM (
        SELECT key, id, channel, chat, thread, agent, title, settings, version, last_seq, oldest_seq, worker, epoch,
            paused_until, created_at,
            (SELECT count(*) FROM turn WHERE turn.conversation = conversation.key AND turn.state = 0) AS queued,
            (SELECT session.id FROM session
                WHERE session.conversation = conversation.key AND session.agent = conversation.agent) AS session_id,
            EXISTS (SELECT 1 FROM permission JOIN turn ON turn.key = permission.turn
                WHERE turn.id = conversation.running_turn AND outcome IS NULL) AS waits
        FROM conversation)";

pub(super) fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation {
        id: row.get("id")?,
        address: address(row)?,
        agent: row.get("agent")?,
        title: row.get("title")?,
        settings: row.get("settings")?,
        version: unsigned(row.get("version")?),
        state: row.get("state")?,
        last_seq: row.get("last_seq")?,
        oldest_seq: row.get("oldest_seq")?,
        queued: row.get("queued")?,
        session_id: row.get("session_id")?,
        worker: row.get("worker")?,
        epoch: row.get("epoch")?,
        paused_until: row.get("paused_until")?,
        created_at: row.get("created_at")?,
    })
}

pub(super) fn address(row: &Row<'_>) -> rusqlite::Result<ChatAddress> {
    Ok(ChatAddress { channel: row.get("channel")?, chat: row.get("chat")?, thread: row.get("thread")? })
}

/// Returns a conversation, or `NotFound`.
pub(super) fn find_conversation(db: &Connection, id: ConversationId, now: Timestamp) -> Outcome<Conversation> {
    let sql = format!("{CONVERSATIONS} WHERE id = :id");
    let found = first(db, &sql, named_params! { ":now": now, ":id": id }, conversation)?;
    Ok(found.ok_or_else(|| StoreError::not_found(Entity::Conversation, id))?)
}

/// Returns the key of a conversation, or `NotFound`.
pub(super) fn conversation_key(db: &Connection, id: ConversationId) -> Outcome<i64> {
    let found = first(db, "SELECT key FROM conversation WHERE id = ?1", [id], |row| row.get(0))?;
    Ok(found.ok_or_else(|| StoreError::not_found(Entity::Conversation, id))?)
}

/// Selects turns.
pub(super) const TURNS: &str = "
    SELECT turn.key, turn.id, conversation.id AS conversation, message, author, text, details, mode, accepted_at, state,
        attempts, progress, ran_tools, joined, taken, not_before, abort_requested, result, error_code, input_tokens, output_tokens,
        cost_micros, queued_seq, started_at, ended_at
    FROM turn JOIN conversation ON conversation.key = turn.conversation";

pub(super) fn turn(row: &Row<'_>) -> rusqlite::Result<Turn> {
    Ok(Turn {
        id: row.get("id")?,
        conversation: row.get("conversation")?,
        message: Message {
            id: row.get("message")?,
            author: row.get("author")?,
            text: row.get("text")?,
            details: row.get("details")?,
            mode: row.get("mode")?,
            accepted_at: row.get("accepted_at")?,
        },
        state: row.get("state")?,
        attempts: row.get("attempts")?,
        progress: row.get("progress")?,
        ran_tools: row.get("ran_tools")?,
        joined: row.get("joined")?,
        taken: row.get("taken")?,
        not_before: row.get("not_before")?,
        abort_requested: row.get("abort_requested")?,
        result: row.get("result")?,
        error_code: row.get("error_code")?,
        usage: usage(row)?,
        queued_seq: row.get("queued_seq")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
    })
}

pub(super) fn usage(row: &Row<'_>) -> rusqlite::Result<Usage> {
    Ok(Usage {
        input_tokens: unsigned(row.get("input_tokens")?),
        output_tokens: unsigned(row.get("output_tokens")?),
        cost_micros: unsigned(row.get("cost_micros")?),
    })
}

/// Returns a turn, or `NotFound`.
pub(super) fn find_turn(db: &Connection, id: TurnId) -> Outcome<Turn> {
    let found = first(db, &format!("{TURNS} WHERE turn.id = ?1"), [id], turn)?;
    Ok(found.ok_or_else(|| StoreError::not_found(Entity::Turn, id))?)
}

/// The columns of an event.
pub(super) const EVENT_COLUMNS: &str = "event.seq, event.kind, event.turn, event.at, event.body";

pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        seq: row.get("seq")?,
        kind: row.get("kind")?,
        turn: row.get("turn")?,
        at: row.get("at")?,
        body: row.get("body")?,
    })
}

/// Selects permission requests.
pub(super) const PERMISSIONS: &str = "
    SELECT permission.key, permission.id, conversation.id AS conversation, turn.id AS turn, permission.epoch,
        permission.body, requested_at, deadline, outcome, closed_by, permission.message, closed_at
    FROM permission JOIN conversation ON conversation.key = permission.conversation
        JOIN turn ON turn.key = permission.turn";

pub(super) fn permission(row: &Row<'_>) -> rusqlite::Result<Permission> {
    let closing = match (row.get("outcome")?, row.get("closed_at")?) {
        (Some(outcome), Some(at)) => {
            Some(Closing { outcome, by: row.get("closed_by")?, message: row.get("message")?, at })
        }
        _ => None,
    };
    Ok(Permission {
        id: row.get("id")?,
        conversation: row.get("conversation")?,
        turn: row.get("turn")?,
        epoch: row.get("epoch")?,
        body: row.get("body")?,
        requested_at: row.get("requested_at")?,
        deadline: row.get("deadline")?,
        closing,
    })
}

/// Selects deliveries, without their parts.
pub(super) const DELIVERIES: &str = "
    SELECT key, id, unique_key, channel, chat, thread, conversation, turn, body, state, attempts, not_before, error,
        created_at, ended_at
    FROM delivery";

pub(super) fn delivery(row: &Row<'_>) -> rusqlite::Result<(i64, Delivery)> {
    let delivery = Delivery {
        id: row.get("id")?,
        key: row.get("unique_key")?,
        address: address(row)?,
        conversation: row.get("conversation")?,
        turn: row.get("turn")?,
        body: row.get("body")?,
        state: row.get("state")?,
        attempts: row.get("attempts")?,
        not_before: row.get("not_before")?,
        parts: Vec::new(),
        error: row.get("error")?,
        created_at: row.get("created_at")?,
        ended_at: row.get("ended_at")?,
    };
    Ok((row.get("key")?, delivery))
}

/// Adds the parts to a delivery.
pub(super) fn with_parts(db: &Connection, (key, mut delivery): (i64, Delivery)) -> Outcome<(i64, Delivery)> {
    let sql = "SELECT part, sent, service_id FROM delivery_part WHERE delivery = ?1 ORDER BY part";
    delivery.parts = all(db, sql, [key], |row| {
        let state = if row.get("sent")? { PartState::Sent(row.get("service_id")?) } else { PartState::Started };
        Ok(DeliveryPart { index: row.get("part")?, state })
    })?;
    Ok((key, delivery))
}

/// Returns a delivery with its key, or `NotFound`.
pub(super) fn find_delivery(db: &Connection, id: DeliveryId) -> Outcome<(i64, Delivery)> {
    let found = first(db, &format!("{DELIVERIES} WHERE id = ?1"), [id], delivery)?;
    with_parts(db, found.ok_or_else(|| StoreError::not_found(Entity::Delivery, id))?)
}

/// Selects schedules.
pub(super) const SCHEDULES: &str = "
    SELECT schedule.key, schedule.id, conversation.id AS conversation, body, next_at, last_at, schedule.created_at
    FROM schedule JOIN conversation ON conversation.key = schedule.conversation";

pub(super) fn schedule(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    Ok(Schedule {
        id: row.get("id")?,
        conversation: row.get("conversation")?,
        body: row.get("body")?,
        next_at: row.get("next_at")?,
        last_at: row.get("last_at")?,
        created_at: row.get("created_at")?,
    })
}

/// Selects tokens.
pub(super) const TOKENS: &str = "SELECT key, id, hash, owner, scopes, created_at, revoked_at FROM token";

pub(super) fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        id: row.get("id")?,
        hash: row.get("hash")?,
        owner: row.get("owner")?,
        scopes: row.get("scopes")?,
        created_at: row.get("created_at")?,
        revoked_at: row.get("revoked_at")?,
    })
}
