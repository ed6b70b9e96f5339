//! What the checks of all requests share.

use crate::access::{Authentication, Concurrency, Denials, Hosts, LimitKey, Rate};
use crate::engine::Gateway;

/// What the checks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gateway: Gateway,
    pub(super) authentication: Authentication,
    pub(super) hosts: Hosts,
    pub(super) denials: Denials,
    pub(super) rate: Rate<LimitKey>,
    /// New sessions: each of them is stored.
    pub(super) session_rate: Rate<LimitKey>,
    pub(super) concurrency: Concurrency,
}
