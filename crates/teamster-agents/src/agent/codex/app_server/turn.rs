//! A turn: converts its items to events.
//!
//! Invariants: a text is emitted once, as deltas or as a whole message. A call is emitted once, and its result at most once. Deltas
//! of a message that is sent again are retracted.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::items::{Item, ItemHead};
use super::super::tools;
use super::wire::{MessageItem, PlanLine};
use crate::agent::mcp::Names;
use crate::bounded::{self, Bounded, EmittedText};
use crate::protocol::{Action, Outcome};
use teamster_types::event::{
    Delta, Event, MessageId, PermissionDenial, Plan, PlanEntry, PlanStatus, Retract, ToolUse, Warning, WarningCode,
};
use teamster_types::json::RawJson;

type Actions = Vec<Action>;

/// A turn that was requested and has not ended.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) stage: Stage,
    /// The app-server reported its start. An earlier interrupt would have no effect.
    pub(super) has_started: bool,
    /// The caller interrupted it.
    pub(super) is_stopping: bool,
    /// The number of model calls that have ended.
    pub(super) model_calls: u64,
    /// The limit of model calls that it has reached. It is stopped.
    pub(super) limit: Option<u64>,
    /// Its last item is a complete message, which may be the last one.
    pub(super) ends_with_answer: bool,
    /// Incomplete messages.
    open: Bounded<String, StreamedMessage>,
    calls: Bounded<String, Call>,
    answer: Option<String>,
    plan: Option<Plan>,
    pub(super) denials: Vec<PermissionDenial>,
    /// The last error. It may be the only description of a failure if the process exits.
    pub(super) error: Option<String>,
    /// What a hook of the user did that may end the turn before the answer.
    pub(super) stopped_by_hook: Option<String>,
}

/// The stage of a turn.
#[derive(Debug)]
pub(super) enum Stage {
    /// The thread is not open. With the turn's input.
    Waiting(Value),
    /// `turn/start` was written.
    Requested,
    /// It runs. With its id.
    Running(String),
    /// It has ended, but its commands may still run. With its id and outcome.
    CleaningUp(String, Box<Outcome>),
}

/// The emitted part of an incomplete message.
#[derive(Debug, Default)]
struct StreamedMessage {
    emitted: EmittedText,
    /// The index of the last part of a summary.
    part: u64,
}

#[derive(Debug)]
struct Call {
    tool_use: ToolUse,
    /// The diffs of a patch.
    diffs: Vec<String>,
    is_complete: bool,
    /// The app-server requested permission for it.
    is_requested: bool,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    Text,
    Thinking,
}

