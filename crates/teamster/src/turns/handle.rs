//! The driver's handle to a run or turn.

use super::stop::StopTokens;
use crate::events::queue::EventSender;

/// The driver's side of a run or turn: where its events go, and what its caller has requested.
#[derive(Debug)]
pub(crate) struct RunHandle {
    pub(crate) events: EventSender,
    pub(crate) stop: StopTokens,
}

impl RunHandle {
    /// Whether the caller has interrupted or aborted the run.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the caller interrupts or aborts the run. Cancel safe.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}
