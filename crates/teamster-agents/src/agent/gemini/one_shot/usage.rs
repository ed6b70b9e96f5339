//! The usage and the model of a run.

use super::wire::{DocumentStats, Stats};
use teamster_types::event::{Usage, UsageScope};

/// Returns the usage of the process, which is that of the run. After a failed call the CLI reports zero for all (`err_auth_401`).
/// Then the usage is unknown.
pub(super) fn usage(stats: &Stats) -> Option<(Usage, UsageScope)> {
    // Only the total includes thoughts.
    let reasoning = stats.total_tokens.saturating_sub(stats.input_tokens + stats.output_tokens);
    of(stats.input_tokens, stats.cached, stats.output_tokens, reasoning)
}

/// Returns the usage of a batch run.
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

/// Returns the model that answered, if there was only one. With the model `auto`, the router is a second one.
pub(super) fn only_model<'a>(mut models: impl Iterator<Item = &'a String>) -> Option<String> {
    models.next().filter(|_| models.next().is_none()).cloned()
}
