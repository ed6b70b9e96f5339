//! The driver's handle to a run or turn.

use tokio_util::sync::CancellationToken;

use crate::events::queue::EventSender;

/// The driver's side of a run or turn: where its events go, and what its caller has requested.
#[derive(Debug)]
pub(crate) struct RunHandle {
    pub(crate) events: EventSender,
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
