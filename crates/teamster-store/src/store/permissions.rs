//! Permission requests.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{PermissionId, Timestamp};
use crate::records::{
    Answer, AnswerOutcome, Effects, Lease, NewPermission, Page, PageRequest, Permission, PermissionClosing,
    PermissionFilter,
};

/// Keeps permission requests until they are answered or closed.
#[async_trait]
pub trait PermissionStore: Send + Sync {
    /// Stores a request of the running turn.
    async fn request_permission(
        &self,
        lease: Lease,
        request: NewPermission,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Permission>;

    /// Answers a request once. The effects are added only if the answer is applied.
    async fn answer_permission(&self, answer: Answer, now: Timestamp) -> Result<AnswerOutcome>;

    /// Closes requests of the running turn without a person, and returns those that were open.
    async fn close_permissions(
        &self,
        lease: Lease,
        closings: Vec<PermissionClosing>,
        now: Timestamp,
    ) -> Result<Vec<PermissionId>>;

    /// Lists requests, the oldest first.
    async fn permissions(&self, filter: PermissionFilter, page: PageRequest) -> Result<Page<Permission>>;

    /// Returns a request.
    async fn permission(&self, id: PermissionId) -> Result<Option<Permission>>;
}
