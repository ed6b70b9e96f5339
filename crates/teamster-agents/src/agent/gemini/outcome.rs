//! What a run adds up to: usage and model.

use super::wire::{DocumentStats, Stats};
use teamster_types::event::{Usage, UsageScope};

/// Sums of this process, which are the run's own. After a failed call everything is zero, whatever was used before
/// (`err_auth_401`): then nothing is known.
pub(super) fn usage(stats: &Stats) -> Option<(Usage, UsageScope)> {
    // Thoughts stand in the total alone.
    let reasoning = stats.total_tokens.saturating_sub(stats.input_tokens + stats.output_tokens);
    of(stats.input_tokens, stats.cached, stats.output_tokens, reasoning)
}

/// The same from a batch run's document.
pub(super) fn document_usage(stats: &DocumentStats) -> Option<(Usage, UsageScope)> {
    let sum = |pick: fn(&super::wire::Tokens) -> u64| stats.models.values().map(|model| pick(&model.tokens)).sum();
    of(
        sum(|tokens| tokens.prompt),
        sum(|tokens| tokens.cached),
        sum(|tokens| tokens.candidates),
        sum(|tokens| tokens.thoughts),
    )
}

fn of(prompt: u64, cached: u64, candidates: u64, reasoning: u64) -> Option<(Usage, UsageScope)> {
    let usage = Usage::new(prompt.saturating_sub(cached), candidates + reasoning)
        .with_cache(Some(cached), None)
        .with_reasoning(Some(reasoning));
    (!usage.is_zero()).then_some((usage, UsageScope::Run))
}

/// The model that answered, where there was only one: with `auto`, a router's model is another one.
pub(super) fn only<'a>(mut models: impl Iterator<Item = &'a String>) -> Option<String> {
    models.next().filter(|_| models.next().is_none()).cloned()
}
