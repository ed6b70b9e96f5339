//! Permission requests in the model.

use std::collections::BTreeSet;

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
            let Answer { id, decision, by, message, effects } = answer;
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
            state.check_deliveries(&effects.deliveries)?;
            permission.closing = Some(Closing { outcome: decision.outcome(), by: Some(by), message, at: now });
            state.permissions.insert(key, permission.clone());
            state.apply(permission.conversation, effects, now)?;
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
            state.check_closings(lease, &closings, &Effects::default())?;
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
    /// Checks that the deliveries of closings, and those of the effects after them, can be added.
    pub(super) fn check_closings(&self, lease: Lease, closings: &[PermissionClosing], after: &Effects) -> Result<()> {
        let mut closed = BTreeSet::new();
        let is_open = |id: PermissionId| {
            self.permissions.values().any(|one| one.id == id && one.turn == lease.turn && one.closing.is_none())
        };
        let applied = closings.iter().filter(|closing| is_open(closing.id) && closed.insert(closing.id));
        let deliveries: Vec<_> =
            applied.flat_map(|closing| &closing.effects.deliveries).chain(&after.deliveries).collect();
        self.check_deliveries(deliveries)
    }

    /// Closes open requests of the running turn, and returns them.
    pub(super) fn close(
        &mut self,
        lease: Lease,
        closings: Vec<PermissionClosing>,
        now: Timestamp,
    ) -> Result<Vec<PermissionId>> {
        let mut closed = Vec::new();
        for PermissionClosing { id, outcome, effects } in closings {
            let open = self.permissions.values_mut();
            let mut open = open.filter(|one| one.id == id && one.turn == lease.turn && one.closing.is_none());
            let Some(permission) = open.next() else { continue };
            permission.closing = Some(Closing { outcome, by: None, message: None, at: now });
            closed.push(id);
            self.apply(lease.conversation, effects, now)?;
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
