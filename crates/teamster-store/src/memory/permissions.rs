//! Permission requests in the model.

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{State, page};
use crate::error::{Entity, Result, StoreError};
use crate::ids::{PermissionId, Timestamp};
use crate::records::{
    Answer, AnswerOutcome, Closing, Effects, Lease, NewPermission, Page, PageRequest, Permission, PermissionClosing,
    PermissionFilter, PermissionOutcome,
};
use crate::store::PermissionStore;

#[async_trait]
impl PermissionStore for MemoryStore {
    async fn request_permission(
        &self,
        lease: Lease,
        request: NewPermission,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Permission> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.check_deliveries(&effects.deliveries)?;
            let NewPermission { id, body, deadline } = request;
            if state.permission_key(id).is_some() {
                return Err(StoreError::exists(Entity::Permission, id));
            }
            let Lease { conversation, turn, epoch } = lease;
            let permission =
                Permission { id, conversation, turn, epoch, body, requested_at: now, deadline, closing: None };
            let key = state.next_key();
            state.permissions.insert(key, permission.clone());
            state.apply(conversation, effects, now)?;
            Ok(permission)
        })
    }

    async fn answer_permission(&self, answer: Answer, now: Timestamp) -> Result<AnswerOutcome> {
        self.with(|state| {
            let Answer { id, decision, by, message, event } = answer;
            let key = state.permission_key(id);
            let permission = key.and_then(|key| state.permissions.get(&key)).cloned();
            let (Some(key), Some(mut permission)) = (key, permission) else {
                return Err(StoreError::not_found(Entity::Permission, id));
            };
            if permission.closing.is_some() {
                return Ok(AnswerOutcome::Closed(permission));
            }
            let room = state.room(permission.conversation)?;
            let is_live = room.epoch == permission.epoch && room.held.as_ref().is_some_and(|held| held.until > now);
            if permission.deadline <= now || !is_live {
                return Ok(AnswerOutcome::Expired(permission));
            }
            permission.closing = Some(Closing { outcome: decision.outcome(), by: Some(by), message, at: now });
            state.permissions.insert(key, permission.clone());
            state.append_events(permission.conversation, vec![event])?;
            Ok(AnswerOutcome::Applied(permission))
        })
    }

    async fn close_permissions(
        &self,
        lease: Lease,
        closings: Vec<PermissionClosing>,
        now: Timestamp,
    ) -> Result<Vec<PermissionId>> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.close(lease, closings, now)
        })
    }

    async fn permissions(&self, filter: PermissionFilter, request: PageRequest) -> Result<Page<Permission>> {
        self.with(|state| {
            let matches = |one: &Permission| {
                (!filter.open || one.closing.is_none())
                    && filter.conversation.is_none_or(|conversation| one.conversation == conversation)
                    && filter.turn.is_none_or(|turn| one.turn == turn)
            };
            let found = state.permissions.iter().filter(|(_, one)| matches(one));
            page(found.map(|(key, one)| (*key, one.clone())), &request)
        })
    }

    async fn permission(&self, id: PermissionId) -> Result<Option<Permission>> {
        self.with(|state| Ok(state.permissions.values().find(|one| one.id == id).cloned()))
    }
}

impl State {
    /// Closes open requests of the running turn, and returns them.
    pub(super) fn close(
        &mut self,
        lease: Lease,
        closings: Vec<PermissionClosing>,
        now: Timestamp,
    ) -> Result<Vec<PermissionId>> {
        let mut closed = Vec::new();
        for PermissionClosing { id, outcome, event } in closings {
            let open = self.permissions.values_mut();
            let mut open = open.filter(|one| one.id == id && one.turn == lease.turn && one.closing.is_none());
            let Some(permission) = open.next() else { continue };
            permission.closing = Some(Closing { outcome, by: None, message: None, at: now });
            closed.push(id);
            self.append_events(lease.conversation, event.into_iter().collect())?;
        }
        Ok(closed)
    }

    /// Closes the remaining open requests of the running turn.
    pub(super) fn close_rest(&mut self, lease: Lease, outcome: PermissionOutcome, now: Timestamp) {
        for one in self.permissions.values_mut().filter(|one| one.turn == lease.turn && one.closing.is_none()) {
            one.closing = Some(Closing { outcome, by: None, message: None, at: now });
        }
    }
}
