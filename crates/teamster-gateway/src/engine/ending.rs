//! The end of a turn, as its log, its chat and the hooks show it. All ends are built here.

use teamster_store::{ConversationId, EndState, NewDelivery, TurnId};

use crate::channels::deliveries::{self, Recipient};
use crate::error::GatewayError;
use crate::event::{GatewayEvent, TurnEnd};
use crate::hooks::HookEvent;

/// What the chat shows if a turn was aborted.
const STOPPED: &str = "Stopped.";

/// The code of a turn that was aborted, for programs.
const ABORTED: &str = "ABORTED";

/// How a turn ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnEnding<'a> {
    pub(super) state: EndState,
    /// The code of a failure or an abort.
    pub(super) code: Option<&'a str>,
    /// The text of a failure.
    pub(super) error: Option<&'a str>,
}

/// The answer of a turn that has ended well.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TurnAnswer<'a> {
    pub(super) text: &'a str,
    pub(super) session: Option<&'a str>,
}

impl TurnEnding<'_> {
    /// Returns the event for the log.
    pub(super) fn event(&self) -> GatewayEvent {
        let state = match self.state {
            EndState::Done => TurnEnd::Done,
            EndState::Failed => TurnEnd::Failed,
            EndState::Aborted => TurnEnd::Aborted,
        };
        let text = |text: Option<&str>| text.map(str::to_owned);
        GatewayEvent::TurnFinished { state, error_code: text(self.code), error: text(self.error) }
    }

    /// Returns what the chat shows: one answer or failure. `name` distinguishes an abort from earlier ones of the same claim.
    pub(super) fn deliveries(
        &self,
        to: &Recipient<'_>,
        answer: TurnAnswer<'_>,
        name: &str,
    ) -> Result<Vec<NewDelivery>, GatewayError> {
        match self.state {
            EndState::Done => deliveries::answer(to, answer.text, answer.session),
            EndState::Aborted => deliveries::stopped(to, name, STOPPED, ABORTED),
            EndState::Failed => {
                deliveries::failure(to, self.error.unwrap_or("The agent failed."), self.code.unwrap_or("PROTOCOL"))
            }
        }
    }
}

/// Returns what the hooks get when a turn has ended.
pub(super) fn finished(conversation: ConversationId, turn: TurnId, state: EndState, code: Option<String>) -> HookEvent {
    let state = match state {
        EndState::Done => "done",
        EndState::Failed => "failed",
        EndState::Aborted => "aborted",
    };
    HookEvent::TurnFinished {
        conversation_id: conversation.to_string(),
        turn_id: turn.to_string(),
        state: state.to_owned(),
        error_code: code,
    }
}
