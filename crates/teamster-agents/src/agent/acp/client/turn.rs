//! The state of a turn, and outcomes that are the same for all agents.

use crate::agent::acp::wire::PromptResult;
use crate::protocol::Outcome;
use teamster_types::event::{Failure, StopReason};
use teamster_types::request::{PermissionMode, Prompt};

/// The response to a prompt.
pub(super) enum Response {
    Result(PromptResult),
    Failed(Box<Outcome>),
}

/// A turn. That of a run stays after its outcome, because its process may write more until it exits.
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a turn")]
pub(super) struct Turn {
    /// The prompt, until it is sent.
    pub(super) prompt: Option<Prompt>,
    pub(super) has_emitted_init: bool,
    pub(super) is_interrupted: bool,
    /// The interrupt cancelled pending requests.
    pub(super) has_cancelled_requests: bool,
    pub(super) mode: PermissionMode,
    pub(super) cost_before: Option<f64>,
    /// Whether the prompt is a command of the agent, such as `/compact`.
    pub(super) is_command: bool,
    /// The response to the prompt. The turn ends when the agent is quiet.
    pub(super) response: Option<Response>,
    /// The call that started without a permission request, while one may follow.
    pub(super) unrequested_call: Option<String>,
    /// The outcome of a run that was reported.
    pub(super) reported: Option<Box<Outcome>>,
}

impl Turn {
    pub(super) fn new(prompt: Prompt, mode: PermissionMode, cost_before: Option<f64>) -> Self {
        Self {
            is_command: prompt.text.trim_start().starts_with('/'),
            response: None,
            unrequested_call: None,
            reported: None,
            prompt: Some(prompt),
            has_emitted_init: false,
            is_interrupted: false,
            has_cancelled_requests: false,
            mode,
            cost_before,
        }
    }

    /// Returns whether the agent works on the prompt: it has it, and has not responded.
    pub(super) fn is_working(&self) -> bool {
        self.prompt.is_none() && self.response.is_none() && self.reported.is_none()
    }

    /// Returns whether the interrupt ended the turn, by the agent's stop reason. A turn that ended before the agent received the
    /// interrupt was not interrupted. OpenCode 1.18.33 may report a normal end if the interrupt cancelled its requests.
    pub(super) fn was_interrupted(&self, stop: &str) -> bool {
        self.is_interrupted && (stop == "cancelled" || self.has_cancelled_requests)
    }
}

/// Returns the outcome of a turn that failed.
pub(super) fn failed_turn(failure: Failure) -> Outcome {
    Outcome { failure: Some(failure), ..Outcome::default() }
}

/// Returns the outcome of a turn that the caller interrupted.
pub(super) fn interrupted_turn() -> Outcome {
    Outcome { interrupted: true, stop_reason: Some(StopReason::Cancelled), ..Outcome::default() }
}