impl Turn {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            has_started: false,
            is_stopping: false,
            model_calls: 0,
            limit: None,
            ends_with_answer: false,
            open: Bounded::default(),
            calls: Bounded::default(),
            answer: None,
            plan: None,
            denials: Vec::new(),
            error: None,
            stopped_by_hook: None,
        }
    }

    /// Returns the turn's id, if it is known.
    pub(super) fn id(&self) -> Option<&str> {
        match &self.stage {
            Stage::Running(id) | Stage::CleaningUp(id, _) => Some(id),
            Stage::Waiting(_) | Stage::Requested => None,
        }
    }

    /// Returns the model's last message.
    pub(super) fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Appends a text to an item. `summary_index` is the number of the part of a summary.
    pub(super) fn delta(
        &mut self,
        kind: ContentKind,
        item_id: &str,
        text: &str,
        summary_index: u64,
        actions: &mut Actions,
    ) {
        self.error = None;
        if !self.open.contains(item_id) {
            self.open.insert(item_id.to_owned(), StreamedMessage::default(), 0);
            self.ends_with_answer = false;
        }
        let Some(message) = self.open.get_mut(item_id) else { return };
        let mut text = text.to_owned();
        if summary_index > message.part && !message.emitted.is_empty() {
            // The parts of a complete summary are joined in the same way.
            text.insert(0, '\n');
        }
        message.part = summary_index;
        message.emitted.push(&text);
        emit_delta(kind, item_id, text, actions);
    }

    pub(super) fn item_started(
        &mut self,
        raw: &RawValue,
        names: &Names,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let (id, item) = read(raw)?;
        self.error = None;
        self.ends_with_answer = false;
        match item.kind.as_str() {
            // The query is known only at the end of the search.
            "web_search" => actions.push(Action::Alive),
            _ => self.call(&id, &item, names, actions),
        }
        Ok(())
    }

    pub(super) fn item_completed(
        &mut self,
        raw: &RawValue,
        names: &Names,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        self.error = None;
        let message: MessageItem<'_> = serde_json::from_str(raw.get())?;
        let is_commentary = message.phase.is_some_and(|phase| phase.get() == "\"commentary\"");
        self.ends_with_answer = &*message.kind == "agentMessage" && !is_commentary;
        match &*message.kind {
            "agentMessage" => {
                let text = message.text.as_deref().unwrap_or_default();
                self.complete_message(ContentKind::Text, &message.id, text, actions);
                self.answer = message.text;
            }
            "reasoning" => {
                let text = message.summary.join("\n");
                self.complete_message(ContentKind::Thinking, &message.id, &text, actions);
            }
            "contextCompaction" => {
                let warning = Warning::new(WarningCode::Compacted, "the agent shortened its conversation");
                actions.push(Action::Emit(warning.into()));
            }
            _ => {
                let (id, item) = read(raw)?;
                self.call(&id, &item, names, actions);
                if let Some(call) = self.calls.get_mut(&id).filter(|call| !call.is_complete) {
                    call.is_complete = true;
                    bounded::push_denials(&mut self.denials, tools::denial(&call.tool_use, &item));
                    // No later request refers to the call.
                    (call.tool_use.input, call.diffs) = (RawJson::default(), Vec::new());
                    actions.push(Action::Emit(Event::ToolResult(Box::new(tools::result(&id, &item)))));
                }
            }
        }
        Ok(())
    }

    /// Emits the rest of a complete message.
    fn complete_message(&mut self, kind: ContentKind, id: &str, text: &str, actions: &mut Actions) {
        let message = self.open.remove(id).unwrap_or_default();
        let rest = message.emitted.rest(text);
        emit_delta(kind, id, rest.to_owned(), actions);
    }

    fn call(&mut self, id: &str, item: &Item, names: &Names, actions: &mut Actions) {
        match tools::call(id, item, names) {
            Some(tool_use) if !self.calls.contains(id) => {
                let diffs: Vec<_> = item.changes.iter().flatten().filter_map(|change| change.diff.clone()).collect();
                let bytes = tool_use.input.as_str().len() + diffs.iter().map(String::len).sum::<usize>();
                let call = Call { tool_use: tool_use.clone(), diffs, is_complete: false, is_requested: false };
                self.calls.insert(id.to_owned(), call, bytes);
                actions.push(Action::Emit(Event::ToolUse(Box::new(tool_use))));
            }
            _ => actions.push(Action::Alive),
        }
    }

    /// Returns a call, and the diffs of a patch.
    pub(super) fn call_of(&self, id: &str) -> Option<(&ToolUse, &[String])> {
        self.calls.get(id).map(|call| (&call.tool_use, call.diffs.as_slice()))
    }

    /// Returns the id of the MCP tool call that a permission request refers to, because the request does not contain it. The call has
    /// the same arguments and no request yet. Identical calls are assigned in the order of their ids.
    pub(super) fn mcp_call(&mut self, server: &str, tool: &str, input: &Value) -> Option<String> {
        let matches = |call: &Call| {
            let tool_use = &call.tool_use;
            !call.is_complete
                && !call.is_requested
                && tool_use.server.as_deref() == Some(server)
                && tool_use.tool_name == tool
                && tool_use.input.to_value().is_ok_and(|arguments| is_same_input(&arguments, input))
        };
        let id = self.calls.iter().find(|(_, call)| matches(call))?.0.clone();
        self.calls.get_mut(&id)?.is_requested = true;
        Some(id)
    }

    /// Retracts incomplete messages. The agent sends them again, or never completes them.
    pub(super) fn retract(&mut self, actions: &mut Actions) {
        let retract = |(id, _)| Action::Emit(Event::Retract(Retract::new(MessageId::from(String::as_str(&id)))));
        actions.extend(self.open.take().into_iter().map(retract));
    }

    pub(super) fn plan(&mut self, line: PlanLine, actions: &mut Actions) {
        let status = |status: &str| match status {
            "inProgress" => PlanStatus::InProgress,
            "completed" => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        };
        let entries = line.plan.into_iter();
        let entries = entries.map(|step| PlanEntry::new(step.step, status(&step.status))).collect();
        let plan = Plan::new(entries);
        if self.plan.as_ref() == Some(&plan) {
            return actions.push(Action::Alive);
        }
        self.plan = Some(plan.clone());
        actions.push(Action::Emit(Event::Plan(plan)));
    }

    /// Adds denials that only the diagnostics report.
    pub(super) fn denied(&mut self, denials: Vec<PermissionDenial>) {
        bounded::push_denials(&mut self.denials, denials);
    }
}

/// Returns whether two inputs are the same. A missing input equals an empty object.
fn is_same_input(one: &Value, other: &Value) -> bool {
    let is_none = |input: &Value| input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty);
    one == other || is_none(one) && is_none(other)
}

fn read(raw: &RawValue) -> serde_json::Result<(String, Item)> {
    let id = serde_json::from_str::<ItemHead<'_>>(raw.get())?.id.unwrap_or_default().into_owned();
    Ok((id, serde_json::from_str::<Item>(raw.get())?.in_snake_case()))
}

fn emit_delta(kind: ContentKind, id: &str, text: String, actions: &mut Actions) {
    if text.is_empty() {
        return actions.push(Action::Alive);
    }
    let delta = Delta::new(id, text);
    actions.push(Action::Emit(match kind {
        ContentKind::Text => Event::Text(delta),
        ContentKind::Thinking => Event::Thinking(delta),
    }));
}
