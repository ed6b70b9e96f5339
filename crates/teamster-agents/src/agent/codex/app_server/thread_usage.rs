//! The tokens of a turn, from figures that are sums over the whole thread.
//!
//! The thread's total before the turn is known if the thread is new, or if an earlier turn or the resumed thread reported it.
//! Otherwise it is the first total of the turn minus the usage of its last call.

use super::wire::{TokenUsage, Tokens};
use teamster_types::event::{ContextUse, Usage};

/// The reported usage of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadUsage {
    /// The thread's last total.
    total: Option<Usage>,
    /// The total at the start of the turn.
    before: Option<Usage>,
    /// The tokens of the last model call, and the model's context window.
    context: Option<ContextUse>,
    in_turn: bool,
    counted: bool,
}

impl ThreadUsage {
    /// Notes that the thread is new and has used nothing.
    pub(super) fn new_thread(&mut self) {
        self.total = Some(Usage::default());
    }

    pub(super) fn start_turn(&mut self) {
        self.before.clone_from(&self.total);
        (self.in_turn, self.counted) = (true, false);
    }

    /// Reads the figures after a model call of the running turn. Returns the usage of the turn.
    pub(super) fn count(&mut self, reported: &TokenUsage) -> Option<Usage> {
        let total = of(&reported.total);
        self.context = Some(ContextUse::new(of(&reported.last).total(), reported.model_context_window));
        if self.in_turn {
            self.before.get_or_insert_with(|| total.since(&of(&reported.last)));
            self.counted = true;
        }
        self.total = Some(total);
        self.turn()
    }

    /// Reads the figures before the turn, which a resumed thread reports again.
    pub(super) fn recall(&mut self, reported: &TokenUsage) {
        self.total = Some(of(&reported.total));
        if self.in_turn && !self.counted {
            self.before.clone_from(&self.total);
        }
    }

    /// Returns the usage of the turn, if it was reported.
    pub(super) fn turn(&self) -> Option<Usage> {
        let (total, before) = (self.total.as_ref()?, self.before.as_ref()?);
        (self.in_turn && self.counted).then(|| total.since(before))
    }

    /// Returns how much of the context window is used, if it was reported.
    pub(super) fn context(&self) -> Option<ContextUse> {
        self.context.clone()
    }

    pub(super) fn end_turn(&mut self) {
        self.in_turn = false;
    }
}

/// Converts tokens. Cached tokens are part of `inputTokens`. Reasoning is part of `outputTokens`, as in [`Usage`].
fn of(tokens: &Tokens) -> Usage {
    let cached = tokens.cached_input_tokens.unwrap_or(0).saturating_add(tokens.cache_write_input_tokens.unwrap_or(0));
    Usage::new(tokens.input_tokens.saturating_sub(cached), tokens.output_tokens)
        .with_cache(tokens.cached_input_tokens, tokens.cache_write_input_tokens)
        .with_reasoning(tokens.reasoning_output_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(total: u64, last: u64) -> TokenUsage {
        let tokens = |input_tokens| Tokens { input_tokens, output_tokens: input_tokens / 10, ..Tokens::default() };
        TokenUsage { total: tokens(total), last: tokens(last), model_context_window: None }
    }

    fn input(usage: Option<Usage>) -> Option<u64> {
        usage.map(|usage| usage.input_tokens)
    }

    #[test]
    fn the_usage_of_a_turn_is_the_difference_to_the_turn_before() {
        let mut usage = ThreadUsage::default();
        usage.new_thread();
        usage.start_turn();
        assert_eq!(usage.turn(), None);
        assert_eq!(input(usage.count(&reported(100, 100))), Some(100));
        assert_eq!(input(usage.count(&reported(250, 150))), Some(250));
        usage.end_turn();
        assert_eq!(usage.count(&reported(300, 50)), None);
        usage.start_turn();
        assert_eq!(usage.turn(), None);
        assert_eq!(input(usage.count(&reported(420, 120))), Some(120));
    }

    #[test]
    fn the_usage_of_a_resumed_thread_starts_at_its_reported_total_or_at_the_first_call() {
        for started_before in [false, true] {
            let mut usage = ThreadUsage::default();
            if started_before {
                usage.start_turn();
            }
            usage.recall(&reported(1000, 300));
            if !started_before {
                usage.start_turn();
            }
            assert_eq!(input(usage.count(&reported(1500, 200))), Some(500));
        }
        let mut usage = ThreadUsage::default();
        usage.start_turn();
        assert_eq!(input(usage.count(&reported(1500, 200))), Some(200));
        assert_eq!(input(usage.count(&reported(1700, 200))), Some(400));
    }

    proptest::proptest! {
        #[test]
        fn any_figures_are_accepted(figures: Vec<(u64, u64, bool)>) {
            let mut usage = ThreadUsage::default();
            for (total, last, starts_turn) in figures {
                if starts_turn {
                    usage.start_turn();
                }
                usage.recall(&reported(last, total));
                let _ = usage.count(&reported(total, last));
            }
        }
    }
}
