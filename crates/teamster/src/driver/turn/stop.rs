//! Stops a process: an interrupt first, a termination when the grace period is over.

use std::pin::Pin;

use teamster_agents::protocol::Input;
use teamster_agents::transcript::Cause;
use teamster_process::Survivor;
use tokio::time::Instant;

use super::TurnDriver;
use crate::driver::process::Receiver as _;

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

impl TurnDriver<'_> {
    /// Asks the agent to stop. It is terminated if it does not stop within the grace period.
    pub(super) fn interrupt(&mut self, cause: Cause) {
        if self.stopping.has_started() {
            return;
        }
        self.set_cause(cause);
        self.stopping = Stopping::Interrupted { until: Instant::now() + self.limits.grace };
        self.input(Input::Interrupt);
    }

    /// Terminates the process tree.
    pub(super) fn terminate(&mut self, cause: Option<Cause>) {
        if let Some(cause) = cause {
            self.set_cause(cause);
        }
        self.start_termination(false);
    }

    /// Terminates the process tree because its work is done.
    pub(super) fn shut_down(&mut self) {
        self.start_termination(true);
    }

    fn start_termination(&mut self, is_shutdown: bool) {
        if !self.stopping.is_terminating() {
            let terminate = Box::pin(self.tree.terminate(self.limits.grace));
            self.stopping = Stopping::Terminating { since: Instant::now(), is_shutdown, terminate: Some(terminate) };
        }
    }

    /// Sets why the driver stops the process. The first cause counts, and only if the agent has reported no outcome before.
    pub(super) fn set_cause(&mut self, cause: Cause) {
        if !self.sink.transcript.has_outcome() {
            self.cause.get_or_insert(cause);
        }
    }
}
