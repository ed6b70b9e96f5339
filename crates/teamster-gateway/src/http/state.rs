//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use super::inspection::AgentCache;
use super::readiness::Readiness;
use crate::access::StreamPermits;
use crate::engine::Gateway;

/// How long a stream waits for a client that does not read.
pub(in crate::http) const SEND_TIMEOUT: Duration = Duration::from_mins(1);

/// What the handlers share.
pub(super) struct Api {
    pub(super) gateway: Gateway,
    pub(super) agents: AgentCache,
    pub(super) readiness: Readiness,
    /// The permits of event streams.
    pub(super) subscribers: StreamPermits,
    /// How long a stream waits for a subscriber that does not read.
    pub(super) send_timeout: Duration,
}

/// The extractor of the shared state.
pub(super) type State = axum::extract::State<Arc<Api>>;
