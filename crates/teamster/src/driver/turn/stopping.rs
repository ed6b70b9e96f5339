//! How far the stop of a process is.

use std::pin::Pin;

use teamster_process::Survivor;
use tokio::time::Instant;

/// A termination in progress: SIGTERM was sent, and SIGKILL follows after the grace period.
type Terminate<'a> = Pin<Box<dyn Future<Output = Vec<Survivor>> + Send + 'a>>;

/// How far the stop of a process is.
pub(super) enum Stopping<'a> {
    No,
    /// The agent was asked to stop. If it has not stopped at `until`, it is terminated.
    Interrupted {
        until: Instant,
    },
    /// The process tree is terminated.
    Terminating {
        since: Instant,
        /// Whether it is terminated because its work is done.
        is_shutdown: bool,
        /// `None` when the tree has no more processes.
        terminate: Option<Terminate<'a>>,
    },
}

impl Stopping<'_> {
    /// Whether the agent was asked to stop, or is being terminated.
    pub(super) fn has_started(&self) -> bool {
        !matches!(self, Self::No)
    }

    pub(super) fn is_terminating(&self) -> bool {
        matches!(self, Self::Terminating { .. })
    }

    /// Whether a termination is in progress.
    pub(super) fn is_signalling(&self) -> bool {
        matches!(self, Self::Terminating { terminate: Some(_), .. })
    }

    /// Returns the start of the termination, and whether it is a shutdown.
    pub(super) fn since(&self) -> Option<(Instant, bool)> {
        match self {
            Self::Terminating { since, is_shutdown, .. } => Some((*since, *is_shutdown)),
            Self::No | Self::Interrupted { .. } => None,
        }
    }

    /// Waits until the termination is complete. Cancel safe.
    pub(super) async fn terminated(&mut self) {
        if let Self::Terminating { terminate, .. } = self {
            if let Some(pending) = terminate {
                pending.await;
            }
            *terminate = None;
        }
    }
}
