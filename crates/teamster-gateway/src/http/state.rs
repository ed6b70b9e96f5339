//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::inspection::AgentCache;
use crate::engine::Gateway;

/// What the handlers share.
pub(super) struct Api {
    pub(super) gateway: Gateway,
    pub(super) agents: AgentCache,
    /// The places of event streams.
    pub(super) subscribers: Arc<Semaphore>,
    /// How long a stream waits for a subscriber that does not read.
    pub(super) patience: Duration,
}

/// The extractor of the shared state.
pub(super) type State = axum::extract::State<Arc<Api>>;
