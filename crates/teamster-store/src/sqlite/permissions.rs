//! Permission requests.

use async_trait::async_trait;
use rusqlite::{Connection, named_params, params};

use super::SqliteStore;
use super::effects::{Held, apply, check_lease};
use super::failure::Outcome;
use super::query::{all, check_limit, first, key_of, page, run};
use super::rows::{PERMISSIONS, conversation_key, permission};
use crate::error::{Entity, Result, StoreError};
use crate::ids::{PermissionId, Timestamp};
use crate::records::{
    Answer, AnswerOutcome, Effects, Lease, NewPermission, Page, PageRequest, Permission, PermissionClosing,
    PermissionFilter, PermissionOutcome,
};
use crate::store::PermissionStore;

#[async_trait]
impl PermissionStore for SqliteStore {
    async fn request_permission(
        &self,
        lease: Lease,
        request: NewPermission,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Permission> {
        self.write(move |db| {
            let held = check_lease(db, lease)?;
            let NewPermission { id, body, deadline } = request;
            let sql = "INSERT INTO permission (id, conversation, turn, epoch, body, requested_at, deadline)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING";
            if run(db, sql, params![id, held.conversation, held.turn, lease.epoch, body, now, deadline])? == 0 {
                return Err(StoreError::exists(Entity::Permission, id).into());
            }
            apply(db, held.conversation, effects, now)?;
            find(db, id)
        })
        .await
    }

    async fn answer_permission(&self, answer: Answer, now: Timestamp) -> Result<AnswerOutcome> {
        self.write(move |db| {
            let Answer { id, decision, by, message, effects } = answer;
            let permission = find(db, id)?;
            if permission.closing.is_some() {
                return Ok(AnswerOutcome::Closed(permission));
            }
            let sql = "SELECT 1 FROM conversation WHERE id = ?1 AND epoch = ?2 AND lease_until > ?3";
            let params = params![permission.conversation, permission.epoch, now];
            let is_live = first(db, sql, params, |_| Ok(()))?.is_some();
            if permission.deadline <= now || !is_live {
                return Ok(AnswerOutcome::Expired(permission));
            }
            let sql = "UPDATE permission SET outcome = ?2, closed_by = ?3, message = ?4, closed_at = ?5 WHERE id = ?1";
            run(db, sql, params![id, decision.outcome(), by, message, now])?;
            apply(db, conversation_key(db, permission.conversation)?, effects, now)?;
            Ok(AnswerOutcome::Applied(find(db, id)?))
        })
        .await
    }

    async fn close_permissions(
        &self,
        lease: Lease,
        closings: Vec<PermissionClosing>,
        now: Timestamp,
    ) -> Result<Vec<PermissionId>> {
        self.write(move |db| close(db, check_lease(db, lease)?, closings, now)).await
    }

    async fn permissions(&self, filter: PermissionFilter, request: PageRequest) -> Result<Page<Permission>> {
        let limit = check_limit(request.limit)?;
        let after = key_of(request.cursor.as_ref())?.unwrap_or_default();
        self.read(move |db| {
            let open = if filter.open { "AND outcome IS NULL" } else { "" };
            let sql = format!(
                "{PERMISSIONS} WHERE permission.key > :after {open}
                    AND (:conversation IS NULL OR conversation.id = :conversation)
                    AND (:turn IS NULL OR turn.id = :turn)
                ORDER BY permission.key LIMIT :limit"
            );
            let params = named_params! {
                ":after": after, ":conversation": filter.conversation, ":turn": filter.turn,
                ":limit": limit.saturating_add(1),
            };
            Ok(page(all(db, &sql, params, |row| Ok((row.get("key")?, permission(row)?)))?, &request))
        })
        .await
    }

    async fn permission(&self, id: PermissionId) -> Result<Option<Permission>> {
        self.read(move |db| first(db, &format!("{PERMISSIONS} WHERE permission.id = ?1"), [id], permission)).await
    }
}

fn find(db: &Connection, id: PermissionId) -> Outcome<Permission> {
    let found = first(db, &format!("{PERMISSIONS} WHERE permission.id = ?1"), [id], permission)?;
    Ok(found.ok_or_else(|| StoreError::not_found(Entity::Permission, id))?)
}

/// Closes open requests of the running turn, and returns them.
pub(super) fn close(
    db: &Connection,
    held: Held,
    closings: Vec<PermissionClosing>,
    now: Timestamp,
) -> Outcome<Vec<PermissionId>> {
    let mut closed = Vec::new();
    for PermissionClosing { id, outcome, effects } in closings {
        let sql = "UPDATE permission SET outcome = ?3, closed_at = ?4 WHERE id = ?1 AND turn = ?2 AND outcome IS NULL";
        if run(db, sql, params![id, held.turn, outcome, now])? == 1 {
            closed.push(id);
            apply(db, held.conversation, effects, now)?;
        }
    }
    Ok(closed)
}

/// Closes the remaining open requests of the running turn.
pub(super) fn close_rest(db: &Connection, held: Held, outcome: PermissionOutcome, now: Timestamp) -> Outcome<()> {
    let sql = "UPDATE permission SET outcome = ?2, closed_at = ?3 WHERE turn = ?1 AND outcome IS NULL";
    run(db, sql, params![held.turn, outcome, now])?;
    Ok(())
}
