//! The steps of a delivery.

use rusqlite::{Connection, params};

use super::effects::{add_deliveries, apply};
use super::failure::Outcome;
use super::query::{first, run, value};
use super::rows::find_delivery;
use crate::error::StoreError;
use crate::ids::{ConversationId, Timestamp};
use crate::records::{Delivery, DeliveryLease, DeliveryState, DeliveryStep, Effects};

/// Records a step of a delivery.
pub(super) fn advance(
    db: &Connection,
    lease: DeliveryLease,
    step: DeliveryStep,
    effects: Effects,
    now: Timestamp,
) -> Outcome<Delivery> {
    let lost = StoreError::DeliveryLeaseLost { delivery: lease.delivery, epoch: lease.epoch };
    let sql = "SELECT key, lease_until, conversation FROM delivery
        WHERE id = ?1 AND epoch = ?2 AND worker IS NOT NULL";
    let found =
        first(db, sql, params![lease.delivery, lease.epoch], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (key, until, conversation): (i64, Timestamp, Option<ConversationId>) = found.ok_or_else(|| lost.clone())?;
    match step {
        DeliveryStep::Renew(_) if until <= now => return Err(lost.into()),
        DeliveryStep::Renew(lease_for) => {
            let sql = "UPDATE delivery SET lease_until = ?2, ready_at = ?2 WHERE key = ?1";
            run(db, sql, params![key, now.after(lease_for)])?;
        }
        DeliveryStep::PartStarted(_) | DeliveryStep::PartSent(..) | DeliveryStep::PartNotSent(_) => {
            set_part(db, key, step)?;
        }
        DeliveryStep::Sent => {
            let sql = "SELECT count(*) FROM delivery_part WHERE delivery = ?1 AND sent = 0";
            if value::<u32>(db, sql, [key])? > 0 {
                return Err(StoreError::Invalid { reason: "a part of the delivery is not confirmed" }.into());
            }
            end(db, key, DeliveryState::Sent, None, now)?;
        }
        DeliveryStep::Retry(at, error) => {
            let sql = "UPDATE delivery SET state = 0, not_before = ?2, ready_at = ?2, error = ?3, worker = NULL,
                    lease_until = NULL
                WHERE key = ?1";
            run(db, sql, params![key, at, error])?;
        }
        DeliveryStep::Postpone(at) => {
            let sql = "UPDATE delivery SET state = 0, not_before = ?2, ready_at = ?2, attempts = max(attempts - 1, 0),
                    worker = NULL, lease_until = NULL
                WHERE key = ?1";
            run(db, sql, params![key, at])?;
        }
        DeliveryStep::Wait { at, error, attempts } => {
            let sql = "UPDATE delivery SET state = 0, not_before = ?2, ready_at = ?2, error = ?3, attempts = ?4,
                    worker = NULL, lease_until = NULL
                WHERE key = ?1";
            run(db, sql, params![key, at, error, attempts])?;
        }
        DeliveryStep::Failed(error) => end(db, key, DeliveryState::Failed, Some(&error), now)?,
        DeliveryStep::Unknown(error) => end(db, key, DeliveryState::Unknown, Some(&error), now)?,
    }
    let sql = "SELECT key FROM conversation WHERE id = ?1";
    match first(db, sql, [conversation], |row| row.get(0))? {
        Some(conversation) => _ = apply(db, conversation, effects, now)?,
        None => _ = add_deliveries(db, effects.deliveries, now)?,
    }
    Ok(find_delivery(db, lease.delivery)?.1)
}

fn set_part(db: &Connection, key: i64, step: DeliveryStep) -> Outcome<()> {
    match step {
        DeliveryStep::PartStarted(index) => {
            let sql = "SELECT sent FROM delivery_part WHERE delivery = ?1 AND part = ?2";
            if first(db, sql, params![key, index], |row| row.get(0))? == Some(true) {
                return Err(StoreError::Invalid { reason: "this part of the delivery is confirmed" }.into());
            }
            let sql = "INSERT OR IGNORE INTO delivery_part (delivery, part, sent) VALUES (?1, ?2, 0)";
            run(db, sql, params![key, index])?;
        }
        DeliveryStep::PartSent(index, id) => {
            let sql = "INSERT OR REPLACE INTO delivery_part (delivery, part, sent, service_id) VALUES (?1, ?2, 1, ?3)";
            run(db, sql, params![key, index, id])?;
        }
        DeliveryStep::PartNotSent(index) => {
            run(db, "DELETE FROM delivery_part WHERE delivery = ?1 AND part = ?2", params![key, index])?;
        }
        _ => {}
    }
    Ok(())
}

fn end(db: &Connection, key: i64, state: DeliveryState, error: Option<&str>, now: Timestamp) -> Outcome<()> {
    let sql = "UPDATE delivery SET state = ?2, error = ?3, ended_at = ?4, worker = NULL, lease_until = NULL,
            ready_at = NULL
        WHERE key = ?1";
    run(db, sql, params![key, state, error, now])?;
    Ok(())
}
