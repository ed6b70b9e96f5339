//! What operations share: effects, leases, and since when a conversation can be claimed.

use rusqlite::{Connection, named_params, params};

use super::failure::Outcome;
use super::query::{first, run, value};
use crate::error::{Entity, StoreError};
use crate::ids::{Seq, Timestamp, TurnId};
use crate::records::{Effects, Lease, NewDelivery, NewEvent};

/// Appends events to the log of a conversation, and returns the number of the last one.
pub(super) fn append_events(db: &Connection, conversation: i64, events: Vec<NewEvent>) -> Outcome<Seq> {
    let mut last: Seq = value(db, "SELECT last_seq FROM conversation WHERE key = ?1", [conversation])?;
    if events.is_empty() {
        return Ok(last);
    }
    for event in events {
        last = last.next();
        let NewEvent { kind, turn, at, body } = event;
        let sql = "INSERT INTO event (conversation, seq, kind, turn, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        run(db, sql, params![conversation, last, kind, turn, at, body])?;
    }
    run(db, "UPDATE conversation SET last_seq = ?2 WHERE key = ?1", params![conversation, last])?;
    Ok(last)
}

/// Adds deliveries with new keys, and returns their number.
pub(super) fn add_deliveries(db: &Connection, deliveries: Vec<NewDelivery>, now: Timestamp) -> Outcome<u32> {
    let mut added = 0;
    for delivery in deliveries {
        let NewDelivery { id, key, address, conversation, turn, body, not_before } = delivery;
        if first(db, "SELECT 1 FROM delivery WHERE unique_key = ?1", [&key], |_| Ok(()))?.is_some() {
            continue;
        }
        let sql = "INSERT INTO delivery (id, unique_key, channel, chat, thread, conversation, turn, body, state,
                not_before, ready_at, created_at)
            VALUES (:id, :key, :channel, :chat, :thread, :conversation, :turn, :body, 0, :not_before, :not_before, :now)
            ON CONFLICT (id) DO NOTHING";
        let inserted = run(
            db,
            sql,
            named_params! {
                ":id": id, ":key": key, ":channel": address.channel, ":chat": address.chat, ":thread": address.thread,
                ":conversation": conversation, ":turn": turn, ":body": body, ":not_before": not_before, ":now": now,
            },
        )?;
        if inserted == 0 {
            return Err(StoreError::exists(Entity::Delivery, id).into());
        }
        added += 1;
    }
    Ok(added)
}

/// Applies effects, and returns the number of the log's last event.
pub(super) fn apply(db: &Connection, conversation: i64, effects: Effects, now: Timestamp) -> Outcome<Seq> {
    let seq = append_events(db, conversation, effects.events)?;
    add_deliveries(db, effects.deliveries, now)?;
    Ok(seq)
}

/// A lease that was checked in this transaction, with the keys of its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) conversation: i64,
    pub(super) turn: i64,
    /// When the lease expires.
    pub(super) until: Timestamp,
}

/// Checks that a lease is the last claim of a conversation whose turn runs.
pub(super) fn check_lease(db: &Connection, lease: Lease) -> Outcome<Held> {
    let Lease { conversation, turn, epoch } = lease;
    let sql = "SELECT conversation.key, turn.key, lease_until
        FROM conversation JOIN turn ON turn.id = conversation.running_turn
        WHERE conversation.id = ?1 AND conversation.epoch = ?2 AND running_turn = ?3";
    let read = |row: &rusqlite::Row<'_>| Ok(Held { conversation: row.get(0)?, turn: row.get(1)?, until: row.get(2)? });
    let held = first(db, sql, params![conversation, epoch, turn], read)?;
    Ok(held.ok_or(StoreError::LeaseLost { conversation, epoch })?)
}

/// Sets since when a conversation can be claimed. Call it after each change of its turns, its lease or its pause.
///
/// A turn whose abort was requested waits for nothing: a claim ends it.
///
/// The end of its last turn only determines its order among the others. It does not delay a claim, even if the clock
/// was set back since.
pub(super) fn refresh_ready(db: &Connection, conversation: i64, now: Timestamp) -> Outcome<()> {
    let sql = "UPDATE conversation SET ready_at = CASE
            WHEN worker IS NOT NULL THEN lease_until
            ELSE (SELECT CASE WHEN turn.abort_requested THEN min(free_since, ?2)
                    ELSE max(turn.not_before, min(free_since, ?2), coalesce(paused_until, 0)) END FROM turn
                WHERE turn.conversation = conversation.key AND state = 0 ORDER BY turn.key LIMIT 1) END
        WHERE key = ?1";
    run(db, sql, params![conversation, now])?;
    Ok(())
}

/// Returns the conversation and the key of a turn, or `NotFound`.
pub(super) fn turn_keys(db: &Connection, turn: TurnId) -> Outcome<(i64, i64)> {
    let found =
        first(db, "SELECT conversation, key FROM turn WHERE id = ?1", [turn], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.ok_or_else(|| StoreError::not_found(Entity::Turn, turn))?)
}
