//! State that outlives an attempt of a run: costs, denials, and the ids that are in use.

use std::hash::Hash;

use crate::bounded::{self, Bounded, Ids as BoundedIds};
use crate::protocol::Outcome;
use teamster_types::event::{Delta, Event, MessageId, PermissionRequest, ToolId, Usage, UsageScope};

/// The maximum number of ids of closed calls, and of messages, that are remembered.
pub(super) const MAX_IDS: usize = 20_000;

/// The outcomes of the earlier attempts, combined into one.
#[derive(Debug, Default)]
pub(super) struct EarlierAttempts(Outcome);

impl EarlierAttempts {
    /// Adds the outcome of an attempt that has ended.
    pub(super) fn add(&mut self, attempt: Outcome) {
        self.0 = std::mem::take(self).combined_with(attempt);
    }

    /// Returns their total cost, as far as it is known.
    pub(super) fn cost_usd(&self) -> f64 {
        self.0.total_cost_usd.unwrap_or_default()
    }

    /// Returns the outcome of the last attempt, with the usage, costs and denials of all attempts.
    pub(super) fn combined_with(self, last: Outcome) -> Outcome {
        let Self(earlier) = self;
        Outcome {
            session_id: last.session_id.or(earlier.session_id),
            model: last.model.or(earlier.model),
            usage: combine(earlier.usage, last.usage, add_usage),
            context: last.context.or(earlier.context),
            total_cost_usd: combine(earlier.total_cost_usd, last.total_cost_usd, |one, other| one + other),
            api_duration_ms: combine(earlier.api_duration_ms, last.api_duration_ms, u64::saturating_add),
            permission_denials: {
                let mut denials = earlier.permission_denials;
                bounded::push_denials(&mut denials, last.permission_denials);
                denials
            },
            ..last
        }
    }

    /// Adds the usage of the earlier attempts to that of this attempt.
    pub(super) fn add_usage_to(&self, so_far: &mut Usage, scope: &UsageScope) {
        if let (Some((earlier, UsageScope::Run)), UsageScope::Run) = (&self.0.usage, scope) {
            *so_far += earlier;
        }
    }
}

fn combine<T>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(join(one, other)),
        (one, other) => one.or(other),
    }
}

/// Adds the usage of two attempts. The usage of a whole session already includes earlier attempts, so only the usage of runs
/// is added.
fn add_usage(
    (earlier, scope): (Usage, UsageScope),
    (mut last, last_scope): (Usage, UsageScope),
) -> (Usage, UsageScope) {
    if (&scope, &last_scope) == (&UsageScope::Run, &UsageScope::Run) {
        last += &earlier;
    }
    (last, last_scope)
}

/// Makes ids unique across attempts. An agent may restart its counters in each attempt; an id that an earlier attempt used
/// is renamed.
#[derive(Debug, Default)]
pub(super) struct AttemptIds {
    /// The number of this attempt, starting at 0.
    attempt: u32,
    messages: UniqueIds<MessageId>,
    tools: UniqueIds<ToolId>,
}

#[derive(Debug)]
struct UniqueIds<Id> {
    /// The emitted ids of all attempts.
    used: BoundedIds<Id>,
    /// The ids of this attempt: from the agent's id to the emitted one.
    emitted: Bounded<Id, Id>,
}

impl AttemptIds {
    /// Starts the next attempt. The arguments are the ids that the last attempt used.
    pub(super) fn start_attempt(
        &mut self,
        messages: impl Iterator<Item = MessageId>,
        tools: impl Iterator<Item = ToolId>,
    ) {
        self.attempt += 1;
        self.messages.end_attempt(messages);
        self.tools.end_attempt(tools);
    }

    /// Replaces the ids of an event by the unique ones.
    pub(super) fn rename(&mut self, event: &mut Event) {
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
                tool.tool_id = self.tools.unique(&tool.tool_id, self.attempt);
                self.tool(&mut tool.parent_tool_id);
            }
            Event::ToolOutput(output) => {
                output.tool_id = self.tools.unique(&output.tool_id, self.attempt);
                self.tool(&mut output.parent_tool_id);
            }
            Event::ToolResult(result) => {
                result.tool_id = self.tools.unique(&result.tool_id, self.attempt);
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

    /// Replaces the ids of the calls in an outcome.
    pub(super) fn rename_in_outcome(&mut self, outcome: &mut Outcome) {
        if self.attempt > 0 {
            outcome.permission_denials.iter_mut().for_each(|denial| self.tool(&mut denial.tool_id));
        }
    }

    fn message(&mut self, id: &mut MessageId) {
        *id = self.messages.unique(id, self.attempt);
    }

    fn tool(&mut self, id: &mut Option<ToolId>) {
        if let Some(id) = id {
            *id = self.tools.unique(id, self.attempt);
        }
    }
}

impl<Id: Clone + Eq + Hash + AsRef<str> + From<String>> UniqueIds<Id> {
    fn end_attempt(&mut self, used: impl Iterator<Item = Id>) {
        for id in used {
            self.used.add(id);
        }
        self.emitted.take();
    }

    fn unique(&mut self, id: &Id, attempt: u32) -> Id {
        if let Some(emitted) = self.emitted.get(id) {
            return emitted.clone();
        }
        let mut emitted = id.clone();
        while !self.used.add(emitted.clone()) {
            emitted = Id::from(format!("{}~{}", emitted.as_ref(), attempt + 1));
        }
        self.emitted.insert(id.clone(), emitted.clone(), emitted.as_ref().len());
        emitted
    }
}

impl<Id: Clone + Eq + Hash + AsRef<str>> Default for UniqueIds<Id> {
    fn default() -> Self {
        // `used` has the ids of several attempts.
        Self { used: BoundedIds::of(4 * MAX_IDS), emitted: Bounded::of(MAX_IDS) }
    }
}
