//! The tool calls of a session.
//!
//! An agent reports a call in updates, in any order. The first one may be a permission request, and the last one its denial.
//! Invariant: each call emits one `tool_use`, and then one `tool_result`.

use super::call::{Call, Status, Tool};
use super::dialect::Dialect;
use super::wire::CallFields;
use crate::bounded::{self, Bounded, Ids};
use teamster_types::event::{Event, PermissionDenial};

/// The tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct Calls {
    turn: Bounded<String, Call>,
    /// The ids of earlier turns, whose late updates are ignored.
    past: Ids,
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
        self.update(fields, true, dialect, events);
        let call = self.turn.get_mut(&id)?;
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

/// Emits the `tool_use` of a call, unless it was emitted before.
fn start(call: &mut Call, dialect: &dyn Dialect, events: &mut Vec<Event>) {
    if call.is_pending() {
        let tool = dialect.tool(call);
        call.start(tool, events);
    }
}
