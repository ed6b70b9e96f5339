//! Stops a process: an interrupt first, a termination when the grace period is over.

use teamster_agents::protocol::Input;
use teamster_agents::transcript::Cause;
use tokio::time::Instant;

use super::TurnDriver;
use super::stopping::Stopping;
use crate::driver::process::Receiver as _;

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
