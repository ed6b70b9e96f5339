//! The additional state of a session: its pending requests, and the prompts that were sent during a turn.

use super::background::Background;
use super::requests::PendingRequests;
use teamster_types::event::SteerId;
use teamster_types::request::{PromptMode, RunRequest};

/// The additional state of a session.
pub(super) struct Session {
    pub(super) prompt_mode: PromptMode,
    pub(super) requests: PendingRequests,
    /// Prompts that were sent during the turn, and that the model has not received yet.
    pub(super) steering: Vec<SteerId>,
    /// Present if the agent can work in the background and start turns by itself.
    pub(super) background: Option<Background>,
    /// Whether each turn has a budget. The CLI counts it per process, so each turn then has its own process.
    pub(super) has_turn_budget: bool,
}

impl Session {
    pub(super) fn new(request: &RunRequest) -> Self {
        Self {
            prompt_mode: request.prompt_mode,
            requests: PendingRequests::default(),
            steering: Vec::new(),
            background: request.background_tasks.then(Background::default),
            has_turn_budget: request.max_budget_usd.is_some(),
        }
    }
}
