//! Calls that start without a permission request, although the permission mode requires one.
//!
//! The agent decides what it requests. An agent that requests nothing is stopped at its first call.

use super::quiet::Wait;
use super::turn::failed_turn;
use super::{Actions, Client};
use crate::agent::acp::calls::Unrequested;
use crate::protocol::{Action, ProcessAction};
use teamster_types::event::{ErrorCode, Failure};
use teamster_types::request::PermissionMode;

/// Agents that request permission, except for calls that the user's rules allow or that they know to be harmless.
const BY_RULES: &[&str] = &["@agentclientprotocol/claude-agent-acp"];

/// The maximum characters of a call's description in an error.
const MAX_DESCRIPTION: usize = 200;

impl Client {
    /// Notes a permission request for a call.
    pub(super) fn asked(&mut self, call: &str, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        if turn.unrequested_call.take_if(|waiting| waiting == call).is_some() && self.quiet.wait == Some(Wait::Request)
        {
            self.stop_waiting(actions);
        }
    }

    /// Checks a call after an update. Stops the agent if the call needed permission. A call that has only started may be requested in
    /// a moment.
    pub(super) fn check_asked(&mut self, call: &str, actions: &mut Actions) {
        if self.dialect.permits_by_settings() || BY_RULES.contains(&self.agent.name.as_str()) {
            return;
        }
        let mode = self.turn.as_ref().map_or(self.options.mode, |turn| turn.mode);
        if matches!(mode, PermissionMode::Full | PermissionMode::ReadOnly) || self.settings.prevents_changes() {
            return;
        }
        let Some(unrequested) = self.calls.unrequested(call, mode) else { return };
        let Some(turn) = &mut self.turn else { return };
        turn.unrequested_call.get_or_insert_with(|| call.to_owned());
        match unrequested {
            Unrequested::Started if turn.is_working() => {
                if self.quiet.wait != Some(Wait::Request) {
                    self.wait(Wait::Request, actions);
                }
            }
            Unrequested::Started | Unrequested::Completed => self.stop_unrequested_call(actions),
        }
    }

    /// Ends the turn with an error that names the call, and stops the process.
    pub(super) fn stop_unrequested_call(&mut self, actions: &mut Actions) {
        let Some(id) = self.turn.as_mut().and_then(|turn| turn.unrequested_call.take()) else { return };
        let Some((tool, title)) = self.calls.described(&id, &*self.dialect) else { return };
        let title: String = title.chars().take(MAX_DESCRIPTION).collect();
        let shown = if title.is_empty() || title == tool { String::new() } else { format!(" ({title})") };
        let text = format!(
            "the agent started the call {tool}{shown} without a permission request, although the permission mode requires one, \
             and was stopped; configure the agent to request permission, or use the mode `full`"
        );
        let outcome = failed_turn(Failure::new(ErrorCode::Config, text).with_retryable(false));
        self.end_turn(Box::new(outcome), actions);
        actions.push(Action::Process(ProcessAction::Stop));
    }
}
