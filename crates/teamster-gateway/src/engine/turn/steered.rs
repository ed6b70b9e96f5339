//! The messages that go into the running turn, one at a time.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use teamster::request::Prompt;
use teamster::{Run, Sent, Session};
use teamster_store::{JoinedOutcome, Progress, TurnId};

use crate::engine::log_writer::progress_of;

/// The code of a turn whose message was stopped after it had an effect.
const INTERRUPTED: &str = "INTERRUPTED";

/// The outcome of a message that was sent into the running turn.
pub(super) struct SentMessage {
    pub(super) turn: TurnId,
    pub(super) outcome: JoinedOutcome,
}

type Sending = Pin<Box<dyn Future<Output = SentMessage> + Send>>;

/// The messages that go into the running turn.
#[derive(Default)]
pub(super) struct Steering {
    /// The message that the agent has not taken yet. There is only one: those that come too late together become one run, in
    /// which they cannot be distinguished.
    sending: Option<Sending>,
    /// The turns whose messages follow.
    pub(super) waiting: VecDeque<TurnId>,
}

impl Steering {
    /// Returns whether a message is being sent.
    pub(super) const fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Sends the message of a turn into the running one.
    pub(super) fn send(&mut self, session: Arc<Session>, turn: TurnId, prompt: Prompt) {
        self.sending = Some(Box::pin(async move {
            let outcome = match session.send_now(prompt).await {
                Ok(Sent::Turn(run)) => withdraw(*run).await,
                Ok(_) => JoinedOutcome::Taken,
                Err(error) => {
                    tracing::warn!(%error, %turn, "a message cannot join the running turn; it waits for a turn of its own");
                    JoinedOutcome::Waits
                }
            };
            SentMessage { turn, outcome }
        }));
    }

    /// Waits until the outcome of the message is known. `None` at once if none is being sent. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<SentMessage> {
        let sent = self.sending.as_mut()?.await;
        self.sending = None;
        Some(sent)
    }
}

/// Stops a message that has become a run of its own, so that it can have a turn of its own.
async fn withdraw(mut run: Run) -> JoinedOutcome {
    run.control().interrupt();
    let mut has_effect = false;
    while let Some(event) = run.next().await {
        has_effect |= progress_of(&event) == Progress::Tools;
    }
    if has_effect { JoinedOutcome::Failed(INTERRUPTED.to_owned()) } else { JoinedOutcome::Waits }
}
