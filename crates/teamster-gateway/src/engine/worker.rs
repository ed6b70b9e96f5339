//! The worker: it claims conversations and runs their turns, at most so many at a time.

use std::sync::Arc;
use std::time::Duration;

use teamster::LeaseTime;
use teamster_store::{Claim, ClaimRequest, Lease, TurnId};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::gateway::{Gateway, Shared};
use super::intake::trace_of;
use super::turn::{self, TurnContext, TurnError};
use crate::error::GatewayError;
use crate::failpoints::failpoint;
use crate::telemetry::spans;

/// The interval at which the store is polled for turns that are due.
const POLL: Duration = Duration::from_millis(500);

/// The pause after a failure of the store.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The number of conversations that a worker holds, including those that wait for a person, as a multiple of the limit
/// of running turns.
const WAITING_FACTOR: u32 = 8;

/// Claims turns until the gateway stops, then waits for the running ones.
pub(super) async fn work(gateway: Gateway) {
    let shared = Arc::clone(&gateway.shared);
    let (mut tasks, shutdown_expired) = (JoinSet::new(), CancellationToken::new());
    while !shared.stop.is_cancelled() {
        while let Some(ended) = tasks.try_join_next() {
            report(ended);
        }
        let wait = match claim(&shared).await {
            Ok(Some((claim, since))) => {
                start(&gateway, claim, since, &mut tasks, &shutdown_expired);
                continue;
            }
            Ok(None) => POLL,
            Err(error) => {
                tracing::error!(%error, "no turn can be claimed");
                AFTER_FAILURE
            }
        };
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = shared.work.notified(), if wait == POLL => {}
            () = shared.slots.freed.notified(), if wait == POLL => {}
            () = sleep(wait) => {}
        }
    }
    if timeout(shared.config.timing.shutdown_timeout, wait_for(&mut tasks)).await.is_err() {
        shutdown_expired.cancel();
        wait_for(&mut tasks).await;
    }
}

async fn wait_for(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        report(ended);
    }
}

/// Reports a turn whose task has panicked. Its lease expires, and it is claimed again.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of a turn has failed");
    }
}

/// Claims a turn, if another one may run. Returns it with the time before the call.
async fn claim(shared: &Shared) -> Result<Option<(Claim, LeaseTime)>, GatewayError> {
    // While an agent of a lost lease is being killed, no other agent starts.
    shared.leases.lose_expiring();
    if shared.leases.is_stopping() {
        return Ok(None);
    }
    let limits = &shared.config.limits;
    if shared.slots.running() >= limits.max_running {
        return Ok(None);
    }
    let since = LeaseTime::now();
    let request = ClaimRequest {
        worker: shared.worker.clone(),
        host: shared.host.clone(),
        lease_for: shared.config.timing.lease,
        max_running: limits.max_running.saturating_mul(WAITING_FACTOR),
        max_running_per_chat: limits.max_running_per_chat,
        affinity: shared.config.timing.affinity_timeout,
    };
    let claim = shared.store.claim(request, shared.clock.now()).await?;
    if claim.is_some() {
        failpoint!("claim.after");
    }
    Ok(claim.map(|claim| (claim, since)))
}

fn start(
    gateway: &Gateway,
    claim: Claim,
    since: LeaseTime,
    tasks: &mut JoinSet<()>,
    shutdown_expired: &CancellationToken,
) {
    let shared = Arc::clone(&gateway.shared);
    let (lease, turn, conversation) = (claim.lease, claim.turn.id, claim.conversation.id);
    let lost = shared.leases.add(lease, since);
    let commands = shared.running.add(conversation, turn);
    if claim.turn.abort_requested {
        shared.running.send(turn, super::running::TurnCommand::Abort);
    }
    let slot = Arc::new(shared.slots.take());
    let span = spans::turn(&claim, trace_of(&claim).as_deref());
    let shutdown_expired = shutdown_expired.clone();
    let context = TurnContext {
        gateway: gateway.clone(),
        claim,
        uncounted: 0,
        commands,
        lost,
        shutdown_expired,
        slot,
        span: span.clone(),
    };
    // The lease is removed after a panic as well, so it is no longer renewed.
    let registered = Registered { shared, lease, turn };
    let run = async move {
        match turn::run(context).await {
            Ok(()) => {}
            Err(TurnError::LeaseLost) => {
                registered.shared.metrics.lease_lost();
                tracing::warn!("the lease was lost; the turn was stopped here");
            }
            Err(TurnError::Gateway(error)) => tracing::error!(%error, "the turn was stopped; it is claimed again"),
        }
        drop(registered);
    };
    tasks.spawn(tracing::Instrument::instrument(run, span));
}

struct Registered {
    shared: Arc<Shared>,
    lease: Lease,
    turn: TurnId,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.shared.leases.remove(self.lease);
        self.shared.running.remove(self.turn);
        self.shared.metrics.turn_left(self.turn);
        self.shared.work.notify_one();
    }
}
