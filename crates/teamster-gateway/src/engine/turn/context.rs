//! What a turn needs, and how its end is recorded.

use std::sync::Arc;
use std::time::Duration;

use teamster_store::{
    AttemptEnd, Claim, Effects, Finish, HandBack, HandBackKind, Lease, PermissionClosing, PermissionId,
    PermissionOutcome, StoreError,
};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::channels::deliveries::{self, Recipient};
use crate::config::{API, Origin};
use crate::engine::ending::finished;
use crate::engine::gateway::{Gateway, Shared};
use crate::engine::intake::is_by_api;
use crate::engine::running::TurnCommand;
use crate::engine::slots::Slot;
use crate::error::GatewayError;
use crate::event::GatewayEvent;
use crate::failpoints::failpoint;
use crate::telemetry::spans;

/// The delay before a write is repeated for the first time. It doubles each time.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The longest delay before a write is repeated.
const LONGEST_DELAY: Duration = Duration::from_secs(2);

/// What a turn needs besides its claim.
pub(in crate::engine) struct TurnContext {
    pub(in crate::engine) gateway: Gateway,
    pub(in crate::engine) claim: Claim,
    /// The number of earlier attempts that do not count as failed.
    pub(in crate::engine) uncounted: u32,
    pub(in crate::engine) commands: mpsc::Receiver<TurnCommand>,
    /// Cancelled when the lease is lost.
    pub(in crate::engine) lost: CancellationToken,
    /// Cancelled when the time limit of a shutdown has passed.
    pub(in crate::engine) shutdown_expired: CancellationToken,
    /// The turn's part of the limit of running turns. It is released while the turn waits for a person.
    pub(in crate::engine) slot: Arc<Slot>,
    /// The span of the turn.
    pub(in crate::engine) span: tracing::Span,
}

/// Why a turn could not be completed by this worker.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum TurnError {
    /// Another worker has the conversation, or will have it.
    #[error("the lease is lost")]
    LeaseLost,
    /// The store or a document failed.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

impl From<StoreError> for TurnError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost { .. } => Self::LeaseLost,
            other => Self::Gateway(other.into()),
        }
    }
}

impl From<serde_json::Error> for TurnError {
    fn from(error: serde_json::Error) -> Self {
        Self::Gateway(error.into())
    }
}

impl TurnContext {
    pub(super) fn shared(&self) -> &Shared {
        &self.gateway.shared
    }

    pub(super) const fn lease(&self) -> Lease {
        self.claim.lease
    }

    /// Returns the author of the turn's message as lists of approvers name it.
    pub(super) fn author_id(&self) -> Result<String, TurnError> {
        let (address, message) = (&self.claim.conversation.address, &self.claim.turn.message);
        let channel = if is_by_api(message)? { API } else { &address.channel };
        Ok(Origin { channel, chat: &address.chat, author: &message.author }.author_id())
    }

    /// Returns the closing of a request without a person, with its event and what the chat shows.
    pub(super) fn closing(&self, id: PermissionId, outcome: PermissionOutcome) -> Result<PermissionClosing, TurnError> {
        let decision = match outcome {
            PermissionOutcome::Allowed => "allow",
            PermissionOutcome::AllowedAlways => "allow_always",
            PermissionOutcome::Denied => "deny",
            PermissionOutcome::TimedOut => "timed_out",
            PermissionOutcome::WorkerLost => "worker_lost",
            PermissionOutcome::TurnEnded => "turn_ended",
        };
        let event = GatewayEvent::PermissionAnswered {
            request_id: id.to_string(),
            decision: decision.to_owned(),
            by: None,
            message: None,
        };
        let events = vec![self.shared().event(&event, Some(self.claim.turn.id))?];
        let deliveries = deliveries::prompt_closed(&self.recipient(), id, outcome, None)?;
        Ok(PermissionClosing { id, outcome, effects: Effects { events, deliveries } })
    }

    /// Makes a write, and repeats it for as long as the lease is held if the store cannot be written now. A write that failed
    /// has changed nothing, so that a short outage loses no work of the agent.
    pub(super) async fn persist<T, F>(&self, write: impl Fn() -> F) -> Result<T, TurnError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut delay = FIRST_DELAY;
        loop {
            let error = match write().await {
                Err(error) if error.is_outage() => error,
                other => return Ok(other?),
            };
            tracing::error!(%error, "cannot write to the store; the turn repeats the write while it holds its lease");
            tokio::select! {
                biased;
                () = self.lost.cancelled() => return Err(TurnError::LeaseLost),
                () = sleep(delay) => {}
            }
            delay = (delay * 2).min(LONGEST_DELAY);
        }
    }

    /// Records the end of the turn.
    pub(super) async fn finish(&self, finish: Finish) -> Result<(), TurnError> {
        let shared = self.shared();
        let conversation = self.claim.conversation.id;
        let (state, code) = (finish.state, finish.error_code.clone());
        failpoint!("finish.before");
        self.persist(|| shared.store.finish(self.lease(), finish.clone(), shared.clock.now())).await?;
        failpoint!("finish.after");
        spans::turn_ended(&self.span, state, code.as_deref());
        shared.hooks.notify(finished(conversation, self.claim.turn.id, state, code));
        self.gateway.announce_growth(conversation);
        Ok(())
    }

    /// Puts the turn back into its queue.
    pub(super) async fn hand_back(&self, kind: HandBackKind, attempt: AttemptEnd) -> Result<(), TurnError> {
        let shared = self.shared();
        failpoint!("hand_back.before");
        let hand_back = HandBack { kind, attempt };
        self.persist(|| shared.store.hand_back(self.lease(), hand_back.clone(), shared.clock.now())).await?;
        failpoint!("hand_back.after");
        self.gateway.announce_growth(self.claim.conversation.id);
        Ok(())
    }

    /// Returns the chat of the turn.
    pub(super) fn recipient(&self) -> Recipient<'_> {
        Recipient::of_turn(self.lease(), &self.claim.conversation.address, self.shared().clock.now())
    }
}
