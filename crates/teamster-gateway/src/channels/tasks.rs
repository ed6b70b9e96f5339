//! The tasks of all channels.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::absent;
use super::check::check_once;
use super::delivery::deliver;
use super::failpoint::Failpoint;
use super::receive::receive;
use crate::engine::Gateway;

/// The time beyond the limit of the configuration after which the tasks are dropped.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(1);

/// The tasks of all channels. Dropping it ends them like a crash; [`shutdown`](Self::shutdown) waits.
#[derive(Debug)]
pub struct ChannelTasks {
    tasks: JoinSet<()>,
    stop: CancellationToken,
    /// How long a shutdown may take.
    limit: Duration,
}

/// Starts receiving and delivering for each channel of a gateway. Call it inside a Tokio runtime.
///
/// Receiving ends with [`Gateway::stopping`], delivering with [`ChannelTasks::shutdown`], so that answers of the last turns are
/// sent.
pub fn start(gateway: &Gateway) -> ChannelTasks {
    start_with(gateway, Failpoint::none())
}

/// Starts the tasks with a failpoint.
pub(super) fn start_with(gateway: &Gateway, failpoint: Failpoint) -> ChannelTasks {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    for channel in gateway.channels() {
        tasks.spawn(receive(gateway.clone(), Arc::clone(channel)));
        tasks.spawn(check_once(gateway.clone(), Arc::clone(channel)));
    }
    tasks.spawn(absent::report(gateway.clone()));
    if !gateway.channels().is_empty() {
        tasks.spawn(deliver(gateway.clone(), stop.clone(), failpoint));
    }
    let limit = gateway.config().channels.delivery.shutdown_timeout + SHUTDOWN_MARGIN;
    ChannelTasks { tasks, stop, limit }
}

impl ChannelTasks {
    /// Sends the deliveries that are ready, and waits for the calls in progress, within the time limit of the
    /// configuration. Receiving sides that do not end by then are dropped.
    ///
    /// Cancel [`Gateway::stopping`] before: receiving ends with it.
    pub async fn shutdown(&mut self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(self.limit, async {
            while let Some(ended) = self.tasks.join_next().await {
                report(ended);
            }
        });
        if ended.await.is_err() {
            tracing::warn!("a task of the channels did not end in time and is dropped");
            self.tasks.shutdown().await;
        }
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a task of the channels has failed");
    }
}
