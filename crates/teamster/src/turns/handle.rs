//! The driver's handle to a run or turn.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::events::queue::Leftovers;
use crate::events::stamped::Timed;

/// The driver's side of a run or turn: where its events go, and what its caller has requested.
#[derive(Debug)]
pub(crate) struct RunHandle {
    pub(crate) events: mpsc::Sender<Timed>,
    pub(crate) leftovers: Leftovers,
    pub(crate) interrupted: CancellationToken,
    pub(crate) aborted: CancellationToken,
}

impl RunHandle {
    /// Whether the caller has interrupted or aborted the run.
    pub(crate) fn is_stopped(&self) -> bool {
        self.aborted.is_cancelled() || self.interrupted.is_cancelled()
    }

    /// Waits until the caller interrupts or aborts the run. Cancel safe.
    pub(crate) async fn stopped(&self) {
        tokio::select! {
            () = self.aborted.cancelled() => {}
            () = self.interrupted.cancelled() => {}
        }
    }
}
