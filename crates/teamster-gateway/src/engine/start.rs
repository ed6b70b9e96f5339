//! Starts the tasks of a gateway, and ends them.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};

use super::gateway::{Gateway, Shared};
use super::{maintenance, renewal, worker};
use crate::access::remove_ended_sessions;
use crate::channels::{self, ChannelTasks};
use crate::config::separation::conflicts;
use crate::error::GatewayError;
use crate::hooks::HookTasks;
use crate::{schedules, tools};

/// How long a shutdown waits for hooks of queued events.
const HOOKS_LIMIT: Duration = Duration::from_secs(10);

/// The tasks of a gateway. Dropping it stops them without waiting; [`shutdown`](Self::shutdown) waits.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    /// It ends after `stop` when the running turns have ended.
    worker: JoinHandle<()>,
    /// Receiving and delivering.
    channels: ChannelTasks,
    /// Tasks that must run until the worker has ended.
    maintenance: JoinSet<()>,
    hooks: Option<HookTasks>,
}

impl Gateway {
    /// Starts the tasks: turns, leases, deliveries, schedules, retention. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// The store cannot be read, a file or hook of the configuration cannot be used, or agents would work where the gateway
    /// keeps its data.
    pub async fn start(&self) -> Result<Running, GatewayError> {
        if let Some((key, problem)) = conflicts(&self.shared.config, None).into_iter().next() {
            return Err(GatewayError::Config(format!("{key}: {problem}")));
        }
        self.shared.instructions.check()?;
        self.shared.hooks.check()?;
        tools::start(&self.shared.tools, self).await?;
        worker::recover(&self.shared).await?;
        let mut maintenance = JoinSet::new();
        let shared = Arc::clone(&self.shared);
        maintenance.spawn(async move { renewal::renew(&shared).await });
        let shared = Arc::clone(&self.shared);
        maintenance.spawn(async move { maintenance::run(&shared).await });
        maintenance.spawn(schedules::run(self.clone()));
        maintenance.spawn(remove_ended_sessions(self.clone()));
        let hooks = Some(self.shared.hooks.start(Arc::new(self.clone())));
        let worker = tokio::spawn(worker::work(self.clone()));
        let channels = channels::start(self);
        Ok(Running { shared: Arc::clone(&self.shared), worker, channels, maintenance, hooks })
    }
}

impl Running {
    /// Stops accepting and claiming, and waits for running turns within the time limit of the configuration. Turns that do
    /// not end in time are handed back: another start runs them.
    pub async fn shutdown(mut self) {
        let shared = Arc::clone(&self.shared);
        shared.stop.cancel();
        if let Err(error) = (&mut self.worker).await {
            tracing::error!(%error, "the worker has failed");
        }
        // The answers of the last turns are sent.
        self.channels.shutdown().await;
        shared.sessions.close_all().await;
        self.maintenance.shutdown().await;
        if let Some(hooks) = self.hooks.take() {
            hooks.shutdown(HOOKS_LIMIT).await;
        }
        // What was not recorded in time is claimed again without waiting for its lease.
        if let Err(error) = shared.store.expire_leases(shared.worker.clone(), shared.clock.now()).await {
            tracing::warn!(%error, "leases were not released; they expire by themselves");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        self.worker.abort();
    }
}
