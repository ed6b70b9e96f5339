//! The leases that this worker holds, and the deadline of its agents that follows from them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use teamster::{HostLease, LeaseTime};
use teamster_store::{Lease, TurnId};
use tokio_util::sync::CancellationToken;

/// The leases that this worker holds.
///
/// This process stops a turn whose lease is about to expire. If this process is itself stopped, or is late, the keepers
/// kill the agents: the deadline of the [`HostLease`] is before the end of the lease that expires first. A lost lease
/// is held until its turn is removed, which happens when its agent no longer runs.
#[derive(Debug)]
pub(super) struct Leases {
    held: Mutex<HashMap<TurnId, Held>>,
    lease_for: Duration,
    /// `None` if the runtime has no lease.
    host: Option<HostLease>,
}

#[derive(Clone, Debug)]
struct Held {
    lease: Lease,
    /// Measured from before the call that claimed or renewed it.
    expires: LeaseTime,
    lost: CancellationToken,
}

impl Leases {
    pub(super) fn new(lease_for: Duration, host: Option<HostLease>) -> Self {
        Self { held: Mutex::default(), lease_for, host }
    }

    /// Returns the time before the end of a lease at which its turn is stopped: enough for SIGTERM, the grace period and
    /// SIGKILL.
    pub(super) fn stop_margin(&self) -> Duration {
        (self.lease_for / 3).min(Duration::from_secs(8))
    }

    /// Returns the time before the end of a lease at which the keepers kill what is left.
    fn kill_margin(&self) -> Duration {
        self.stop_margin() / 2
    }

    /// Adds a lease that was claimed by a call which began at `since`. The token is cancelled when the lease is lost.
    pub(super) fn add(&self, lease: Lease, since: LeaseTime) -> CancellationToken {
        let lost = CancellationToken::new();
        let mut held = self.held();
        held.insert(lease.turn, Held { lease, expires: since + self.lease_for, lost: lost.clone() });
        self.renew_host(&held);
        lost
    }

    /// Removes a lease. No process of its turn may run.
    pub(super) fn remove(&self, lease: Lease) {
        let mut held = self.held();
        if held.get(&lease.turn).is_some_and(|found| found.lease == lease) {
            held.remove(&lease.turn);
        }
        self.renew_host(&held);
    }

    /// Returns the leases to renew: all that are not lost.
    pub(super) fn renewable(&self) -> Vec<Lease> {
        self.held().values().filter(|held| !held.lost.is_cancelled()).map(|held| held.lease).collect()
    }

    /// Records that these leases were renewed by a call which began at `since`.
    pub(super) fn renewed(&self, leases: &[Lease], since: LeaseTime) {
        let mut held = self.held();
        for lease in leases {
            if let Some(found) = held.get_mut(&lease.turn)
                && found.lease == *lease
            {
                found.expires = since + self.lease_for;
            }
        }
        self.renew_host(&held);
    }

    pub(super) fn lose(&self, lease: Lease) {
        if let Some(found) = self.held().get(&lease.turn)
            && found.lease == lease
        {
            found.lost.cancel();
        }
    }

    /// Gives up the leases that are about to expire.
    pub(super) fn lose_expiring(&self) {
        let until = LeaseTime::now() + self.stop_margin();
        self.held().values().filter(|held| held.expires < until).for_each(|held| held.lost.cancel());
    }

    /// Returns whether a turn is being stopped because its lease is lost.
    pub(super) fn is_stopping(&self) -> bool {
        self.held().values().any(|held| held.lost.is_cancelled())
    }

    fn renew_host(&self, held: &HashMap<TurnId, Held>) {
        let Some(host) = &self.host else { return };
        // Without a turn, the agents of idle sessions live as long as this process renews.
        let expires = held.values().map(|held| held.expires).min().unwrap_or_else(|| LeaseTime::now() + self.lease_for);
        host.renew(expires - self.kill_margin());
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TurnId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use teamster_store::{ConversationId, Epoch};
    use uuid::Uuid;

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn lease() -> Lease {
        let (conversation, turn) = (ConversationId::new(Uuid::now_v7()), TurnId::new(Uuid::now_v7()));
        Lease { conversation, turn, epoch: Epoch::new(1) }
    }

    fn leases() -> (Leases, HostLease) {
        let host = HostLease::new().unwrap();
        (Leases::new(LEASE, Some(host.clone())), host)
    }

    fn ago(seconds: u64) -> LeaseTime {
        LeaseTime::now() - Duration::from_secs(seconds)
    }

    #[test]
    fn a_turn_is_stopped_before_the_keepers_kill_its_agent_and_both_happen_before_the_lease_ends() {
        let (leases, host) = leases();
        let lost = leases.add(lease(), ago(21));
        leases.lose_expiring();
        assert!(!lost.is_cancelled() && !host.is_expired());
        let (leases, host) = self::leases();
        let lost = leases.add(lease(), ago(23));
        leases.lose_expiring();
        assert!(lost.is_cancelled() && leases.is_stopping() && !host.is_expired());
        let (leases, host) = self::leases();
        leases.add(lease(), ago(27));
        assert!(host.is_expired());
    }

    #[test]
    fn the_agents_live_as_long_as_the_lease_that_expires_first() {
        let (leases, host) = leases();
        let (old, new) = (lease(), lease());
        leases.add(old, ago(27));
        leases.add(new, ago(0));
        assert!(host.is_expired());
        leases.renewed(&[old, new], ago(0));
        assert!(!host.is_expired());
    }

    #[test]
    fn a_lost_lease_is_not_renewed_and_is_held_until_its_turn_is_removed() {
        let (leases, host) = leases();
        let (old, new) = (lease(), lease());
        leases.add(old, ago(27));
        leases.add(new, ago(0));
        leases.lose_expiring();
        assert_eq!(leases.renewable(), [new]);
        leases.renewed(&[new], ago(0));
        assert!(host.is_expired() && leases.is_stopping());
        leases.remove(old);
        assert!(!host.is_expired() && !leases.is_stopping());
    }

    #[test]
    fn without_a_turn_the_agents_live_while_the_worker_renews() {
        let (leases, host) = leases();
        assert!(host.is_expired());
        leases.renewed(&[], LeaseTime::now());
        assert!(!host.is_expired());
    }
}
