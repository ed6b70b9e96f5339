//! Renews the leases of this worker together, and stops a turn in time whose lease cannot be renewed.

use std::time::Duration;

use teamster::LeaseTime;
use teamster_store::{Lease, Renewal};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::gateway::Shared;
use super::running::TurnCommand;

/// Renews the leases, and stops turns in time, until the task is dropped.
pub(super) async fn renew(shared: &Shared) {
    // A store that does not answer must not delay the checks.
    tokio::join!(renew_regularly(shared), stop_in_time(shared));
}

async fn renew_regularly(shared: &Shared) {
    let step = (shared.config.timing.lease / 6).max(Duration::from_millis(20));
    let mut ticks = interval(step);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let leases = shared.leases.renewable();
        if leases.is_empty() {
            shared.leases.renewed(&[], LeaseTime::now());
        } else {
            renew_once(shared, leases, step).await;
        }
    }
}

async fn renew_once(shared: &Shared, leases: Vec<Lease>, limit: Duration) {
    let since = LeaseTime::now();
    let renewal = shared.store.renew(leases.clone(), shared.config.timing.lease, shared.clock.now());
    let outcomes = match timeout(limit, renewal).await {
        Ok(Ok(outcomes)) => outcomes,
        Ok(Err(error)) => {
            tracing::error!(%error, "leases cannot be renewed; their turns stop before the leases expire");
            return;
        }
        Err(_) => {
            tracing::error!("the store does not renew leases in time; their turns stop before they expire");
            return;
        }
    };
    let mut renewed = Vec::with_capacity(leases.len());
    for (lease, outcome) in leases.into_iter().zip(outcomes) {
        match outcome {
            Renewal::Renewed { abort_requested, .. } => {
                renewed.push(lease);
                if abort_requested {
                    shared.running.send(lease.turn, TurnCommand::Abort);
                }
            }
            Renewal::Lost => shared.leases.lose(lease),
        }
    }
    shared.leases.renewed(&renewed, since);
}

async fn stop_in_time(shared: &Shared) {
    let mut checks = interval((shared.leases.stop_margin() / 16).max(Duration::from_millis(10)));
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        checks.tick().await;
        shared.leases.lose_expiring();
    }
}
