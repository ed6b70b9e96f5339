//! An answer that the library is delivering to the agent.

use std::future::pending;
use std::pin::Pin;

use teamster::command::{Applied, CommandError};

use super::command::Origin;

/// An answer that the library is delivering to the agent.
pub(super) struct PendingAnswer<'a> {
    /// The origin of the command; `None` for an automatic denial.
    pub(super) origin: Option<Origin>,
    pub(super) answer: Pin<Box<dyn Future<Output = Result<Applied, CommandError>> + Send + 'a>>,
}

/// Waits for the outcome of the pending answer. Cancel-safe.
pub(super) async fn answered(
    pending_answer: &mut Option<PendingAnswer<'_>>,
) -> (Option<Origin>, Result<Applied, CommandError>) {
    let Some(PendingAnswer { answer, .. }) = pending_answer else { return pending().await };
    let outcome = answer.await;
    (pending_answer.take().and_then(|pending| pending.origin), outcome)
}
