//! Steering: prompts that the caller sends within a turn.
//!
//! 1.18.33 accepts a prompt while it works and records it as a message. The model receives it with its next call. If the last
//! call of the turn is in progress, the turn gets one more. A prompt that arrives when the work has just ended starts new work,
//! which belongs to the same turn here: a turn ends only when every accepted prompt is recorded and answered. After an abort, an
//! error or structured output, the prompt remains unanswered in the conversation.

use super::super::turn::{Turn, Work};
use super::{Actions, ServeProtocol, State};
use crate::protocol::{Action, CallId, SessionAction};
use teamster_types::event::SteerId;
use teamster_types::request::Prompt;

impl ServeProtocol {
    /// Sends a prompt within the turn.
    pub(super) fn steer(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        let accepts = |turn: &&mut Turn| turn.has_started() && !turn.interrupted && turn.limit.is_none();
        let ready = matches!(self.state, State::Ready);
        let turn = self.turn.as_mut().filter(|turn| ready && accepts(turn));
        let session = self.init.as_ref().map(|init| &init.session_id);
        let (Some(turn), Some(session), Ok(body)) =
            (turn, session, self.prompt_options.body(&prompt.text, &prompt.attachments))
        else {
            // The session sends it as a turn of its own, which also reports an error in it.
            return actions.push(Action::Session(SessionAction::Steered { id: id.clone(), accepted: false }));
        };
        let (call, action) = self.calls.steer(session, &body);
        turn.steers.sent(id.clone(), call);
        actions.push(action);
    }

    /// Handles a steering prompt that the server rejected.
    pub(super) fn steer_rejected(&mut self, call: CallId, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(id) = turn.steers.reject(call) {
            actions.push(Action::Session(SessionAction::Steered { id, accepted: false }));
        }
        self.resume_deferred(actions);
    }

    /// Handles a user message that the server recorded.
    pub(super) fn user_message_recorded(&mut self, message: &str, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(id) = turn.steers.confirm(message) {
            actions.push(Action::Session(SessionAction::Steered { id, accepted: true }));
            self.resume_deferred(actions);
            if self.turn.is_none() {
                // An error or abort has ended the turn, but the agent may start new work for this prompt.
                actions.push(Action::Session(SessionAction::RestartProcess));
            }
        }
    }

    /// Performs what was deferred until the prompts were confirmed: an abort, or the end of the turn.
    fn resume_deferred(&mut self, actions: &mut Actions) {
        self.abort_if_requested(actions);
        if self.turn.as_ref().is_some_and(|turn| turn.work == Work::Idle) {
            self.finish_if_over(actions);
        }
    }
}
