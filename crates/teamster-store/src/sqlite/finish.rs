//! The end of an attempt: everything in one transaction.

use rusqlite::{Connection, named_params, params};

use super::effects::{Held, apply, check_lease, refresh_ready};
use super::failure::Outcome;
use super::permissions::{close, close_rest};
use super::query::{first, run};
use super::rows::{find_turn, usage};
use super::values::integer;
use crate::error::{Entity, StoreError};
use crate::ids::{Timestamp, TurnId};
use crate::records::{
    AttemptEnd, Effects, Finish, HandBack, HandBackKind, JoinedOutcome, Lease, PermissionOutcome, SessionChange,
    TurnState, UsageEntry,
};

/// Ends the running turn and releases the conversation.
pub(super) fn finish(db: &Connection, lease: Lease, finish: Finish, now: Timestamp) -> Outcome<()> {
    let held = check_lease(db, lease)?;
    let Finish { state, result, error_code, attempt } = finish;
    let state = state.turn_state();
    release_joined(db, lease.turn)?;
    let joined = "UPDATE turn SET state = ?2, error_code = ?3, ended_at = ?4 WHERE joined = ?1 AND state = 1";
    run(db, joined, params![lease.turn, state, error_code, now])?;
    let lead = "UPDATE turn SET state = ?2, error_code = ?3, ended_at = ?4, result = ?5 WHERE key = ?1";
    run(db, lead, params![held.turn, state, error_code, now, result])?;
    end_attempt(db, held, lease, attempt, now)
}

/// Records the outcome of the message of a turn that has joined the running turn.
pub(super) fn resolve_joined(
    db: &Connection,
    lease: Lease,
    id: TurnId,
    outcome: JoinedOutcome,
    effects: Effects,
    now: Timestamp,
) -> Outcome<()> {
    let held = check_lease(db, lease)?;
    let turn = find_turn(db, id)?;
    if turn.joined != Some(lease.turn) || turn.state != TurnState::Running {
        let (state, required) = (turn.state.name(), "sent into the running turn");
        return Err(StoreError::WrongState { entity: Entity::Turn, id: id.to_string(), state, required }.into());
    }
    match outcome {
        JoinedOutcome::Taken => run(db, "UPDATE turn SET taken = 1 WHERE id = ?1", [id])?,
        JoinedOutcome::Waits => run(db, "UPDATE turn SET state = 0, joined = NULL, taken = 0 WHERE id = ?1", [id])?,
        JoinedOutcome::Failed(code) => {
            let sql = "UPDATE turn SET state = 3, error_code = ?2, ended_at = ?3 WHERE id = ?1";
            run(db, sql, params![id, code, now])?
        }
    };
    refresh_ready(db, held.conversation, now)?;
    apply(db, held.conversation, effects, now)?;
    Ok(())
}

/// Makes the turns wait again whose messages the agent has not taken into a turn. The caller then keeps or releases the
/// conversation.
pub(super) fn release_joined(db: &Connection, lead: TurnId) -> Outcome<()> {
    let sql = "UPDATE turn SET state = 0, joined = NULL WHERE joined = ?1 AND state = 1 AND taken = 0";
    run(db, sql, [lead])?;
    Ok(())
}

/// Puts the running turn back into its queue and releases the conversation.
pub(super) fn hand_back(db: &Connection, lease: Lease, hand_back: HandBack, now: Timestamp) -> Outcome<()> {
    let held = check_lease(db, lease)?;
    run(db, "UPDATE turn SET state = 0, joined = NULL, taken = 0 WHERE joined = ?1 AND state = 1", [lease.turn])?;
    run(db, "UPDATE turn SET state = 0 WHERE key = ?1", [held.turn])?;
    match hand_back.kind {
        HandBackKind::Retry(at) => run(db, "UPDATE turn SET not_before = ?2 WHERE key = ?1", params![held.turn, at])?,
        HandBackKind::Pause(until) => {
            let sql = "UPDATE conversation SET paused_until = ?2 WHERE key = ?1";
            run(db, sql, params![held.conversation, until])?
        }
        HandBackKind::Shutdown => {
            run(db, "UPDATE turn SET attempts = max(attempts - 1, 0) WHERE key = ?1", [held.turn])?
        }
    };
    end_attempt(db, held, lease, hand_back.attempt, now)
}

