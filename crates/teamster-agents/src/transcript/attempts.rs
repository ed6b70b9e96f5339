//! What lasts from one attempt of a run to the next: what it cost, what it refused, and the ids that are taken.

use std::hash::Hash;

use super::MAX_IDS;
use crate::bounded::{self, Bounded, Ids as BoundedIds};
use crate::protocol::Outcome;
use teamster_types::event::{Delta, Event, MessageId, PermissionRequest, ToolId, Usage, UsageScope};

/// What the attempts before this one came to, as one outcome.
#[derive(Debug, Default)]
pub(super) struct Earlier(Outcome);

impl Earlier {
    /// Keeps what counts of an attempt that is over.
    pub(super) fn keep(&mut self, attempt: Outcome) {
        self.0 = std::mem::take(self).with(attempt);
    }

    /// What they have cost, as far as it is known.
    pub(super) fn cost_usd(&self) -> f64 {
        self.0.total_cost_usd.unwrap_or_default()
    }

    /// The last attempt's outcome, with what counts of those before it.
    pub(super) fn with(self, last: Outcome) -> Outcome {
        let Self(earlier) = self;
        Outcome {
            session_id: last.session_id.or(earlier.session_id),
            model: last.model.or(earlier.model),
            usage: both(earlier.usage, last.usage, add),
            total_cost_usd: both(earlier.total_cost_usd, last.total_cost_usd, |one, other| one + other),
            api_duration_ms: both(earlier.api_duration_ms, last.api_duration_ms, u64::saturating_add),
            permission_denials: {
                let mut denials = earlier.permission_denials;
                bounded::push_denials(&mut denials, last.permission_denials);
                denials
            },
            ..last
        }
    }

    /// Tokens so far, with those of the attempts before this one.
    pub(super) fn with_usage(&self, so_far: &mut Usage, scope: &UsageScope) {
        if let (Some((earlier, UsageScope::Run)), UsageScope::Run) = (&self.0.usage, scope) {
            *so_far += earlier;
        }
    }
}

fn both<T>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(join(one, other)),
        (one, other) => one.or(other),
    }
}

/// A whole session's figure has what was used in it before; only a run's own share has to be added up.
fn add((earlier, scope): (Usage, UsageScope), (mut last, last_scope): (Usage, UsageScope)) -> (Usage, UsageScope) {
    if (&scope, &last_scope) == (&UsageScope::Run, &UsageScope::Run) {
        last += &earlier;
    }
    (last, last_scope)
}

/// The ids that attempts use. The agent may count anew in each: what an earlier attempt used already is told by another
/// name.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Which attempt this is, counted from 0.
    attempt: u32,
    messages: Taken<MessageId>,
    tools: Taken<ToolId>,
}

#[derive(Debug)]
struct Taken<Id> {
    taken: BoundedIds<Id>,
    /// This attempt's, as the agent has them, and as they are told.
    told: Bounded<Id, Id>,
}

impl Ids {
    /// The next attempt begins; the last one used these.
    pub(super) fn begin_again(
        &mut self,
        messages: impl Iterator<Item = MessageId>,
        tools: impl Iterator<Item = ToolId>,
    ) {
        self.attempt += 1;
        self.messages.end_attempt(messages);
        self.tools.end_attempt(tools);
    }

    /// Gives an event the ids by which this attempt's messages and calls are told.
    pub(super) fn tell(&mut self, event: &mut Event) {
        if self.attempt == 0 {
            return;
        }
        match event {
            Event::Text(Delta { message_id, parent_tool_id, .. })
            | Event::Thinking(Delta { message_id, parent_tool_id, .. }) => {
                self.message(message_id);
                self.tool(parent_tool_id);
            }
            Event::Retract(retract) => self.message(&mut retract.message_id),
            Event::ToolUse(tool) => {
                tool.tool_id = self.tools.tell(&tool.tool_id, self.attempt);
                self.tool(&mut tool.parent_tool_id);
            }
            Event::ToolResult(result) => {
                result.tool_id = self.tools.tell(&result.tool_id, self.attempt);
                self.tool(&mut result.parent_tool_id);
            }
            Event::PermissionRequest(request) => self.request(request),
            Event::PermissionAnswered(answered) => {
                answered.request.iter_mut().for_each(|request| self.request(request));
            }
            _ => {}
        }
    }

    fn request(&mut self, request: &mut PermissionRequest) {
        self.tool(&mut request.tool_id);
        self.tool(&mut request.parent_tool_id);
    }

    /// The same for the calls that an outcome names.
    pub(super) fn tell_outcome(&mut self, outcome: &mut Outcome) {
        if self.attempt > 0 {
            outcome.permission_denials.iter_mut().for_each(|denial| self.tool(&mut denial.tool_id));
        }
    }

    fn message(&mut self, id: &mut MessageId) {
        *id = self.messages.tell(id, self.attempt);
    }

    fn tool(&mut self, id: &mut Option<ToolId>) {
        if let Some(id) = id {
            *id = self.tools.tell(id, self.attempt);
        }
    }
}

impl<Id: Clone + Eq + Hash + AsRef<str> + From<String>> Taken<Id> {
    fn end_attempt(&mut self, used: impl Iterator<Item = Id>) {
        for id in used {
            self.taken.add(id);
        }
        self.told.take();
    }

    fn tell(&mut self, id: &Id, attempt: u32) -> Id {
        if let Some(told) = self.told.get(id) {
            return told.clone();
        }
        let mut told = id.clone();
        while !self.taken.add(told.clone()) {
            told = Id::from(format!("{}~{}", told.as_ref(), attempt + 1));
        }
        self.told.insert(id.clone(), told.clone(), told.as_ref().len());
        told
    }
}

impl<Id: Clone + Eq + Hash + AsRef<str>> Default for Taken<Id> {
    fn default() -> Self {
        // Several attempts use ids.
        Self { taken: BoundedIds::of(4 * MAX_IDS), told: Bounded::of(MAX_IDS) }
    }
}
