//! Messages that go into the running turn.

use std::sync::Arc;

use teamster_store::{Effects, JoinedOutcome, MessageMode, StoreError, TurnId, TurnState};

use super::attempt::Attempt;
use super::context::TurnError;
use super::opening::message_prompt;
use super::steered::SentMessage;
use crate::channels::deliveries::{self, Recipient};
use crate::event::{GatewayEvent, TurnEnd};
use crate::failpoints::failpoint;

/// The text for the chat about a message that was stopped after it had an effect.
const STOPPED: &str = "The message came after the end of the turn, and the agent was stopped after it had called a tool for \
                       it. Send the message again if it is still needed.";

/// Logs why a message waits for a turn of its own. The running turn continues.
#[expect(clippy::unnecessary_wraps, reason = "the callers return it")]
fn waits(error: &dyn std::fmt::Display, turn: TurnId) -> Result<(), TurnError> {
    tracing::warn!(%error, %turn, "a message cannot be sent into the running turn; it waits for a turn of its own");
    Ok(())
}

impl Attempt<'_> {
    /// Sends the next waiting message into the running turn, unless one is being sent.
    pub(super) async fn steer_next(&mut self) -> Result<(), TurnError> {
        while !self.steering.is_sending()
            && let Some(turn) = self.steering.waiting.pop_front()
        {
            self.steer(turn).await?;
        }
        Ok(())
    }

    /// Sends the message of a waiting turn into the running one. If that fails, the turn waits on. The running turn has the rights
    /// and the budget of its own author: a message to which a rule gives others waits for its own turn.
    async fn steer(&mut self, turn: TurnId) -> Result<(), TurnError> {
        let Some(open) = &self.open else { return Ok(()) };
        let session = Arc::clone(&open.session);
        let shared = self.context.shared();
        let waiting = match shared.store.turn(turn).await {
            Ok(Some(waiting)) => waiting,
            Ok(None) => return Ok(()),
            Err(error) if error.is_outage() => return waits(&error, turn),
            Err(error) => return Err(error.into()),
        };
        if waiting.state != TurnState::Queued || waiting.message.mode != MessageMode::Steer {
            return Ok(());
        }
        if self.context.settings_of(&waiting.message)?.as_ref() != Some(&open.settings) {
            return Ok(());
        }
        let prompt = match message_prompt(shared, &waiting).await {
            Ok(prompt) => prompt,
            Err(error) => return waits(&error, turn),
        };
        match shared.store.join_turn(self.context.lease(), turn, Effects::default(), shared.clock.now()).await {
            Ok(()) => {}
            Err(StoreError::WrongState { .. } | StoreError::NotFound { .. }) => return Ok(()),
            Err(error) if error.is_outage() => return waits(&error, turn),
            Err(error) => return Err(error.into()),
        }
        failpoint!("steer.joined");
        self.steering.send(session, turn, prompt);
        Ok(())
    }

    /// Records the outcome of a message. The log contains that it has joined the turn only if the agent has taken it.
    pub(super) async fn record_sent(&mut self, sent: SentMessage) -> Result<(), TurnError> {
        self.flush().await?;
        let SentMessage { turn, outcome } = sent;
        let shared = self.context.shared();
        let effects = match &outcome {
            JoinedOutcome::Waits => Effects::default(),
            JoinedOutcome::Taken => {
                let event = GatewayEvent::TurnJoined { into: self.context.claim.turn.id.to_string() };
                Effects::events(vec![shared.event(&event, Some(turn))?])
            }
            JoinedOutcome::Failed(code) => {
                let (error_code, error) = (Some(code.clone()), Some(STOPPED.to_owned()));
                let event = GatewayEvent::TurnFinished { state: TurnEnd::Failed, error_code, error };
                let to = Recipient { turn: Some((turn, self.context.lease().epoch)), ..self.context.recipient() };
                let deliveries = deliveries::failure(&to, STOPPED, code)?;
                Effects { events: vec![shared.event(&event, Some(turn))?], deliveries }
            }
        };
        // If the agent has the message and this is not recorded, the message runs again.
        let resolve = async || {
            let (outcome, effects) = (outcome.clone(), effects.clone());
            match shared.store.resolve_joined(self.context.lease(), turn, outcome, effects, shared.clock.now()).await {
                Ok(()) | Err(StoreError::WrongState { .. } | StoreError::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.context.persist(resolve).await?;
        failpoint!("steer.recorded");
        self.context.gateway.announce_growth(self.context.claim.conversation.id);
        Ok(())
    }

    /// Records the outcome of the last message when the run has ended: the agent decides about it at once.
    pub(super) async fn end_steering(&mut self) -> Result<(), TurnError> {
        while let Some(sent) = self.steering.next().await {
            self.record_sent(sent).await?;
        }
        Ok(())
    }
}
