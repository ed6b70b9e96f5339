//! The permission requests and questions of the server.

use super::super::requests::{decline, deny_excess, deny_unattended};
use super::super::tool_calls::ToolCall;
use super::super::wire::{Permission, QuestionAsked};
use super::{Actions, ServeProtocol};

impl ServeProtocol {
    /// Handles a permission request. It is held until the arguments of its call are known.
    pub(super) fn permission(&mut self, permission: Permission, actions: &mut Actions) {
        if !self.is_known(&permission.session) {
            return;
        }
        let call = permission.tool.as_ref().map(|tool| tool.call.clone());
        if self.is_run() || self.turn.is_none() {
            let tracked = self.tools.values().find(|tracked| call.is_some() && tracked.provider_id == call);
            let denied = deny_unattended(permission, tracked, &mut self.calls);
            return actions.extend(denied.into_iter().flatten());
        }
        let is_ready = |tracked: &ToolCall| tracked.provider_id == call && tracked.input.is_some();
        let waits = call.is_some() && !self.tools.values().any(is_ready);
        for permission in self.requests.hold(permission) {
            actions.extend(deny_excess(permission, &mut self.calls).into_iter().flatten());
        }
        if !waits {
            self.emit_held(call.as_deref(), actions);
        }
    }

    /// Emits the held permission requests of one call, or of all calls.
    pub(super) fn emit_held(&mut self, call: Option<&str>, actions: &mut Actions) {
        for permission in self.requests.take_held(call) {
            let call = permission.tool.as_ref().map(|tool| tool.call.as_str());
            let tracked = self.tools.values().find(|tracked| call.is_some() && tracked.provider_id.as_deref() == call);
            let parent = self.subagents.get(&permission.session).cloned().flatten();
            actions.push(self.requests.permission(permission, tracked, parent));
        }
    }

    /// Handles a question of the agent to its user.
    pub(super) fn question(&mut self, asked: QuestionAsked, actions: &mut Actions) {
        if !self.is_known(&asked.session) {
            return;
        }
        if self.is_run() || self.turn.is_none() || asked.questions.is_empty() {
            return actions.extend(decline(&asked, &mut self.calls));
        }
        actions.push(self.requests.question(asked));
    }
}
