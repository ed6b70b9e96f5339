//! Prompts that steer the running turn.

use std::collections::VecDeque;

use teamster_types::event::SteerId;
use teamster_types::request::Prompt;
use uuid::Uuid;

use crate::session::order::{SendNow, Sent};
use crate::turns::list::TurnOrder;
use crate::turns::waiting::Content;

/// The prompts that were sent to the agent in the running turn, and that it has not accepted or rejected so far. They cannot
/// be cancelled.
#[derive(Default)]
pub(super) struct Steering {
    enabled: bool,
    prompts: VecDeque<SteeringPrompt>,
}

struct SteeringPrompt {
    id: SteerId,
    send: Box<SendNow>,
    content: Content,
}

impl Steering {
    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub(super) fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// Adds a prompt. Returns it as an error if it was cancelled.
    pub(super) fn push(&mut self, send: SendNow) -> Result<(SteerId, Prompt), Box<SendNow>> {
        let send = Box::new(send);
        let Some(content) = send.turn.take() else { return Err(send) };
        let id = SteerId::from(Uuid::new_v4().to_string());
        let prompt = content.prompt.clone();
        self.prompts.push_back(SteeringPrompt { id: id.clone(), send, content });
        Ok((id, prompt))
    }

    /// Removes a prompt that the agent has accepted or rejected. Returns a rejected one.
    pub(super) fn resolve(&mut self, id: &SteerId, accepted: bool) -> Option<SendNow> {
        let at = self.prompts.iter().position(|prompt| prompt.id == *id)?;
        let prompt = self.prompts.remove(at)?;
        if accepted {
            prompt.accepted();
            return None;
        }
        Some(prompt.rejected())
    }

    /// Removes the first prompt.
    pub(super) fn pop_first(&mut self) -> Option<SendNow> {
        self.prompts.pop_front().map(SteeringPrompt::rejected)
    }

    /// Marks all prompts as accepted.
    pub(super) fn resolve_all(&mut self) {
        self.prompts.drain(..).for_each(SteeringPrompt::accepted);
    }

    /// Removes all prompts, in the order in which they were sent.
    pub(super) fn take_all(&mut self) -> Vec<SendNow> {
        self.prompts.drain(..).map(SteeringPrompt::rejected).collect()
    }
}

impl SteeringPrompt {
    fn accepted(self) {
        // The caller may have dropped its call.
        _ = self.send.reply.send(Sent::Steered);
    }

    /// The prompt becomes a turn, which can be cancelled again.
    fn rejected(self) -> SendNow {
        self.send.turn.put_back(self.content);
        *self.send
    }
}

impl SendNow {
    /// Returns the prompt as a turn, and reports that to the caller.
    pub(super) fn into_turn(self) -> TurnOrder {
        // If the caller has dropped its call, the run is dropped here, which aborts the turn.
        _ = self.reply.send(Sent::Turn(self.run));
        self.turn
    }
}
