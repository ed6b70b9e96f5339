//! Runs the receiving side of the channels.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures::FutureExt as _;
use teamster_channel::Channel;

use super::inbox::ChannelInbox;
use crate::engine::Gateway;

/// The delays before a channel that has ended receives again.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(10));

/// Receives until the gateway stops. A channel that ends or panics is started again, each time after a longer delay, so
/// no failure stops a channel permanently.
pub(super) async fn receive(gateway: Gateway, channel: Arc<dyn Channel>) {
    let stop = gateway.stopping().clone();
    let (statuses, clock) = (gateway.channel_statuses().clone(), gateway.clone());
    let inbox = ChannelInbox::new(gateway, &*channel);
    let backoff = || {
        let (min, max) = DELAYS;
        ExponentialBuilder::new().with_min_delay(min).with_max_delay(max).without_max_times().with_jitter().build()
    };
    let mut delays = backoff();
    while !stop.is_cancelled() {
        statuses.receives(channel.name(), true);
        let started = tokio::time::Instant::now();
        let ended = AssertUnwindSafe(channel.receive(&inbox, stop.child_token())).catch_unwind().await;
        if stop.is_cancelled() {
            break;
        }
        let reason = match ended {
            Ok(Ok(())) => "the channel has ended without an error".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the channel has panicked".to_owned(),
        };
        tracing::error!(channel = channel.name(), reason, "a channel does not receive; it starts again");
        statuses.receives(channel.name(), false);
        statuses.failed(channel.name(), reason, clock.now());
        if started.elapsed() > DELAYS.1 {
            delays = backoff();
        }
        let delay = delays.next().unwrap_or(DELAYS.1);
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(delay) => {}
        }
    }
    statuses.receives(channel.name(), false);
}
