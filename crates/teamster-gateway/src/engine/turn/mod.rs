//! One turn, from its claim to its end.
//!
//! Every write carries the lease. A turn that has lost its lease writes nothing any more, and its process tree is killed.

mod attempt;
mod attempt_end;
mod opening;
mod permission_requests;
mod steering;

use std::sync::Arc;

use teamster_store::{
    AttemptEnd, Claim, Effects, EndState, Finish, HandBack, HandBackKind, Lease, NewDelivery, NewEvent,
    PermissionClosing, PermissionOutcome, SessionChange, StoreError,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use self::attempt::{Attempt, Ended};
use super::decisions::{Beginning, beginning};
use super::history::{PastAttempts, past_attempts};
use super::running::TurnCommand;
use super::{Gateway, Shared};
use crate::channels::deliveries::{self, Recipient};
use crate::config::{ConversationSettings, Origin, TurnSettings, resolve};
use crate::error::GatewayError;
use crate::event::{GatewayEvent, TurnEnd};
use crate::failpoints::failpoint;
use crate::telemetry::spans;

/// What a turn needs besides its claim.
pub(super) struct TurnContext {
    pub(super) gateway: Gateway,
    pub(super) claim: Claim,
    pub(super) commands: mpsc::Receiver<TurnCommand>,
    /// Cancelled when the lease is lost.
    pub(super) lost: CancellationToken,
    /// Cancelled when a shutdown does not wait any longer.
    pub(super) hurry: CancellationToken,
    /// Counts against the limit of running turns, except while a person is awaited.
    pub(super) slot: Arc<super::worker::Slot>,
    /// The span of the turn.
    pub(super) span: tracing::Span,
}

/// Why a turn could not be completed by this worker.
#[derive(Debug, thiserror::Error)]
pub(super) enum TurnError {
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

/// Runs a claimed turn. On an error the lease expires, and the turn is claimed again.
pub(super) async fn run(mut context: TurnContext) -> Result<(), TurnError> {
    context.close_abandoned_requests().await?;
    let Some(settings) = context.settings()? else {
        let reason = "a rule of the operator does not permit this message any more";
        return context.end_without_attempt(EndState::Failed, "FORBIDDEN", reason).await;
    };
    let past = context.past_attempts().await?;
    let turn = &context.claim.turn;
    let begin = beginning(
        context.claim.interrupted,
        turn.attempts.saturating_sub(past.failed),
        turn.progress,
        context.shared().config.interrupted,
        past.session.is_some() || context.claim.session.is_some(),
    );
    match begin {
        Beginning::Park => {
            let reason = "The gateway has stopped three times while it worked on this message. It is not started again. \
                          Retry it when the cause is found.";
            context.end_without_attempt(EndState::Failed, "PARKED", reason).await
        }
        Beginning::TellInterrupted => {
            let reason = "The gateway was stopped while the agent worked on this message. Send \"continue\" to go on, or \
                          retry the message.";
            context.end_without_attempt(EndState::Failed, "INTERRUPTED", reason).await
        }
        Beginning::Prompt | Beginning::Continue if turn.abort_requested => {
            context.end_without_attempt(EndState::Aborted, "ABORTED", "It was stopped before it started.").await
        }
        Beginning::Prompt => context.attempt(settings, None).await,
        Beginning::Continue => context.attempt(settings, past.session).await,
    }
}

impl TurnContext {
    pub(super) fn shared(&self) -> &Shared {
        &self.gateway.shared
    }

    pub(super) const fn lease(&self) -> Lease {
        self.claim.lease
    }

    /// Resolves the settings. `None` means that a rule rejects the message.
    fn settings(&self) -> Result<Option<TurnSettings>, TurnError> {
        let conversation = &self.claim.conversation;
        let settings: ConversationSettings = conversation.settings.to()?;
        let (channel, chat) = (&conversation.address.channel, &conversation.address.chat);
        let origin = Origin { channel, chat, author: &self.claim.turn.message.author };
        Ok(resolve(&self.shared().config, Some(&conversation.agent), &settings, origin))
    }

    /// Returns what is known of the attempts of an interrupted turn.
    async fn past_attempts(&self) -> Result<PastAttempts, TurnError> {
        if !self.claim.interrupted {
            return Ok(PastAttempts::default());
        }
        Ok(past_attempts(&*self.shared().store, &self.claim.turn).await?)
    }

    /// Closes the permission requests of a worker that is gone.
    async fn close_abandoned_requests(&self) -> Result<(), TurnError> {
        if self.claim.open_permissions.is_empty() {
            return Ok(());
        }
        let outcome = PermissionOutcome::WorkerLost;
        let closings: Result<Vec<_>, TurnError> =
            self.claim.open_permissions.iter().map(|request| self.closing(request.id, outcome)).collect();
        self.shared().store.close_permissions(self.lease(), closings?, self.shared().clock.now()).await?;
        self.shared().hub.announce_growth(self.claim.conversation.id);
        for request in &self.claim.open_permissions {
            self.gateway.show_closed_prompt(request.id).await;
        }
        Ok(())
    }

    pub(super) fn closing(
        &self,
        id: teamster_store::PermissionId,
        outcome: PermissionOutcome,
    ) -> Result<PermissionClosing, TurnError> {
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
        let event = self.shared().event(&event, Some(self.claim.turn.id))?;
        Ok(PermissionClosing { id, outcome, event: Some(event) })
    }

    /// Starts an attempt and records its end. `continued` is the session of an interrupted attempt that is continued.
    async fn attempt(&mut self, settings: TurnSettings, continued: Option<String>) -> Result<(), TurnError> {
        if let Some(reason) = self.reserve_budget(&settings).await? {
            return self.end_without_attempt(EndState::Failed, "BUDGET", &reason).await;
        }
        let span = spans::attempt(&settings.agent, self.claim.turn.attempts.saturating_add(1));
        let run = async {
            let mut attempt = Attempt::start(self, settings, continued).await?;
            match attempt.drive().await {
                Ended::Done(outcome) => attempt.record(outcome).await,
                Ended::Failed(error) => {
                    attempt.discard();
                    Err(error)
                }
            }
        };
        run.instrument(span).await
    }

    /// Ends the turn before an agent was started.
    async fn end_without_attempt(&self, state: EndState, code: &str, reason: &str) -> Result<(), TurnError> {
        let end = if state == EndState::Aborted { TurnEnd::Aborted } else { TurnEnd::Failed };
        let event =
            GatewayEvent::TurnFinished { state: end, error_code: Some(code.into()), error: Some(reason.into()) };
        let events = vec![self.shared().event(&event, Some(self.claim.turn.id))?];
        let deliveries = deliveries::failure(&self.recipient(), reason, code)?;
        let finish = Finish {
            state,
            result: None,
            error_code: Some(code.to_owned()),
            attempt: attempt_end_without_session(events, deliveries),
        };
        self.finish(finish).await
    }

    /// Records the end of the turn.
    pub(super) async fn finish(&self, finish: Finish) -> Result<(), TurnError> {
        let shared = self.shared();
        let conversation = self.claim.conversation.id;
        let (state, code) = (finish.state, finish.error_code.clone());
        failpoint!("finish.before");
        shared.store.finish(self.lease(), finish, shared.clock.now()).await?;
        failpoint!("finish.after");
        spans::turn_ended(&self.span, state, code.as_deref());
        self.gateway.announce_growth(conversation);
        Ok(())
    }

    /// Puts the turn back into its queue.
    pub(super) async fn hand_back(&self, kind: HandBackKind, attempt: AttemptEnd) -> Result<(), TurnError> {
        let shared = self.shared();
        failpoint!("hand_back.before");
        shared.store.hand_back(self.lease(), HandBack { kind, attempt }, shared.clock.now()).await?;
        failpoint!("hand_back.after");
        self.gateway.announce_growth(self.claim.conversation.id);
        Ok(())
    }

    /// Returns the chat of the turn.
    pub(super) fn recipient(&self) -> Recipient<'_> {
        Recipient::of_turn(self.lease(), &self.claim.conversation.address, self.shared().clock.now())
    }
}

fn attempt_end_without_session(events: Vec<NewEvent>, deliveries: Vec<NewDelivery>) -> AttemptEnd {
    AttemptEnd {
        session: SessionChange::Keep,
        usage: None,
        closings: Vec::new(),
        effects: Effects { events, deliveries },
    }
}
