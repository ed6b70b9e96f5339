//! The tokens that stop a run, the turns of a session, or everything of a runtime.

use tokio_util::sync::CancellationToken;

/// The tokens that stop a run. Those of a runtime stop its runs and sessions, those of a session its turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopTokens {
    /// Asks the agent to stop. On a session it means that the runtime is shut down.
    pub(crate) interrupt: CancellationToken,
    /// Kills the process tree.
    pub(crate) abort: CancellationToken,
}

impl StopTokens {
    /// Returns tokens that are cancelled when these are, and can be cancelled alone.
    pub(crate) fn child(&self) -> Self {
        Self { interrupt: self.interrupt.child_token(), abort: self.abort.child_token() }
    }

    /// Waits until one of the tokens is cancelled. Cancel safe.
    pub(crate) async fn cancelled(&self) {
        tokio::select! {
            () = self.abort.cancelled() => {}
            () = self.interrupt.cancelled() => {}
        }
    }

    /// Whether one of the tokens is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.abort.is_cancelled() || self.interrupt.is_cancelled()
    }
}
