//! The allow rules that are added to a session while it runs.

use std::sync::{Mutex, PoisonError};

use teamster_agents::rules::{NoRule, ToolCall, ToolRules};
use teamster_types::event::PermissionRequest;
use teamster_types::request::PermissionMode;

use super::order::Order;
use super::{SendError, Session};
use crate::setup::path_resolver::DiskPathResolver;

/// The rules of a session.
#[derive(Debug)]
pub(crate) struct SessionRules {
    /// The rules of its request.
    request: ToolRules,
    /// The allow rules that were added since, in this order.
    added: Mutex<Vec<String>>,
}

impl SessionRules {
    pub(crate) fn new(request: ToolRules) -> Self {
        Self { request, added: Mutex::new(Vec::new()) }
    }
}

impl Session {
    /// Suggests narrow rules that allow the call of a request and similar calls, for [`allow_rule`](Self::allow_rule): one for
    /// each command that it runs. A rule covers one subcommand of a known program, or exactly this command, file, host or tool
    /// of an MCP server.
    ///
    /// It may read the disk, to resolve the paths of the call.
    ///
    /// # Errors
    /// Returns why only this call can be allowed.
    pub fn suggest_rules(&self, request: &PermissionRequest) -> Result<Vec<String>, NoRule> {
        let input = request.input.to_value().map_err(|_| NoRule::Undescribed)?;
        let call = ToolCall::new(&request.tool_name, &input).of_server(request.server.as_deref());
        let rules = &self.rules.request;
        // A call that a deny rule may cover is decided by a person each time.
        if rules.verdict(PermissionMode::Ask, &call, &DiskPathResolver).is_some() {
            return Err(NoRule::Denied);
        }
        rules.suggest(&call, &DiskPathResolver)
    }

    /// Adds an allow rule until the session ends, or [`revoke_rule`](Self::revoke_rule) removes it. It answers the agent's
    /// later permission requests, in every mode except `read-only`; the rules of the request that deny have priority. The
    /// agent itself does not receive it, and no file is written. A request that waits already is not answered.
    ///
    /// # Errors
    /// The rule is invalid, or the session has ended.
    pub fn allow_rule(&self, rule: impl Into<String>) -> Result<(), SendError> {
        let rule = rule.into();
        self.change_rules(|rules| {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        })
    }

    /// Removes a rule that was added by [`allow_rule`](Self::allow_rule). Returns false if there is none.
    ///
    /// # Errors
    /// The session has ended.
    pub fn revoke_rule(&self, rule: &str) -> Result<bool, SendError> {
        if !self.allowed_rules().iter().any(|added| added == rule) {
            return Ok(false);
        }
        self.change_rules(|rules| rules.retain(|added| added != rule)).map(|()| true)
    }

    /// Returns the rules that were added by [`allow_rule`](Self::allow_rule), in this order.
    pub fn allowed_rules(&self) -> Vec<String> {
        self.rules.added.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the added rules, and sends all rules to the driver. If that fails, nothing changes.
    fn change_rules(&self, change: impl FnOnce(&mut Vec<String>)) -> Result<(), SendError> {
        let mut added = self.rules.added.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = added.clone();
        change(&mut changed);
        let rules = self.rules.request.with_allowed(&changed)?;
        self.order(Order::SetRules(Box::new(rules)))?;
        *added = changed;
        Ok(())
    }
}
