//! What workers do.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::claim::{claim, expire_leases, renew};
use super::effects::{Held, apply, check_lease, refresh_ready};
use super::failure::Outcome;
use super::finish::{finish, hand_back, resolve_joined};
use super::query::{first, run, value};
use super::values::{integer, unsigned};
use crate::error::{Entity, Result, StoreError};
use crate::ids::{Day, Seq, Timestamp, TurnId, WorkerId};
use crate::records::{
    BudgetDecision, BudgetLimit, BudgetStatus, Claim, ClaimRequest, Effects, Finish, HandBack, JoinedOutcome, Lease,
    Progress, Renewal, TurnState,
};
use crate::store::WorkStore;

#[async_trait]
impl WorkStore for SqliteStore {
    async fn claim(&self, request: ClaimRequest, now: Timestamp) -> Result<Option<Claim>> {
        self.write(move |db| claim(db, &request, now)).await
    }

    async fn renew(&self, leases: Vec<Lease>, lease_for: Duration, now: Timestamp) -> Result<Vec<Renewal>> {
        self.write(move |db| leases.into_iter().map(|lease| renew(db, lease, lease_for, now)).collect()).await
    }

    async fn expire_leases(&self, worker: WorkerId, now: Timestamp) -> Result<u32> {
        self.write(move |db| expire_leases(db, &worker, now)).await
    }

    async fn start_attempt(&self, lease: Lease, effects: Effects, now: Timestamp) -> Result<u32> {
        self.write(move |db| {
            let held = check_lease(db, lease)?;
            let sql = "UPDATE turn SET attempts = attempts + 1, progress = 0, started_at = coalesce(started_at, ?2)
                WHERE key = ?1";
            run(db, sql, params![held.turn, now])?;
            apply(db, held.conversation, effects, now)?;
            value(db, "SELECT attempts FROM turn WHERE key = ?1", [held.turn])
        })
        .await
    }

    async fn append(&self, lease: Lease, progress: Progress, effects: Effects, now: Timestamp) -> Result<Seq> {
        self.write(move |db| {
            let held = check_lease(db, lease)?;
            let sql =
                "UPDATE turn SET progress = ?2, ran_tools = max(ran_tools, ?2 = 2) WHERE key = ?1 AND progress < ?2";
            run(db, sql, params![held.turn, progress])?;
            apply(db, held.conversation, effects, now)
        })
        .await
    }

    async fn join_turn(&self, lease: Lease, turn: TurnId, effects: Effects, now: Timestamp) -> Result<()> {
        self.write(move |db| {
            let held = check_lease(db, lease)?;
            let sql = "SELECT key, state FROM turn WHERE id = ?1 AND conversation = ?2";
            let found = first(db, sql, params![turn, held.conversation], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let (key, state): (i64, TurnState) = found.ok_or_else(|| StoreError::not_found(Entity::Turn, turn))?;
            if state != TurnState::Queued {
                let (state, required) = (state.name(), TurnState::Queued.name());
                let id = turn.to_string();
                return Err(StoreError::WrongState { entity: Entity::Turn, id, state, required }.into());
            }
            let sql = "UPDATE turn SET state = 1, joined = ?2, started_at = coalesce(started_at, ?3) WHERE key = ?1";
            run(db, sql, params![key, lease.turn, now])?;
            refresh_ready(db, held.conversation, now)?;
            apply(db, held.conversation, effects, now)?;
            Ok(())
        })
        .await
    }

    async fn resolve_joined(
        &self,
        lease: Lease,
        turn: TurnId,
        outcome: JoinedOutcome,
        effects: Effects,
        now: Timestamp,
    ) -> Result<()> {
        self.write(move |db| resolve_joined(db, lease, turn, outcome, effects, now)).await
    }

    async fn reserve_budget(
        &self,
        lease: Lease,
        budgets: Vec<BudgetLimit>,
        day: Day,
        _now: Timestamp,
    ) -> Result<BudgetDecision> {
        self.write(move |db| reserve(db, check_lease(db, lease)?, budgets, day)).await
    }

    async fn finish(&self, lease: Lease, end: Finish, now: Timestamp) -> Result<()> {
        self.write(move |db| finish(db, lease, end, now)).await
    }

    async fn hand_back(&self, lease: Lease, end: HandBack, now: Timestamp) -> Result<()> {
        self.write(move |db| hand_back(db, lease, end, now)).await
    }
}

fn reserve(db: &Connection, held: Held, budgets: Vec<BudgetLimit>, day: Day) -> Outcome<BudgetDecision> {
    for budget in &budgets {
        let status = budget_status(db, &budget.scope, day, Some(held.turn))?;
        let taken = status.spent_micros.saturating_add(status.reserved_micros);
        if taken >= budget.limit_micros || taken.saturating_add(budget.reserve_micros) > budget.limit_micros {
            return Ok(BudgetDecision::Exceeded { scope: budget.scope.clone(), status });
        }
    }
    run(db, "DELETE FROM reservation WHERE turn = ?1", [held.turn])?;
    for budget in budgets {
        let sql = "INSERT OR REPLACE INTO reservation (turn, scope, day, amount_micros) VALUES (?1, ?2, ?3, ?4)";
        run(db, sql, params![held.turn, budget.scope, day, integer(budget.reserve_micros)])?;
    }
    Ok(BudgetDecision::Reserved)
}

/// Returns the figures of a budget without the reservation of one turn.
pub(super) fn budget_status(db: &Connection, scope: &str, day: Day, without: Option<i64>) -> Outcome<BudgetStatus> {
    let spent = "SELECT coalesce(max(spent_micros), 0) FROM budget WHERE scope = ?1 AND day = ?2";
    let reserved = "SELECT CAST(total(amount_micros) AS INTEGER) FROM reservation
        WHERE scope = ?1 AND day = ?2 AND turn IS NOT ?3";
    Ok(BudgetStatus {
        spent_micros: unsigned(value(db, spent, params![scope, day])?),
        reserved_micros: unsigned(value(db, reserved, params![scope, day, without])?),
    })
}
