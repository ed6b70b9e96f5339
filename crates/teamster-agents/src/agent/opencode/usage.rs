//! The totals of a run or turn: usage, cost and model calls, by the end of each step.

use super::wire::{FinishPart, Tokens};
use crate::protocol::Outcome;
use teamster_types::event::{ContextUse, Event, PermissionDenial, StopReason, Usage, UsageScope, UsageSoFar};

/// The sums over steps. OpenCode reports figures for each step only, also in a resumed session.
#[derive(Debug, Default)]
pub(super) struct UsageTotals {
    usage: Option<Usage>,
    pub(super) cost: Option<f64>,
    pub(super) turns: u64,
    /// The tokens of the last step of the main thread.
    context_tokens: Option<u64>,
    pub(super) denials: Vec<PermissionDenial>,
}

impl UsageTotals {
    /// Adds a step, and returns the usage so far.
    pub(super) fn add_step(&mut self, part: &FinishPart<'_>) -> Option<Event> {
        self.turns += 1;
        self.context_tokens = part.tokens.as_ref().map(|tokens| usage(tokens).total()).or(self.context_tokens);
        self.add_subagent_step(part)
    }

    /// Adds a step of a subagent, which does not count as a turn.
    pub(super) fn add_subagent_step(&mut self, part: &FinishPart<'_>) -> Option<Event> {
        if let Some(cost) = part.cost {
            self.cost = Some(in_nanos(self.cost.unwrap_or(0.0) + cost));
        }
        let usage = usage(part.tokens.as_ref()?);
        let sum = match &mut self.usage {
            Some(sum) => {
                *sum += &usage;
                sum
            }
            None => self.usage.insert(usage),
        };
        Some(Event::Usage(Box::new(UsageSoFar::new(sum.clone(), UsageScope::Run))))
    }

    /// Returns an outcome with the totals so far.
    pub(super) fn outcome(&self, stop_reason: Option<StopReason>) -> Outcome {
        Outcome {
            usage: self.usage.clone().map(|usage| (usage, UsageScope::Run)),
            context: self.context_tokens.map(|used| ContextUse::new(used, None)),
            total_cost_usd: self.cost,
            num_turns: (self.turns > 0).then_some(self.turns),
            stop_reason,
            permission_denials: self.denials.clone(),
            ..Outcome::default()
        }
    }
}

/// Rounds dollars to billionths, to remove errors of binary fractions. No price is finer.
fn in_nanos(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}

/// Returns the usage of a step. `input` already excludes cached tokens; `output` excludes reasoning.
fn usage(tokens: &Tokens) -> Usage {
    Usage::new(tokens.input, tokens.output.saturating_add(tokens.reasoning))
        .with_cache(Some(tokens.cache.read), Some(tokens.cache.write))
        .with_reasoning(Some(tokens.reasoning))
}
