//! Sends deliveries from the outbox: in order per chat, at the service's rate, until they are confirmed or given up visibly.
//!
//! The store hands out only the first delivery of a chat that has not ended, so two sends of a chat never overlap. A lease ties
//! a delivery to this process; a process that cannot renew it stops sending before another process claims it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use teamster_channel::{Channel, Pace};
use teamster_store::{DeliveryClaim, WorkerId};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::attempt::run;
use super::context::Context;
use super::failpoint::Failpoint;
use crate::engine::Gateway;

/// The largest number of deliveries in one claim.
const MAX_CLAIM: usize = 64;

/// The part of the time of a shutdown in which deliveries are still claimed, in percent. The rest is for the last calls.
const CLAIMING_PERCENT: u32 = 75;

/// The sending side of one channel.
struct Lane {
    channel: Arc<dyn Channel>,
    pace: Arc<Mutex<Pace>>,
    /// The deliveries that may be sent at the same time.
    free: Arc<Semaphore>,
}

/// Sends deliveries until `stop` is cancelled, then those that are ready, such as the answers of the last turns, within a time
/// limit.
///
/// Dropping the future ends it like a crash: the outcomes of the calls in progress are unknown.
pub(super) async fn deliver(gateway: Gateway, stop: CancellationToken, failpoint: Failpoint) {
    let settings = gateway.config().channels.delivery.clone();
    let lanes: Vec<_> = gateway
        .channels()
        .iter()
        .filter_map(|channel| {
            let pace = gateway.pace(channel.name())?;
            let free = Arc::new(Semaphore::new(settings.concurrency.max(1)));
            Some(Lane { channel: Arc::clone(channel), pace, free })
        })
        .collect();
    let mut jobs = JoinSet::new();
    // Ends attempts before their next call.
    let halt = CancellationToken::new();
    while !stop.is_cancelled() {
        for lane in &lanes {
            claim(&gateway, lane, &halt, &failpoint, &mut jobs).await;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = gateway.deliveries_added().notified() => {}
            Some(ended) = jobs.join_next() => report_panic(ended),
            () = tokio::time::sleep(settings.poll_interval) => {}
        }
    }
    let end = tokio::time::Instant::now() + settings.shutdown_timeout;
    let send_rest = async {
        loop {
            for lane in &lanes {
                claim(&gateway, lane, &halt, &failpoint, &mut jobs).await;
            }
            let Some(ended) = jobs.join_next().await else { return };
            report_panic(ended);
        }
    };
    if tokio::time::timeout(settings.shutdown_timeout * CLAIMING_PERCENT / 100, send_rest).await.is_err() {
        tracing::warn!("some deliveries wait for the next start");
    }
    halt.cancel();
    let drain = async {
        while let Some(ended) = jobs.join_next().await {
            report_panic(ended);
        }
    };
    if tokio::time::timeout_at(end, drain).await.is_err() {
        tracing::warn!("calls of channels did not end in time; the next start checks whether they were sent");
    }
}

/// Claims as many deliveries as the channel can send now.
async fn claim(
    gateway: &Gateway,
    lane: &Lane,
    stop: &CancellationToken,
    failpoint: &Failpoint,
    jobs: &mut JoinSet<()>,
) {
    let must_wait = {
        let pace = lane.pace.lock().unwrap_or_else(PoisonError::into_inner);
        !pace.channel_wait(Instant::now()).is_zero() && lane.channel.capabilities().channel_interval.is_zero()
    };
    let free = lane.free.available_permits().min(MAX_CLAIM);
    if must_wait || free == 0 {
        return;
    }
    let claim = DeliveryClaim {
        worker: WorkerId::new(gateway.worker().as_str()),
        lease_for: gateway.config().channels.delivery.lease,
        channels: vec![lane.channel.name().to_owned()],
        limit: u32::try_from(free).unwrap_or(u32::MAX),
    };
    // The lease counts from before the call.
    let since = Instant::now();
    let claimed = match gateway.store().claim_deliveries(claim, gateway.now()).await {
        Ok(claimed) => claimed,
        Err(error) => {
            tracing::error!(channel = lane.channel.name(), %error, "cannot claim deliveries");
            return;
        }
    };
    for claimed in claimed {
        let Ok(permit) = Arc::clone(&lane.free).try_acquire_owned() else { return };
        let context = Context {
            gateway: gateway.clone(),
            channel: Arc::clone(&lane.channel),
            pace: Arc::clone(&lane.pace),
            stop: stop.clone(),
            failpoint: failpoint.clone(),
        };
        jobs.spawn(async move {
            run(&context, claimed, since).await;
            drop(permit);
        });
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        // The delivery is claimed again when its lease has expired, and its attempts are counted.
        tracing::error!(%error, "a channel has panicked during a send");
    }
}
