//! Prompts that are sent within a turn, and their confirmation.

use crate::bounded::Ids;
use crate::protocol::CallId;
use teamster_types::event::SteerId;

/// The prompts that were sent within a turn and that the model has not answered.
#[derive(Debug, Default)]
pub(super) struct PendingSteers {
    prompts: Vec<SteerPrompt>,
    /// The user messages that started while a prompt was unconfirmed.
    started: Ids,
}

#[derive(Debug)]
struct SteerPrompt {
    id: SteerId,
    call: CallId,
    /// The message of the prompt, once the server has recorded it.
    message: Option<String>,
}

impl PendingSteers {
    /// Adds a prompt that is sent with this call.
    pub(super) fn sent(&mut self, id: SteerId, call: CallId) {
        self.prompts.push(SteerPrompt { id, call, message: None });
    }

    /// Returns whether the server has yet to confirm a prompt.
    pub(super) fn has_unconfirmed(&self) -> bool {
        self.prompts.iter().any(|prompt| prompt.message.is_none())
    }

    /// Returns whether the model has yet to answer a prompt.
    pub(super) fn has_unanswered(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Records that a user message started.
    pub(super) fn message_started(&mut self, message: &str) {
        if self.has_unconfirmed() {
            self.started.add(message.to_owned());
        }
    }

    /// Records that a message has text of the user, and returns the prompt that it confirms. This is the oldest unconfirmed prompt.
    pub(super) fn confirm(&mut self, message: &str) -> Option<SteerId> {
        self.started.remove(message)?;
        let prompt = self.prompts.iter_mut().find(|prompt| prompt.message.is_none())?;
        prompt.message = Some(message.to_owned());
        Some(prompt.id.clone())
    }

    /// Records that the model answers this message and all before it. Message ids are in ascending order.
    pub(super) fn answered(&mut self, message: &str) {
        self.prompts.retain(|prompt| prompt.message.as_deref().is_none_or(|own| own > message));
    }

    /// Removes a prompt that the server rejected, and returns its id.
    pub(super) fn reject(&mut self, call: CallId) -> Option<SteerId> {
        let at = self.prompts.iter().position(|prompt| prompt.call == call && prompt.message.is_none())?;
        Some(self.prompts.remove(at).id)
    }

    /// Removes all prompts, and returns those that were not confirmed.
    pub(super) fn take_unconfirmed(&mut self) -> impl Iterator<Item = SteerId> {
        let prompts = std::mem::take(&mut self.prompts).into_iter();
        prompts.filter(|prompt| prompt.message.is_none()).map(|prompt| prompt.id)
    }
}
