//! The tasks of all channels.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::delivery::deliver;
use super::failpoint::Failpoint;
use super::receive::{ChannelStatus, Statuses, receive};
use crate::engine::Gateway;

/// The tasks of all channels. Dropping it ends them like a crash; [`shutdown`](Self::shutdown) waits.
#[derive(Debug)]
pub struct ChannelTasks {
    tasks: JoinSet<()>,
    stop: CancellationToken,
    statuses: Statuses,
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
    let (mut tasks, stop, statuses) = (JoinSet::new(), CancellationToken::new(), Statuses::default());
    for channel in gateway.channels() {
        tasks.spawn(receive(gateway.clone(), Arc::clone(channel), statuses.clone()));
    }
    if !gateway.channels().is_empty() {
        tasks.spawn(deliver(gateway.clone(), stop.clone(), failpoint));
    }
    ChannelTasks { tasks, stop, statuses }
}

impl ChannelTasks {
    /// Returns what the operator sees of the receiving sides, by the names of the channels.
    pub fn status(&self) -> BTreeMap<String, ChannelStatus> {
        self.statuses.all()
    }

    /// Stops claiming deliveries, and waits for the calls that are under way within the time limit of the configuration.
    ///
    /// Cancel [`Gateway::stopping`] before: receiving ends with it.
    pub async fn shutdown(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a task of the channels has failed");
            }
        }
    }
}
