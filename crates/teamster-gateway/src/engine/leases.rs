//! The leases that this worker holds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use teamster_store::{Lease, TurnId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The leases that this worker holds.
#[derive(Debug, Default)]
pub(super) struct Leases {
    held: Mutex<HashMap<TurnId, Held>>,
}

#[derive(Clone, Debug)]
struct Held {
    lease: Lease,
    /// By this process's clock: counted from before the call that claimed or renewed it.
    expires: Instant,
    lost: CancellationToken,
}

impl Leases {
    /// Adds a lease that was claimed by a call which began at `since`. The token is cancelled when the lease is lost.
    pub(super) fn add(&self, lease: Lease, since: Instant, lease_for: Duration) -> CancellationToken {
        let lost = CancellationToken::new();
        let held = Held { lease, expires: since + lease_for, lost: lost.clone() };
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(lease.turn, held);
        lost
    }

    /// Removes a lease.
    pub(super) fn remove(&self, lease: Lease) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(&lease.turn).is_some_and(|found| found.lease == lease) {
            held.remove(&lease.turn);
        }
    }

    pub(super) fn all(&self) -> Vec<Lease> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).values().map(|held| held.lease).collect()
    }

    pub(super) fn renewed(&self, lease: Lease, until: Instant) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.get_mut(&lease.turn)
            && found.lease == lease
        {
            found.expires = until;
        }
    }

    pub(super) fn lose(&self, lease: Lease) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.get(&lease.turn)
            && found.lease == lease
        {
            found.lost.cancel();
        }
    }

    /// Gives up the leases that expire before `until`.
    pub(super) fn lose_before(&self, until: Instant) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.values().filter(|held| held.expires < until).for_each(|held| held.lost.cancel());
    }
}
