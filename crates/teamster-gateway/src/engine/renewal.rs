//! Renews the leases of this worker together, and stops a turn in time whose lease cannot be renewed.

use std::time::Duration;

use teamster_store::Renewal;
use tokio::time::Instant;

use super::gateway::Shared;
use super::running::TurnCommand;

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
