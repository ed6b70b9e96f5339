//! Runs the receiving side of the channels.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures::FutureExt as _;
use teamster_channel::Channel;

use super::inbox::ChannelInbox;
use crate::engine::Gateway;

/// The delays before a channel that has ended receives again.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(10));

/// What the operator sees of the receiving side of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelStatus {
    /// Whether it receives.
    pub receives: bool,
    /// Why it ended the last time, without secrets.
    pub last_error: Option<String>,
}

/// The status of each channel, by its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Statuses(Arc<Mutex<BTreeMap<String, ChannelStatus>>>);

impl Statuses {
    pub(super) fn all(&self) -> BTreeMap<String, ChannelStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, channel: &str, receives: bool, error: Option<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let status = all.entry(channel.to_owned()).or_insert(ChannelStatus { receives, last_error: None });
        status.receives = receives;
        if error.is_some() {
            status.last_error = error;
        }
    }
}

/// Receives until the gateway stops. A channel that ends or panics starts again, each time after a longer delay: no failure
/// silences a channel for good.
pub(super) async fn receive(gateway: Gateway, channel: Arc<dyn Channel>, statuses: Statuses) {
    let stop = gateway.stopping().clone();
    let inbox = ChannelInbox::new(gateway, &*channel);
    let backoff = || {
        let (min, max) = DELAYS;
        ExponentialBuilder::new().with_min_delay(min).with_max_delay(max).without_max_times().with_jitter().build()
    };
    let mut delays = backoff();
    while !stop.is_cancelled() {
        statuses.set(channel.name(), true, None);
        let started = tokio::time::Instant::now();
        let ended = AssertUnwindSafe(channel.receive(&inbox, stop.child_token())).catch_unwind().await;
        if stop.is_cancelled() {
            break;
        }
        let reason = match ended {
            Ok(Ok(())) => "the channel has ended without a reason".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the channel has panicked".to_owned(),
        };
        tracing::error!(channel = channel.name(), reason, "a channel does not receive; it starts again");
        statuses.set(channel.name(), false, Some(reason));
        if started.elapsed() > DELAYS.1 {
            delays = backoff();
        }
        let delay = delays.next().unwrap_or(DELAYS.1);
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(delay) => {}
        }
    }
    statuses.set(channel.name(), false, None);
}
