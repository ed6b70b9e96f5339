//! Claims of conversations, and their leases.

use std::time::Duration;

use rusqlite::{Connection, named_params, params};

use super::effects::check_lease;
use super::failure::{Failure, Outcome};
use super::finish::release_joined;
use super::query::{all, first, run, value};
use super::rows::{PERMISSIONS, find_conversation, find_turn, permission};
use crate::error::StoreError;
use crate::ids::{ConversationId, Epoch, Seq, Timestamp, TurnId, WorkerId};
use crate::records::{Claim, ClaimRequest, FAIR_SHARE, LONGEST_RETRY_DELAY, Lease, Renewal, Session};

/// Claims the conversation that has waited longest.
pub(super) fn claim(db: &Connection, request: &ClaimRequest, now: Timestamp) -> Outcome<Option<Claim>> {
    let sql = "SELECT count(*) FROM conversation WHERE worker = ?1 AND lease_until > ?2";
    let own: u32 = value(db, sql, params![request.worker, now])?;
    if own >= request.max_running {
        return Ok(None);
    }
    let is_busy = has_busy_author(db, now)?;
    let of_others = if is_busy { candidate(db, request, OF_OTHERS, now)? } else { None };
    let found = match of_others {
        Some(found) => Some(found),
        None if is_busy && own >= request.max_of_busy_authors() => None,
        None => candidate(db, request, "", now)?,
    };
    let Some((key, id, interrupted)) = found else { return Ok(None) };
    let expires_at = now.after(request.lease_for);
    let head = "SELECT id FROM turn WHERE conversation = ?1 AND state = 0 ORDER BY key LIMIT 1";
    let turn = match interrupted {
        Some(turn) => Some(turn),
        None => first(db, head, [key], |row| row.get(0))?,
    };
    let Some(turn): Option<TurnId> = turn else { return Ok(None) };
    let sql = "UPDATE conversation SET epoch = epoch + 1, worker = :worker, lease_until = :until, ready_at = :until,
            running_turn = :turn
        WHERE key = :key RETURNING epoch";
    let params = named_params! { ":worker": request.worker, ":until": expires_at, ":turn": turn, ":key": key };
    let epoch: Epoch = db.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
    run(db, "UPDATE turn SET state = 1 WHERE id = ?1", [turn])?;
    release_joined(db, turn)?;
    let conversation = find_conversation(db, id, now)?;
    let sql = "SELECT id, host, CASE WHEN EXISTS (SELECT 1 FROM session AS other
            WHERE other.conversation = session.conversation AND other.seen > session.seen) THEN seen END
        FROM session WHERE conversation = ?1 AND agent = ?2";
    let session = first(db, sql, params![key, conversation.agent], |row| {
        Ok((Session { id: row.get(0)?, host: row.get(1)? }, row.get(2)?))
    })?;
    let (session, missed_since): (_, Option<Option<Seq>>) = session.unzip();
    let open = format!("{PERMISSIONS} WHERE turn.id = ?1 AND outcome IS NULL ORDER BY permission.key");
    let joined = "SELECT id FROM turn WHERE joined = ?1 AND state = 1 ORDER BY key";
    Ok(Some(Claim {
        lease: Lease { conversation: id, turn, epoch },
        expires_at,
        conversation,
        turn: find_turn(db, turn)?,
        session,
        missed_since: missed_since.flatten(),
        interrupted: interrupted.is_some(),
        open_permissions: all(db, &open, [turn], permission)?,
        joined: all(db, joined, [turn], |row| row.get(0))?,
    }))
}

/// The authors with their share of running turns, each with its channel.
const BUSY: &str = "SELECT held.channel, turn.author FROM conversation AS held JOIN turn ON turn.id = held.running_turn
    WHERE held.worker IS NOT NULL AND held.lease_until > :now GROUP BY held.channel, turn.author
    HAVING count(*) >= :share";

/// The condition that the next turn of a conversation is that of an author without its share.
const OF_OTHERS: &str = "AND (c.channel, coalesce((SELECT author FROM turn WHERE turn.id = c.running_turn),
        (SELECT author FROM turn WHERE turn.conversation = c.key AND state = 0 ORDER BY key LIMIT 1)))
    NOT IN (SELECT channel, author FROM busy)";

fn has_busy_author(db: &Connection, now: Timestamp) -> Outcome<bool> {
    let params = named_params! { ":now": now, ":share": FAIR_SHARE };
    Ok(first(db, &format!("{BUSY} LIMIT 1"), params, |_| Ok(()))?.is_some())
}

/// Returns a conversation that can be claimed: its key, its id, and the turn that an expired lease has left running.
fn candidate(
    db: &Connection,
    request: &ClaimRequest,
    condition: &str,
    now: Timestamp,
) -> Outcome<Option<(i64, ConversationId, Option<TurnId>)>> {
    let affinity = i64::try_from(request.affinity.as_millis()).unwrap_or(i64::MAX);
    let sql = format!(
        "WITH busy(channel, author) AS ({BUSY}) SELECT key, id, running_turn FROM conversation AS c
        WHERE (ready_at <= :now
                OR (ready_at > :latest AND worker IS NULL AND (paused_until IS NULL OR paused_until <= :now)))
            AND (SELECT count(*) FROM conversation AS other
                WHERE other.channel = c.channel AND other.chat = c.chat AND other.lease_until > :now
                    AND NOT EXISTS (SELECT 1 FROM turn JOIN permission ON permission.turn = turn.key
                        WHERE turn.id = other.running_turn AND outcome IS NULL)) < :per_chat
            AND (ready_at <= :moves_before OR NOT EXISTS (SELECT 1 FROM session
                WHERE session.conversation = c.key AND session.agent = c.agent AND session.host <> :host))
            {condition}
        ORDER BY ready_at, key LIMIT 1"
    );
    let params = named_params! {
        ":now": now, ":latest": now.after(LONGEST_RETRY_DELAY), ":share": FAIR_SHARE,
        ":per_chat": request.max_running_per_chat, ":host": request.host,
        ":moves_before": now.as_millis().saturating_sub(affinity),
    };
    first(db, &sql, params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

/// Renews a lease that has not expired.
pub(super) fn renew(db: &Connection, lease: Lease, lease_for: Duration, now: Timestamp) -> Outcome<Renewal> {
    let held = match check_lease(db, lease) {
        Ok(held) if held.until > now => held,
        Ok(_) | Err(Failure::Rule(StoreError::LeaseLost { .. })) => return Ok(Renewal::Lost),
        Err(failure) => return Err(failure),
    };
    let expires_at = now.after(lease_for);
    let sql = "UPDATE conversation SET lease_until = ?2, ready_at = ?2 WHERE key = ?1";
    run(db, sql, params![held.conversation, expires_at])?;
    let abort_requested = value(db, "SELECT abort_requested FROM turn WHERE key = ?1", [held.turn])?;
    Ok(Renewal::Renewed { expires_at, abort_requested })
}

/// Expires the leases of a worker.
pub(super) fn expire_leases(db: &Connection, worker: &WorkerId, now: Timestamp) -> Outcome<u32> {
    let mut expired = 0;
    for sql in [
        "UPDATE conversation SET lease_until = ?2, ready_at = ?2 WHERE worker = ?1 AND lease_until > ?2",
        "UPDATE delivery SET lease_until = ?2, ready_at = ?2 WHERE worker = ?1 AND lease_until > ?2",
    ] {
        expired += run(db, sql, params![worker, now])?;
    }
    Ok(u32::try_from(expired).unwrap_or(u32::MAX))
}
