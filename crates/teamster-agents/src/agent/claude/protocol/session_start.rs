//! The session of a turn: the one that `system/init` names, or that any other line names if there is no such line.

use super::{Actions, Phase, StreamJson, warning};
use crate::agent::claude::wire::{Line, LineKind};
use crate::protocol::{Action, Outcome, ProcessAction};
use teamster_types::event::{ErrorCode, Event, Failure, Init, WarningCode};

impl StreamJson {
    /// Emits the session that a line of the model names, if no `system/init` was read. Returns whether the line may be read.
    ///
    /// Lines of hooks precede `system/init` and name the session too, but then its other fields would be lost.
    pub(super) fn start_without_init(&mut self, line: &Line<'_>, actions: &mut Actions) -> bool {
        let is_of_model = matches!(line.kind, LineKind::StreamEvent | LineKind::Assistant);
        let Some(session) = line.session_id.as_deref().filter(|id| is_of_model && !id.is_empty()) else { return true };
        if self.refuses(session, actions) {
            return false;
        }
        self.has_init = true;
        actions.push(Action::Emit(Event::Init(Box::new(Init::new("claude", session.into())))));
        true
    }

    /// Ends the run if this is another session than the requested one. Returns whether it is.
    pub(super) fn refuses(&mut self, session: &str, actions: &mut Actions) -> bool {
        let Some(expected) = self.expected_session.as_deref().filter(|expected| *expected != session) else {
            return false;
        };
        let message = format!("session {expected} was requested, but session {session} answered");
        actions.push(warning(WarningCode::SessionMismatch, message.clone()));
        let failure = Failure::new(ErrorCode::Protocol, message);
        actions.push(Action::Outcome(Box::new(Outcome { failure: Some(failure), ..Outcome::default() })));
        // The model has not been called yet. An answer without the history would be worse than none.
        actions.push(Action::Process(ProcessAction::Stop));
        self.phase = Phase::Rejected;
        true
    }
}
