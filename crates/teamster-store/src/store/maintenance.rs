//! Tokens, the audit log, state of channels, usage, retention and figures.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{Day, Json, Timestamp, TokenId};
use crate::records::{
    AuditEntry, BudgetStatus, NewAuditEntry, Page, PageRequest, Pruned, RetentionPolicy, StoreStatus, Token,
    UsageQuery, UsageRow,
};

/// Keeps API tokens and the audit log.
#[async_trait]
pub trait AccessStore: Send + Sync {
    /// Stores a token. Fails with `Exists` if its id or hash is in use.
    async fn add_token(&self, token: Token) -> Result<()>;

    /// Returns the token with this hash, also a revoked one.
    async fn token_by_hash(&self, hash: [u8; 32]) -> Result<Option<Token>>;

    /// Revokes a token. A later call keeps the time of the first one.
    async fn revoke_token(&self, id: TokenId, now: Timestamp) -> Result<Token>;

    /// Deletes a token, and returns whether it existed. The audit log keeps its id.
    async fn remove_token(&self, id: TokenId) -> Result<bool>;

    /// Lists tokens in the order of their creation.
    async fn tokens(&self, page: PageRequest) -> Result<Page<Token>>;

    /// Appends to the audit log. No operation changes or deletes an entry.
    async fn record_audit(&self, entry: NewAuditEntry, now: Timestamp) -> Result<()>;

    /// Lists the audit log, the oldest entry first.
    async fn audit_log(&self, page: PageRequest) -> Result<Page<AuditEntry>>;
}

/// Counts, cleans up, and keeps small state.
#[async_trait]
pub trait MaintenanceStore: Send + Sync {
    /// Returns usage by day, agent, conversation and author, in this order.
    async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>>;

    /// Returns the figures of a budget.
    async fn budget(&self, scope: String, day: Day) -> Result<BudgetStatus>;

    /// Deletes what the policy names, at most one batch of each kind. The rest of each log has no gap.
    async fn prune(&self, policy: RetentionPolicy, now: Timestamp) -> Result<Pruned>;

    /// Returns which of these hashes of files are in the fields `hash` of messages, of deliveries, or of the events
    /// `message_sent`, so that the files are still needed.
    async fn needed_files(&self, hashes: Vec<String>) -> Result<Vec<String>>;

    /// Keeps a small document of a channel, for example the offset of a bot or a gateway session.
    async fn set_channel_state(&self, key: String, state: Json) -> Result<()>;

    /// Returns the document of a channel.
    async fn channel_state(&self, key: String) -> Result<Option<Json>>;

    /// Returns figures for the operator.
    async fn status(&self, now: Timestamp) -> Result<StoreStatus>;
}