fn end_attempt(db: &Connection, held: Held, lease: Lease, attempt: AttemptEnd, now: Timestamp) -> Outcome<()> {
    let AttemptEnd { session, usage, closings, effects } = attempt;
    close(db, held, closings, now)?;
    close_rest(db, held, PermissionOutcome::TurnEnded, now)?;
    let cost = usage.as_ref().map_or(0, |entry| entry.usage.cost_micros);
    if let Some(entry) = usage {
        add_usage(db, held, lease, entry)?;
    }
    settle(db, held.turn, cost)?;
    let sql = "UPDATE conversation SET worker = NULL, lease_until = NULL, running_turn = NULL, free_since = ?2
        WHERE key = ?1";
    run(db, sql, params![held.conversation, now])?;
    refresh_ready(db, held.conversation, now)?;
    let last = apply(db, held.conversation, effects, now)?;
    match session {
        SessionChange::Keep => {}
        SessionChange::Set { agent, session } => {
            let sql =
                "INSERT OR REPLACE INTO session (conversation, agent, id, host, seen) VALUES (?1, ?2, ?3, ?4, ?5)";
            run(db, sql, params![held.conversation, agent, session.id, session.host, last])?;
        }
        SessionChange::Clear { agent } => {
            let sql = "DELETE FROM session WHERE conversation = ?1 AND agent = ?2";
            run(db, sql, params![held.conversation, agent])?;
        }
    }
    Ok(())
}

fn add_usage(db: &Connection, held: Held, lease: Lease, entry: UsageEntry) -> Outcome<()> {
    let UsageEntry { day, agent, usage: used } = entry;
    let turn = find_turn(db, lease.turn)?;
    let sum = turn.usage.plus(used);
    let sql = "UPDATE turn SET input_tokens = ?2, output_tokens = ?3, cost_micros = ?4 WHERE key = ?1";
    let numbers = (integer(sum.input_tokens), integer(sum.output_tokens), integer(sum.cost_micros));
    run(db, sql, params![held.turn, numbers.0, numbers.1, numbers.2])?;

    let sql = "SELECT input_tokens, output_tokens, cost_micros FROM usage
        WHERE day = ?1 AND agent = ?2 AND conversation = ?3 AND author = ?4";
    let author = turn.message.author;
    let before = first(db, sql, params![day, agent, lease.conversation, author], usage)?;
    let sum = before.unwrap_or_default().plus(used);
    let sql = "INSERT OR REPLACE INTO usage
            (day, agent, conversation, author, input_tokens, output_tokens, cost_micros)
        VALUES (:day, :agent, :conversation, :author, :input, :output, :cost)";
    let params = named_params! {
        ":day": day, ":agent": agent, ":conversation": lease.conversation, ":author": author,
        ":input": integer(sum.input_tokens), ":output": integer(sum.output_tokens), ":cost": integer(sum.cost_micros),
    };
    run(db, sql, params)?;
    Ok(())
}

/// Replaces the reservations of a turn by its cost.
fn settle(db: &Connection, turn: i64, cost: u64) -> Outcome<()> {
    // The sum stays below the largest integer, since a larger one would become a floating-point number.
    let sql = "INSERT INTO budget (scope, day, spent_micros) SELECT scope, day, ?2 FROM reservation WHERE turn = ?1
        ON CONFLICT (scope, day) DO UPDATE
        SET spent_micros = min(spent_micros, 9223372036854775807 - excluded.spent_micros) + excluded.spent_micros";
    run(db, sql, params![turn, integer(cost)])?;
    run(db, "DELETE FROM reservation WHERE turn = ?1", [turn])?;
    Ok(())
}
