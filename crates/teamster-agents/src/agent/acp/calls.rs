//! The tool calls of a session.
//!
//! An agent reports a call in updates, in any order. The first one may be a permission request, and the last one its denial.
//! Invariant: each call emits one `tool_use`, and then one `tool_result`.

pub(super) use super::call::Unrequested;
use super::call::{Call, Status, Tool};
use std::collections::BTreeSet;

use super::dialect::Dialect;
use super::wire::CallFields;
use crate::bounded::{self, Bounded, Ids};
use teamster_types::event::{Event, PermissionDenial};
use teamster_types::request::PermissionMode;

/// The tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct Calls {
    turn: Bounded<String, Call>,
    /// The ids of earlier turns, whose late updates are ignored.
    past: Ids,
    /// The kinds of calls that the caller permitted for the whole session.
    allowed_kinds: BTreeSet<String>,
    pub(super) denials: Vec<PermissionDenial>,
}

impl Calls {
    /// Starts the next turn.
    pub(super) fn next_turn(&mut self) {
        for (id, _) in self.turn.take() {
            self.past.add(id);
        }
        self.denials.clear();
    }

    /// Applies an update. `is_new` means that the agent started a new call; some agents reuse ids.
    pub(super) fn update(&mut self, fields: CallFields, is_new: bool, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        let id = fields.tool_call_id.clone();
        if !self.turn.contains(&id) {
            if !is_new && self.past.contains(&id) {
                return;
            }
            self.turn.insert(id.clone(), Call::new(id.clone()), 0);
        }
        let Some(call) = self.turn.get_mut(&id) else { return };
        // The content of a new call describes it (Gemini CLI 0.61.0).
        let has_output = !is_new && fields.content.is_some();
        let status = call.apply(fields);
        if status != Status::Pending || call.is_complete() {
            start(call, dialect, events);
        }
        if status == Status::Running && has_output {
            call.emit_running_output(events);
        }
        if let Status::Ended { failed } = status {
            call.end_with_output(dialect.is_error(call, failed), events);
        }
        call.drop_content_if_ended();
        let bytes = call.bytes();
        self.turn.resize(&id, bytes);
    }

    /// Applies the update of a permission request, and emits the `tool_use`. Returns the tool.
    pub(super) fn request(
        &mut self,
        fields: CallFields,
        dialect: &dyn Dialect,
        events: &mut Vec<Event>,
    ) -> Option<Tool> {
        let id = fields.tool_call_id.clone();
        let is_described = fields.content.is_some();
        self.update(fields, true, dialect, events);
        let call = self.turn.get_mut(&id)?;
        call.request(is_described);
        start(call, dialect, events);
        Some(dialect.tool(call))
    }

    /// Ends a denied call. The agent may or may not report its end.
    pub(super) fn deny(&mut self, id: &str, why: &str, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        let Some(call) = self.turn.get_mut(id) else { return };
        let Tool { name, input, .. } = dialect.tool(call);
        let denial = PermissionDenial::new(name).with_tool_id(Some(id.into())).with_input(Some(input));
        bounded::push_denials(&mut self.denials, [denial]);
        start(call, dialect, events);
        call.end(Some(true), why.to_owned(), None, events);
    }

    /// Notes that a call was permitted; `for_session`: also later calls of its kind.
    pub(super) fn allow(&mut self, id: &str, for_session: bool) {
        let Some(call) = self.turn.get_mut(id) else { return };
        call.is_allowed = true;
        if for_session {
            self.allowed_kinds.insert(call.kind.clone());
        }
    }

    /// Returns how far a call is, if it started without a permission request that the mode requires. `OpenHands` 1.16.0 requests
    /// permission for another call, of another kind, which never starts.
    pub(super) fn unrequested(&mut self, id: &str, mode: PermissionMode) -> Option<Unrequested> {
        let call = self.turn.get(id).filter(|call| needs_permission(&call.kind, mode) && !call.is_allowed)?;
        let unrequested = call.unrequested().filter(|_| !self.allowed_kinds.contains(&call.kind))?;
        let is_permit = |(_, call): &(&String, &Call)| call.is_unused_permit() && !needs_permission(&call.kind, mode);
        let Some(permit) = self.turn.iter().find(is_permit).map(|(id, _)| id.clone()) else { return Some(unrequested) };
        for (id, is_allowed) in [(permit.as_str(), false), (id, true)] {
            if let Some(call) = self.turn.get_mut(id) {
                call.is_allowed = is_allowed;
            }
        }
        None
    }

    /// Returns the tool's name and the title of a call.
    pub(super) fn described(&self, id: &str, dialect: &dyn Dialect) -> Option<(String, String)> {
        let call = self.turn.get(id)?;
        Some((dialect.tool(call).rule_name(), call.title.clone()))
    }

    /// Returns whether the turn has no calls.
    pub(super) fn is_empty(&self) -> bool {
        self.turn.is_empty()
    }

    /// Returns whether a call is of an earlier turn.
    pub(super) fn is_past(&self, id: &str) -> bool {
        self.past.contains(id) || self.turn.contains(id)
    }

    /// Ends calls whose end the agent has not reported, after a turn that ended normally. Whether they failed is unknown.
    pub(super) fn end_open(&mut self, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        self.emit_pending(dialect, events);
        let ids: Vec<_> = self.turn.iter().map(|(id, _)| id.clone()).collect();
        for id in ids {
            if let Some(call) = self.turn.get_mut(&id) {
                call.end_with_output(None, events);
            }
        }
    }

    /// Emits the `tool_use` of pending calls at the end of a turn. The transcript ends calls without a result.
    pub(super) fn emit_pending(&mut self, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        let ids: Vec<_> = self.turn.iter().map(|(id, _)| id.clone()).collect();
        for id in ids {
            if let Some(call) = self.turn.get_mut(&id) {
                start(call, dialect, events);
            }
        }
    }
}

/// Returns whether the mode requires a permission request before calls of this kind.
fn needs_permission(kind: &str, mode: PermissionMode) -> bool {
    match kind {
        "execute" | "delete" | "move" => true,
        "edit" => mode != PermissionMode::Edit,
        _ => false,
    }
}

/// Emits the `tool_use` of a call, unless it was emitted before.
fn start(call: &mut Call, dialect: &dyn Dialect, events: &mut Vec<Event>) {
    if call.is_pending() {
        let tool = dialect.tool(call);
        call.start(tool, events);
    }
}
