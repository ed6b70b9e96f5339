//! The requests of an attempt that wait for an answer.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use teamster::event::RequestId;
use teamster_store::PermissionId;
use tokio::time::Instant;

/// The interval of checks for answers that were given to another process.
const CHECK: Duration = Duration::from_secs(1);

/// The requests of an attempt that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    pub(super) open: HashMap<RequestId, OpenRequest>,
    /// Requests whose answer is in the log.
    pub(super) answered: HashSet<RequestId>,
    pub(super) last_check: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(super) struct OpenRequest {
    pub(super) id: PermissionId,
    /// The ids of the questions; `None` for a permission request.
    pub(super) questions: Option<Vec<String>>,
}

impl OpenRequests {
    /// Returns when the store is read for answers. `None` if no request waits.
    pub(super) fn next_check(&self) -> Option<Instant> {
        (!self.open.is_empty()).then(|| self.last_check.map_or_else(Instant::now, |last| last + CHECK))
    }

    /// Returns the ids of the requests that wait.
    pub(super) fn ids(&self) -> impl Iterator<Item = PermissionId> {
        self.open.values().map(|request| request.id)
    }
}
