//! Messages that go into the running turn.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use teamster::request::Prompt;
use teamster::{Run, SendError, Sent};
use teamster_store::{Effects, MessageMode, StoreError, TurnId, TurnState};

use super::TurnError;
use super::attempt::Attempt;
use super::opening::message_prompt;
use crate::event::GatewayEvent;

type Sending = Pin<Box<dyn Future<Output = Joined> + Send>>;

/// What became of a message that was sent into the running turn.
pub(super) struct Joined {
    prompt: Prompt,
    sent: Result<Sent, SendError>,
}

/// The messages that were sent into the running turn.
#[derive(Default)]
pub(super) struct Steering {
    sending: FuturesUnordered<Sending>,
    /// Messages that the agent did not take into its run. They follow in runs of their own, in the same turn.
    following: VecDeque<Following>,
}

enum Following {
    Run(Box<Run>),
    Prompt(Prompt),
}

impl Steering {
    /// Returns the next message that the agent has taken or not. `None` at once if none is being sent.
    pub(super) async fn next(&mut self) -> Option<Joined> {
        self.sending.next().await
    }

    /// Notes what became of a message.
    pub(super) fn joined(&mut self, Joined { prompt, sent }: Joined) {
        match sent {
            Ok(Sent::Turn(run)) => self.following.push_back(Following::Run(run)),
            Ok(_) => {}
            Err(_) => self.following.push_back(Following::Prompt(prompt)),
        }
    }
}

impl Attempt<'_> {
    /// Sends the message of a waiting turn into the running one. If that fails, the turn waits on.
    pub(super) async fn steer(&mut self, turn: TurnId) -> Result<(), TurnError> {
        let Some(open) = &self.open else { return Ok(()) };
        let session = Arc::clone(&open.session);
        let shared = self.context.shared();
        let Some(waiting) = shared.store.turn(turn).await? else { return Ok(()) };
        if waiting.state != TurnState::Queued || waiting.message.mode != MessageMode::Steer {
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
            Joined { prompt, sent }
        }));
        Ok(())
    }

    /// Returns the run of the next message that did not go into the run that has ended.
    pub(super) async fn next_run(&mut self) -> Option<Run> {
        // The run has ended, so the agent decides about each message at once.
        while let Some(joined) = self.steering.next().await {
            self.steering.joined(joined);
        }
        match self.steering.following.pop_front()? {
            Following::Run(run) => Some(*run),
            Following::Prompt(prompt) => self.open.as_ref()?.session.send(prompt).ok(),
        }
    }
}
