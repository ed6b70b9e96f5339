//! The leases of this worker: they are renewed together, and a turn whose lease cannot be renewed is stopped in time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use teamster_store::{Lease, Renewal, TurnId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::running::TurnCommand;

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

    fn all(&self) -> Vec<Lease> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).values().map(|held| held.lease).collect()
    }

    fn renewed(&self, lease: Lease, until: Instant) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.get_mut(&lease.turn)
            && found.lease == lease
        {
            found.expires = until;
        }
    }

    fn lose(&self, lease: Lease) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.get(&lease.turn)
            && found.lease == lease
        {
            found.lost.cancel();
        }
    }

    /// Gives up the leases that expire before `until`.
    fn lose_before(&self, until: Instant) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.values().filter(|held| held.expires < until).for_each(|held| held.lost.cancel());
    }
}

/// Returns the time before the end of a lease at which its turn is stopped: enough for SIGTERM, the grace period and SIGKILL.
fn margin(lease_for: Duration) -> Duration {
    (lease_for / 3).min(Duration::from_secs(8))
}

/// Renews the leases until the task is dropped.
pub(super) async fn renew(shared: &Shared) {
    let lease_for = shared.config.timing.lease;
    let step = (lease_for / 6).max(Duration::from_millis(20));
    let mut ticks = tokio::time::interval(step);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.leases.lose_before(Instant::now() + margin(lease_for));
        let leases = shared.leases.all();
        if leases.is_empty() {
            continue;
        }
        let since = Instant::now();
        // A store that does not answer must not delay the check of the next tick.
        let renewal = shared.store.renew(leases.clone(), lease_for, shared.clock.now());
        match tokio::time::timeout(step, renewal).await {
            Ok(Ok(outcomes)) => {
                for (lease, outcome) in leases.into_iter().zip(outcomes) {
                    match outcome {
                        Renewal::Renewed { abort_requested, .. } => {
                            shared.leases.renewed(lease, since + lease_for);
                            if abort_requested {
                                shared.running.send(lease.turn, TurnCommand::Abort);
                            }
                        }
                        Renewal::Lost => shared.leases.lose(lease),
                    }
                }
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "leases cannot be renewed; their turns stop before the leases expire");
            }
            Err(_) => tracing::error!("the store does not renew leases in time; their turns stop before they expire"),
        }
    }
}
