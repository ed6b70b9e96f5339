//! Schedules.

use async_trait::async_trait;
use rusqlite::{Connection, named_params, params};

use super::SqliteStore;
use super::effects::apply;
use super::failure::Outcome;
use super::intake::accept;
use super::query::{all, check_limit, first, key_of, page, run};
use super::rows::{SCHEDULES, conversation_key, schedule};
use crate::error::{Entity, Result, StoreError};
use crate::ids::{ScheduleId, Timestamp};
use crate::records::{
    FireOutcome, NewSchedule, Page, PageRequest, QueueLimits, Schedule, ScheduleFilter, ScheduleFiring,
};
use crate::store::ScheduleStore;

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn put_schedule(&self, schedule: NewSchedule, now: Timestamp) -> Result<Schedule> {
        self.write(move |db| put(db, schedule, now)).await
    }

    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.read(move |db| first(db, &format!("{SCHEDULES} WHERE schedule.id = ?1"), [id], schedule)).await
    }

    async fn delete_schedule(&self, id: ScheduleId) -> Result<bool> {
        self.write(move |db| Ok(run(db, "DELETE FROM schedule WHERE id = ?1", [id])? == 1)).await
    }

    async fn schedules(&self, filter: ScheduleFilter, request: PageRequest) -> Result<Page<Schedule>> {
        let limit = check_limit(request.limit)?;
        let after = key_of(request.cursor.as_ref())?.unwrap_or_default();
        self.read(move |db| {
            let sql = format!(
                "{SCHEDULES} WHERE schedule.key > :after
                    AND (:conversation IS NULL OR conversation.id = :conversation)
                    AND (:due_by IS NULL OR next_at <= :due_by)
                ORDER BY schedule.key LIMIT :limit"
            );
            let params = named_params! {
                ":after": after, ":conversation": filter.conversation, ":due_by": filter.due_by,
                ":limit": limit.saturating_add(1),
            };
            Ok(page(all(db, &sql, params, |row| Ok((row.get("key")?, schedule(row)?)))?, &request))
        })
        .await
    }

    async fn fire_schedule(&self, firing: ScheduleFiring, limits: QueueLimits, now: Timestamp) -> Result<FireOutcome> {
        self.write(move |db| {
            let ScheduleFiring { id, due_at, next_at, message, effects } = firing;
            let sql = "UPDATE schedule SET next_at = ?3, last_at = ?2 WHERE id = ?1 AND next_at = ?2
                RETURNING conversation";
            let conversation: Option<i64> = first(db, sql, params![id, due_at, next_at], |row| row.get(0))?;
            let Some(conversation) = conversation else { return Ok(FireOutcome::Stale) };
            let accepted = message.map(|message| accept(db, message, limits, now)).transpose()?;
            apply(db, conversation, effects, now)?;
            Ok(FireOutcome::Fired(accepted))
        })
        .await
    }
}

fn put(db: &Connection, new: NewSchedule, now: Timestamp) -> Outcome<Schedule> {
    let NewSchedule { id, conversation, body, next_at } = new;
    let conversation = conversation_key(db, conversation)?;
    let sql = "INSERT INTO schedule (id, conversation, body, next_at, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (id) DO UPDATE SET conversation = excluded.conversation, body = excluded.body,
            next_at = excluded.next_at";
    run(db, sql, params![id, conversation, body, next_at, now])?;
    let found = first(db, &format!("{SCHEDULES} WHERE schedule.id = ?1"), [id], schedule)?;
    Ok(found.ok_or_else(|| StoreError::not_found(Entity::Schedule, id))?)
}
