//! What a run adds up to: usage, cost and turns, from the end of each step.

use super::wire::{FinishPart, Tokens};
use crate::protocol::Outcome;
use teamster_types::event::{Event, PermissionDenial, StopReason, Usage, UsageScope, UsageSoFar};

/// Sums over the steps of a run. OpenCode tells figures for each step alone, a resumed session's too.
#[derive(Debug, Default)]
pub(super) struct Tally {
    usage: Option<Usage>,
    pub(super) cost: Option<f64>,
    pub(super) turns: u64,
    pub(super) denials: Vec<PermissionDenial>,
}

impl Tally {
    /// Adds a step and tells the sum so far.
    pub(super) fn step(&mut self, part: &FinishPart<'_>) -> Option<Event> {
        self.turns += 1;
        self.aside(part)
    }

    /// The same for a step of a subagent, which is no turn of the run.
    pub(super) fn aside(&mut self, part: &FinishPart<'_>) -> Option<Event> {
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
        Some(Event::Usage(UsageSoFar { usage: sum.clone(), scope: UsageScope::Run }))
    }

    /// An outcome with the figures so far.
    pub(super) fn outcome(&self, stop_reason: Option<StopReason>) -> Outcome {
        Outcome {
            usage: self.usage.clone().map(|usage| (usage, UsageScope::Run)),
            total_cost_usd: self.cost,
            num_turns: (self.turns > 0).then_some(self.turns),
            stop_reason,
            permission_denials: self.denials.clone(),
            ..Outcome::default()
        }
    }
}

/// A sum of dollars without the dust of binary fractions: no price is finer than that.
fn in_nanos(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}

/// `input` is without cached tokens as it stands; `output` is without reasoning.
fn usage(tokens: &Tokens) -> Usage {
    Usage::new(tokens.input, tokens.output.saturating_add(tokens.reasoning))
        .with_cache(Some(tokens.cache.read), Some(tokens.cache.write))
        .with_reasoning(Some(tokens.reasoning))
}
