//! The caller's control of a run.

use super::handle::RunHandle;
use super::stop::StopTokens;
use super::waiting::Waiting;
use crate::events::queue::EventSender;

/// Interrupts or aborts a run. It can be cloned and used beside the run's stream.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use teamster::{RunRequest, Runtime};
///
/// let run = Runtime::new().run("claude", RunRequest::new("Count to a million"))?;
/// let control = run.control();
/// tokio::spawn(async move {
///     tokio::time::sleep(Duration::from_secs(60)).await;
///     control.interrupt();
/// });
/// let stopped = run.result().await.unwrap_err();
/// assert!(stopped.result.aborted);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Control {
    stop: StopTokens,
    /// The content of a waiting turn of a session.
    waiting: Option<Waiting>,
}

impl Control {
    pub(crate) fn new(stop: StopTokens) -> Self {
        Self { stop, waiting: None }
    }

    /// Returns the driver's side of the run that this controls.
    pub(crate) fn handle(&self, events: EventSender) -> RunHandle {
        RunHandle { events, stop: self.stop.clone() }
    }

    /// Asks the agent to stop. If it does not stop within the grace period, it is killed. A waiting turn ends at once.
    pub fn interrupt(&self) {
        self.stop.interrupt.cancel();
        self.cancel();
    }

    /// Terminates the run at once: SIGTERM to the process tree, SIGKILL after the grace period.
    pub fn abort(&self) {
        self.stop.abort.cancel();
        self.cancel();
    }

    /// Cancels a waiting turn.
    pub(super) fn cancel(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.cancel();
        }
    }

    /// Makes an interrupt or abort cancel the waiting turn.
    pub(crate) fn cancel_with(&mut self, waiting: Waiting) {
        self.waiting = Some(waiting);
    }
}
