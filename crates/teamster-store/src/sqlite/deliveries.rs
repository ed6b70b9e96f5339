//! The delivery queue.

use async_trait::async_trait;
use rusqlite::{Connection, named_params, params};

use super::SqliteStore;
use super::delivery_steps::advance;
use super::effects::add_deliveries;
use super::failure::Outcome;
use super::query::{all, check_limit, key_of, page, run};
use super::rows::{DELIVERIES, delivery, find_delivery, with_parts};
use crate::error::{Entity, Result, StoreError};
use crate::ids::{DeliveryId, Epoch, Timestamp};
use crate::records::{
    ClaimedDelivery, Delivery, DeliveryClaim, DeliveryFilter, DeliveryLease, DeliveryState, DeliveryStep, Effects,
    LONGEST_DELIVERY_DELAY, NewDelivery, Page, PageRequest,
};
use crate::store::DeliveryStore;

#[async_trait]
impl DeliveryStore for SqliteStore {
    async fn enqueue(&self, deliveries: Vec<NewDelivery>, now: Timestamp) -> Result<u32> {
        self.write(move |db| add_deliveries(db, deliveries, now)).await
    }

    async fn claim_deliveries(&self, claim: DeliveryClaim, now: Timestamp) -> Result<Vec<ClaimedDelivery>> {
        let limit = check_limit(claim.limit)?;
        self.write(move |db| {
            let found = ready(db, &claim.channels, limit, now)?;
            found.into_iter().map(|id| take(db, id, &claim, now)).collect()
        })
        .await
    }

    async fn advance_delivery(
        &self,
        lease: DeliveryLease,
        step: DeliveryStep,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Delivery> {
        self.write(move |db| advance(db, lease, step, effects, now)).await
    }

    async fn retry_delivery(&self, id: DeliveryId, now: Timestamp) -> Result<Delivery> {
        self.write(move |db| {
            let (key, delivery) = find_delivery(db, id)?;
            if !matches!(delivery.state, DeliveryState::Failed | DeliveryState::Unknown) {
                let (id, state, required) = (id.to_string(), delivery.state.name(), "failed or unknown");
                return Err(StoreError::WrongState { entity: Entity::Delivery, id, state, required }.into());
            }
            let sql = "UPDATE delivery SET state = 0, attempts = 0, not_before = ?2, ready_at = ?2, ended_at = NULL
                WHERE key = ?1";
            run(db, sql, params![key, now])?;
            Ok(find_delivery(db, id)?.1)
        })
        .await
    }

    async fn deliveries(&self, filter: DeliveryFilter, request: PageRequest) -> Result<Page<Delivery>> {
        let limit = check_limit(request.limit)?;
        let after = key_of(request.cursor.as_ref())?.unwrap_or_default();
        self.read(move |db| {
            let sql = format!(
                "{DELIVERIES} WHERE key > :after AND (:state IS NULL OR state = :state)
                    AND (:conversation IS NULL OR conversation = :conversation) AND (:turn IS NULL OR turn = :turn)
                ORDER BY key LIMIT :limit"
            );
            let params = named_params! {
                ":after": after, ":state": filter.state, ":conversation": filter.conversation, ":turn": filter.turn,
                ":limit": limit.saturating_add(1),
            };
            let rows = all(db, &sql, params, delivery)?;
            let rows = rows.into_iter().map(|row| with_parts(db, row)).collect::<Outcome<_>>()?;
            Ok(page(rows, &request))
        })
        .await
    }
}

/// Returns the first delivery of each chat that can be claimed, those that have waited longest first. A delivery
/// without a delay that was never claimed can be claimed at once, even if the clock was set back since it was added.
fn ready(db: &Connection, channels: &[String], limit: i64, now: Timestamp) -> Outcome<Vec<DeliveryId>> {
    let sql = "SELECT id FROM delivery AS d
        WHERE (ready_at <= ?1 OR (state = 0 AND (not_before <= created_at AND epoch = 0 OR not_before > ?4))) AND channel IN (SELECT value FROM json_each(?2))
            AND NOT EXISTS (SELECT 1 FROM delivery AS earlier WHERE earlier.channel = d.channel
                AND earlier.chat = d.chat AND earlier.key < d.key AND earlier.ready_at IS NOT NULL)
        ORDER BY ready_at, key LIMIT ?3";
    let channels = serde_json::Value::from(channels).to_string();
    all(db, sql, params![now, channels, limit, now.after(LONGEST_DELIVERY_DELAY)], |row| row.get(0))
}

fn take(db: &Connection, id: DeliveryId, claim: &DeliveryClaim, now: Timestamp) -> Outcome<ClaimedDelivery> {
    let expires_at = now.after(claim.lease_for);
    let sql =
        "UPDATE delivery SET epoch = epoch + 1, attempts = attempts + 1, state = 1, worker = ?2, lease_until = ?3,
            ready_at = ?3
        WHERE id = ?1 RETURNING epoch";
    let epoch: Epoch = db.prepare_cached(sql)?.query_row(params![id, claim.worker, expires_at], |row| row.get(0))?;
    let (_, delivery) = find_delivery(db, id)?;
    Ok(ClaimedDelivery { lease: DeliveryLease { delivery: id, epoch }, expires_at, delivery })
}
