//! A turn: what its items are to the caller.
//!
//! Invariants: text is told once, be it by deltas or when it is whole; every call is told once, and its result at most once;
//! what was streamed of a message that is said again is void.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::tools;
use super::super::wire::{FirstId, Item};
use super::wire::{DeltaLine, PlanLine, Spoken};
use crate::agent::mcp::Names;
use crate::bounded::{self, Bounded, ToldText};
use crate::protocol::{Action, Outcome};
use teamster_types::event::{
    Delta, Event, MessageId, PermissionDenial, Plan, PlanEntry, PlanStatus, Retract, ToolUse, Warning, WarningCode,
};
use teamster_types::json::RawJson;

type Actions = Vec<Action>;

/// A turn that was asked for and has not ended.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) stage: Stage,
    /// Only then can it be interrupted.
    pub(super) has_started: bool,
    /// The caller wants it to end.
    pub(super) is_stopping: bool,
    /// Messages that are not whole, with what was told of them.
    open: Bounded<String, Said>,
    calls: Bounded<String, Call>,
    answer: Option<String>,
    plan: Option<Plan>,
    pub(super) denials: Vec<PermissionDenial>,
    /// What went wrong last, which may be all that is known if the process ends.
    pub(super) error: Option<String>,
}

/// How far a turn is.
#[derive(Debug)]
pub(super) enum Stage {
    /// There is no thread yet. With what it begins with.
    Waiting(Value),
    /// `turn/start` was written.
    Asked,
    /// By its id.
    Running(String),
    /// It is over, but its commands may still run: by its id, with its outcome.
    Clearing(String, Box<Outcome>),
}

#[derive(Debug, Default)]
struct Said {
    told: ToldText,
    /// The part of a summary that was spoken last.
    part: u64,
}

#[derive(Debug)]
struct Call {
    told: ToolUse,
    /// Of a patch.
    diffs: Vec<String>,
    is_over: bool,
    /// Permission was asked for it.
    is_asked: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Text,
    Thinking,
}

