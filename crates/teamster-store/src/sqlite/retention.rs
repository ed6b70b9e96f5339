//! Retention. The log of a conversation loses its oldest events only, so that the rest has no gap.

use rusqlite::{Connection, named_params, params};

use super::failure::Outcome;
use super::query::{all, first, run};
use super::values::integer;
use crate::ids::{ConversationId, Seq};
use crate::records::{ABANDONED_CHANNEL, Pruned, RetentionPolicy};

/// Deletes at most one batch of each kind.
pub(super) fn prune(db: &Connection, policy: RetentionPolicy, batch: i64) -> Outcome<Pruned> {
    let events = prune_events(db, policy, batch)?;
    let turns = "DELETE FROM turn WHERE key IN
        (SELECT key FROM turn WHERE ended_at < ?1 ORDER BY key LIMIT ?2)";
    let turns = run(db, turns, params![policy.ended_before, batch])?;
    let deliveries = "DELETE FROM delivery WHERE key IN
        (SELECT key FROM delivery WHERE ended_at < ?1 ORDER BY key LIMIT ?2)";
    let deliveries = run(db, deliveries, params![policy.ended_before, batch])?;
    let conversations = prune_conversations(db, policy, batch)?;
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (turns, deliveries, conversations) = (count(turns), count(deliveries), count(conversations));
    let more = [events, turns, deliveries, conversations].into_iter().any(|count| count >= batch.unsigned_abs());
    Ok(Pruned { events, turns, deliveries, conversations, more })
}

/// Deletes conversations that have no events and turns left.
fn prune_conversations(db: &Connection, policy: RetentionPolicy, batch: i64) -> Outcome<usize> {
    let sql = "SELECT key, id FROM conversation WHERE channel = ?1 AND created_at < ?2 AND worker IS NULL
            AND oldest_seq > last_seq
            AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.conversation = conversation.key)
            AND NOT EXISTS (SELECT 1 FROM schedule WHERE schedule.conversation = conversation.key)
        ORDER BY key LIMIT ?3";
    let params = params![ABANDONED_CHANNEL, policy.ended_before, batch];
    let empty: Vec<(i64, ConversationId)> = all(db, sql, params, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (key, id) in &empty {
        run(db, "DELETE FROM conversation WHERE key = ?1", [key])?;
        run(db, "DELETE FROM delivery WHERE conversation = ?1", [id])?;
    }
    Ok(empty.len())
}

fn prune_events(db: &Connection, policy: RetentionPolicy, batch: i64) -> Outcome<u64> {
    let max_events = policy.max_events.map(integer);
    // A conversation is a candidate if its oldest event is too old or exceeds the number of kept events.
    let sql = "SELECT conversation.key, oldest_seq, last_seq
        FROM conversation JOIN event ON event.conversation = conversation.key AND event.seq = oldest_seq
        WHERE at < :before OR last_seq - oldest_seq >= :max ORDER BY conversation.key";
    let params = named_params! { ":before": policy.events_before, ":max": max_events };
    let candidates: Vec<(i64, Seq, Seq)> = all(db, sql, params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut pruned = 0;
    for (key, oldest, last) in candidates {
        let rest = batch.unsigned_abs().saturating_sub(pruned);
        if rest == 0 {
            break;
        }
        // The first event that stays: within both limits, or of a turn that has not ended.
        let sql = "SELECT seq FROM event LEFT JOIN turn ON turn.id = event.turn
            WHERE event.conversation = :key AND seq >= :oldest
                AND ((coalesce(at >= :before, 1) AND coalesce(:last - seq < :max, 1))
                    OR (turn.key IS NOT NULL AND turn.ended_at IS NULL))
            ORDER BY seq LIMIT 1";
        let params = named_params! {
            ":key": key, ":oldest": oldest, ":last": last, ":before": policy.events_before, ":max": max_events,
        };
        let kept: Seq = first(db, sql, params, |row| row.get(0))?.unwrap_or(last.next());
        let kept = kept.min(Seq::new(oldest.get().saturating_add(rest)));
        // A slow reader of the feed must get an error about the missing events.
        let sql = "INSERT INTO mark (name, value) SELECT 'pruned', last FROM
                (SELECT max(position) AS last FROM event WHERE conversation = ?1 AND seq < ?2) WHERE last IS NOT NULL
            ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)";
        run(db, sql, params![key, kept])?;
        run(db, "DELETE FROM event WHERE conversation = ?1 AND seq < ?2", params![key, kept])?;
        run(db, "UPDATE conversation SET oldest_seq = ?2 WHERE key = ?1", params![key, kept])?;
        pruned = pruned.saturating_add(kept.get().saturating_sub(oldest.get()));
    }
    Ok(pruned)
}
