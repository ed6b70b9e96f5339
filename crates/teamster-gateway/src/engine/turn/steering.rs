//! Messages that go into the running turn.

use std::sync::Arc;

use teamster::Run;
use teamster_store::{Effects, MessageMode, StoreError, TurnId, TurnState};

use super::attempt::Attempt;
use super::context::TurnError;
use super::opening::message_prompt;
use super::steered::{Following, SentMessage};
use crate::event::GatewayEvent;

impl Attempt<'_> {
    /// Sends the message of a waiting turn into the running one. If that fails, the turn waits on. The running turn has the rights
    /// and the budget of its own author: a message to which a rule gives others waits for its own turn.
    pub(super) async fn steer(&mut self, turn: TurnId) -> Result<(), TurnError> {
        let Some(open) = &self.open else { return Ok(()) };
        let session = Arc::clone(&open.session);
        let shared = self.context.shared();
        let Some(waiting) = shared.store.turn(turn).await? else { return Ok(()) };
        if waiting.state != TurnState::Queued || waiting.message.mode != MessageMode::Steer {
            return Ok(());
        }
        if self.context.settings_of(&waiting.message)?.as_ref() != Some(&open.settings) {
            return Ok(());
        }
        let prompt = match message_prompt(shared, &waiting).await {
            Ok(prompt) => prompt,
            Err(error) => {
                tracing::warn!(%error, %turn, "the message cannot be sent into the running turn; it waits for its own");
                return Ok(());
            }
        };
        self.flush().await?;
        let shared = self.context.shared();
        let event = GatewayEvent::TurnJoined { into: self.context.claim.turn.id.to_string() };
        let effects = Effects::events(vec![shared.event(&event, Some(turn))?]);
        match shared.store.join_turn(self.context.lease(), turn, effects, shared.clock.now()).await {
            Ok(()) => {}
            Err(StoreError::WrongState { .. } | StoreError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        shared.hub.announce_growth(self.context.claim.conversation.id);
        self.steering.sending.push(Box::pin(async move {
            let sent = session.send_now(prompt.clone()).await;
            SentMessage { prompt, sent }
        }));
        Ok(())
    }

    /// Returns the run of the next message that did not go into the run that has ended.
    pub(super) async fn next_run(&mut self) -> Option<Run> {
        // The run has ended, so the agent decides about each message at once.
        while let Some(sent) = self.steering.next().await {
            self.steering.sent(sent);
        }
        match self.steering.following.pop_front()? {
            Following::Run(run) => Some(*run),
            Following::Prompt(prompt) => self.open.as_ref()?.session.send(prompt).ok(),
        }
    }
}