impl Turn {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            has_started: false,
            is_stopping: false,
            open: Bounded::default(),
            calls: Bounded::default(),
            answer: None,
            plan: None,
            denials: Vec::new(),
            error: None,
        }
    }

    /// The turn's id, as far as it is known.
    pub(super) fn id(&self) -> Option<&str> {
        match &self.stage {
            Stage::Running(id) | Stage::Clearing(id, _) => Some(id),
            Stage::Waiting(_) | Stage::Asked => None,
        }
    }

    /// The last message of the model.
    pub(super) fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn delta(&mut self, voice: Voice, line: &DeltaLine<'_>, actions: &mut Actions) {
        self.error = None;
        if !self.open.contains(&*line.item_id) {
            self.open.insert(line.item_id.to_string(), Said::default(), 0);
        }
        let Some(said) = self.open.get_mut(&*line.item_id) else { return };
        let mut text = line.delta.to_string();
        if line.summary_index > said.part && !said.told.is_empty() {
            // As the parts are joined when the summary is whole.
            text.insert(0, '\n');
        }
        said.part = line.summary_index;
        said.told.push(&text);
        tell(voice, &line.item_id, text, actions);
    }

    pub(super) fn item_started(
        &mut self,
        raw: &RawValue,
        names: &Names,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        let (id, item) = read(raw)?;
        self.error = None;
        match item.kind.as_str() {
            // What is searched for is known only when it is over.
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
        let spoken: Spoken<'_> = serde_json::from_str(raw.get())?;
        match &*spoken.kind {
            "agentMessage" => {
                self.whole(Voice::Text, &spoken.id, spoken.text.as_deref().unwrap_or_default(), actions);
                self.answer = spoken.text;
            }
            "reasoning" => self.whole(Voice::Thinking, &spoken.id, &spoken.summary.join("\n"), actions),
            "contextCompaction" => {
                let warning = Warning::new(WarningCode::Compacted, "the agent shortened its conversation");
                actions.push(Action::Emit(warning.into()));
            }
            _ => {
                let (id, item) = read(raw)?;
                self.call(&id, &item, names, actions);
                if let Some(call) = self.calls.get_mut(&id).filter(|call| !call.is_over) {
                    call.is_over = true;
                    bounded::push_denials(&mut self.denials, tools::denial(&call.told, &item));
                    // Nothing is asked about it any more.
                    (call.told.input, call.diffs) = (RawJson::default(), Vec::new());
                    actions.push(Action::Emit(Event::ToolResult(Box::new(tools::result(&id, &item)))));
                }
            }
        }
        Ok(())
    }

    /// A message is whole: what was not told of it is.
    fn whole(&mut self, voice: Voice, id: &str, text: &str, actions: &mut Actions) {
        let said = self.open.remove(id).unwrap_or_default();
        let rest = said.told.rest(text);
        tell(voice, id, rest.to_owned(), actions);
    }

    fn call(&mut self, id: &str, item: &Item, names: &Names, actions: &mut Actions) {
        match tools::call(id, item, names) {
            Some(told) if !self.calls.contains(id) => {
                let diffs: Vec<_> = item.changes.iter().flatten().filter_map(|change| change.diff.clone()).collect();
                let bytes = told.input.as_str().len() + diffs.iter().map(String::len).sum::<usize>();
                let call = Call { told: told.clone(), diffs, is_over: false, is_asked: false };
                self.calls.insert(id.to_owned(), call, bytes);
                actions.push(Action::Emit(Event::ToolUse(Box::new(told))));
            }
            _ => actions.push(Action::Alive),
        }
    }

    /// The arguments of a call, and what a patch would change.
    pub(super) fn call_of(&self, id: &str) -> Option<(&ToolUse, &[String])> {
        self.calls.get(id).map(|call| (&call.told, call.diffs.as_slice()))
    }

    /// Returns the call of an MCP tool that permission is asked for: the app-server does not give its id. It is one with these
    /// arguments that permission was not asked for before; calls that differ in nothing are taken in the order of their ids.
    pub(super) fn mcp_call(&mut self, server: &str, tool: &str, input: &Value) -> Option<String> {
        let is_it = |call: &Call| {
            let told = &call.told;
            !call.is_over
                && !call.is_asked
                && told.server.as_deref() == Some(server)
                && told.tool_name == tool
                && told.input.to_value().is_ok_and(|told| is_same_input(&told, input))
        };
        let id = self.calls.iter().find(|(_, call)| is_it(call))?.0.clone();
        self.calls.get_mut(&id)?.is_asked = true;
        Some(id)
    }

    /// What was streamed of messages that are not whole is void: they are said again, or never.
    pub(super) fn retract(&mut self, actions: &mut Actions) {
        let void = |(id, _)| Action::Emit(Event::Retract(Retract { message_id: MessageId::from(String::as_str(&id)) }));
        actions.extend(self.open.take().into_iter().map(void));
    }

    pub(super) fn plan(&mut self, line: PlanLine, actions: &mut Actions) {
        let status = |word: &str| match word {
            "inProgress" => PlanStatus::InProgress,
            "completed" => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        };
        let entries = line.plan.into_iter();
        let entries =
            entries.map(|step| PlanEntry { status: status(&step.status), content: step.step.into() }).collect();
        let plan = Plan { entries };
        if self.plan.as_ref() == Some(&plan) {
            return actions.push(Action::Alive);
        }
        self.plan = Some(plan.clone());
        actions.push(Action::Emit(Event::Plan(plan)));
    }

    /// Calls that were refused, as far as only diagnostics tell.
    pub(super) fn denied(&mut self, denials: Vec<PermissionDenial>) {
        bounded::push_denials(&mut self.denials, denials);
    }
}

/// Whether arguments are the same: none may be an empty object.
fn is_same_input(one: &Value, other: &Value) -> bool {
    let is_none = |input: &Value| input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty);
    one == other || is_none(one) && is_none(other)
}

fn read(raw: &RawValue) -> serde_json::Result<(String, Item)> {
    let id = serde_json::from_str::<FirstId>(raw.get())?.0.unwrap_or_default();
    Ok((id, serde_json::from_str::<Item>(raw.get())?.respelled()))
}

fn tell(voice: Voice, id: &str, text: String, actions: &mut Actions) {
    if text.is_empty() {
        return actions.push(Action::Alive);
    }
    let delta = Delta { text: text.into(), message_id: id.into(), parent_tool_id: None };
    actions.push(Action::Emit(match voice {
        Voice::Text => Event::Text(delta),
        Voice::Thinking => Event::Thinking(delta),
    }));
}
