//! The usage and cost of a conversation.

use teamster::RunResult;
use teamster::event::{ContextUse, Usage, UsageScope};

use crate::printable::{Printable, printable};
use crate::render::pretty::closing::{count, dollars};

/// The sums over all turns.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageTotals {
    turns: u64,
    run: Usage,
    /// The latest total, from an agent that reports only totals of its session.
    session: Option<Usage>,
    cost_usd: Option<f64>,
    /// The context after the last turn.
    context: Option<ContextUse>,
}

/// The parts of the status line that show the usage.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageParts {
    pub(super) context: Option<Printable>,
    pub(super) tokens: Option<Printable>,
    pub(super) cost: Option<Printable>,
}

impl UsageTotals {
    pub(super) fn add(&mut self, result: &RunResult) {
        self.turns += 1;
        self.context.clone_from(&result.context);
        if let Some(cost) = result.total_cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
        match (&result.usage, &result.usage_scope) {
            (Some(usage), Some(UsageScope::Session)) => self.session = Some(usage.clone()),
            (Some(usage), _) => self.run += usage,
            _ => {}
        }
    }

    /// Formats context, tokens and cost for the status line, if a turn has used any.
    pub(super) fn in_short(&self) -> UsageParts {
        let usage = self.session.as_ref().unwrap_or(&self.run);
        let cached = [usage.cache_read_tokens, usage.cache_write_tokens].into_iter().flatten();
        let input = cached.fold(usage.input_tokens, u64::saturating_add);
        let tokens = printable!("{} in, {} out", count(input), count(usage.output_tokens));
        let cost = self.cost_usd.filter(|cost| *cost > 0.0);
        if self.turns == 0 || usage.is_zero() {
            return UsageParts::default();
        }
        UsageParts { context: self.context.as_ref().map(context), tokens: Some(tokens), cost: cost.map(dollars) }
    }

    /// Formats the totals as one line.
    pub(super) fn summary(&self) -> Printable {
        let usage = self.session.as_ref().unwrap_or(&self.run);
        let cached = usage.cache_read_tokens.unwrap_or(0);
        let written = usage.cache_write_tokens.unwrap_or(0);
        let input = usage.input_tokens.saturating_add(cached).saturating_add(written);
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        let cached = if cached > 0 { printable!(" ({} cached)", count(cached)) } else { Printable::default() };
        let cost = match self.cost_usd {
            Some(cost) => printable!(", {}", dollars(cost)),
            None => "; the agent reports no cost".into(),
        };
        let (input, output) = (count(input), count(usage.output_tokens));
        printable!("{} {}, {} tokens in, {} out{}{}", self.turns, turns, input, output, cached, cost)
    }
}

/// Formats the use of the context window.
fn context(context: &ContextUse) -> Printable {
    match context.window_tokens.filter(|window| *window > 0) {
        Some(window) => {
            let percent = u128::from(context.used_tokens) * 100 / u128::from(window);
            printable!("context {}% of {}", u64::try_from(percent).unwrap_or(u64::MAX), count(window))
        }
        None => printable!("context {}", count(context.used_tokens)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_turns_is_summed_and_session_totals_are_replaced() {
        let mut totals = UsageTotals::default();
        assert_eq!(totals.summary().as_str(), "0 turns, 0 tokens in, 0 out; the agent reports no cost");
        let mut usage = Usage::default();
        (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) = (900, 100, Some(100));
        let mut result = RunResult::default();
        (result.usage, result.total_cost_usd) = (Some(usage), Some(0.25));
        totals.add(&result);
        totals.add(&result);
        assert_eq!(totals.summary().as_str(), "2 turns, 2.0k tokens in, 200 out (200 cached), $0.5000");
        result.usage_scope = Some(UsageScope::Session);
        totals.add(&result);
        assert_eq!(totals.summary().as_str(), "3 turns, 1.0k tokens in, 100 out (100 cached), $0.7500");
        let short = |totals: &UsageTotals| {
            let UsageParts { context, tokens, cost } = totals.in_short();
            Printable::join([context, tokens, cost].into_iter().flatten(), " · ").as_str().to_owned()
        };
        assert_eq!(short(&totals), "1.0k in, 100 out · $0.7500");
        result.context = Some(ContextUse::new(25_000, Some(200_000)));
        totals.add(&result);
        assert_eq!(short(&totals), "context 12% of 200k · 1.0k in, 100 out · $1.00");
        result.context = Some(ContextUse::new(25_000, None));
        totals.add(&result);
        assert_eq!(short(&totals), "context 25.0k · 1.0k in, 100 out · $1.25");
    }
}
