//! The context of a tool call.

use std::sync::Arc;

use super::turn::Current;
use crate::engine::Gateway;

/// A call of a running turn.
pub(super) struct Call {
    pub(super) gateway: Gateway,
    pub(super) current: Arc<Current>,
    /// The id of the call, which a repeated call has again.
    pub(super) id: String,
}
