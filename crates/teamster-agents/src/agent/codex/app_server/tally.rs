//! Tokens of a turn, out of figures that add up the whole thread.
//!
//! The thread's total before the turn is known where the thread is new, and where an earlier turn or the resumed thread told
//! it; else it is what the first figure of the turn lacks of its own last call.

use super::wire::{TokenUsage, Tokens};
use teamster_types::event::Usage;

/// What is known of the thread's and the turn's tokens.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The thread's total, as it was last told.
    total: Option<Usage>,
    /// What it was when the turn began.
    before: Option<Usage>,
    in_turn: bool,
    counted: bool,
}

impl Tally {
    /// The thread has just been made: nothing was used.
    pub(super) fn new_thread(&mut self) {
        self.total = Some(Usage::default());
    }

    pub(super) fn begin_turn(&mut self) {
        self.before.clone_from(&self.total);
        (self.in_turn, self.counted) = (true, false);
    }

    /// Takes the thread's figures as they are after a call of the turn that runs, and gives what the turn has used.
    pub(super) fn count(&mut self, told: &TokenUsage) -> Option<Usage> {
        let total = of(&told.total);
        if self.in_turn {
            self.before.get_or_insert_with(|| total.since(&of(&told.last)));
            self.counted = true;
        }
        self.total = Some(total);
        self.turn()
    }

    /// Takes the thread's figures as they were before the turn: a thread that is resumed tells them again.
    pub(super) fn recall(&mut self, told: &TokenUsage) {
        self.total = Some(of(&told.total));
        if self.in_turn && !self.counted {
            self.before.clone_from(&self.total);
        }
    }

    /// What the turn has used, as far as that was told.
    pub(super) fn turn(&self) -> Option<Usage> {
        let (total, before) = (self.total.as_ref()?, self.before.as_ref()?);
        (self.in_turn && self.counted).then(|| total.since(before))
    }

    pub(super) fn end_turn(&mut self) {
        self.in_turn = false;
    }
}

/// Cached tokens are inside `inputTokens`; reasoning is inside `outputTokens`, as it is with us.
fn of(tokens: &Tokens) -> Usage {
    let cached = tokens.cached_input_tokens.unwrap_or(0).saturating_add(tokens.cache_write_input_tokens.unwrap_or(0));
    Usage::new(tokens.input_tokens.saturating_sub(cached), tokens.output_tokens)
        .with_cache(tokens.cached_input_tokens, tokens.cache_write_input_tokens)
        .with_reasoning(tokens.reasoning_output_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(total: u64, last: u64) -> TokenUsage {
        let tokens = |input_tokens| Tokens { input_tokens, output_tokens: input_tokens / 10, ..Tokens::default() };
        TokenUsage { total: tokens(total), last: tokens(last) }
    }

    fn input(usage: Option<Usage>) -> Option<u64> {
        usage.map(|usage| usage.input_tokens)
    }

    #[test]
    fn a_turn_is_what_came_after_the_one_before() {
        let mut tally = Tally::default();
        tally.new_thread();
        tally.begin_turn();
        assert_eq!(tally.turn(), None);
        assert_eq!(input(tally.count(&told(100, 100))), Some(100));
        assert_eq!(input(tally.count(&told(250, 150))), Some(250));
        tally.end_turn();
        assert_eq!(tally.count(&told(300, 50)), None);
        tally.begin_turn();
        assert_eq!(tally.turn(), None);
        assert_eq!(input(tally.count(&told(420, 120))), Some(120));
    }

    #[test]
    fn a_thread_that_goes_on_is_counted_from_what_it_told_or_from_the_first_call() {
        for begins_before in [false, true] {
            let mut tally = Tally::default();
            if begins_before {
                tally.begin_turn();
            }
            tally.recall(&told(1000, 300));
            if !begins_before {
                tally.begin_turn();
            }
            assert_eq!(input(tally.count(&told(1500, 200))), Some(500));
        }
        let mut tally = Tally::default();
        tally.begin_turn();
        assert_eq!(input(tally.count(&told(1500, 200))), Some(200));
        assert_eq!(input(tally.count(&told(1700, 200))), Some(400));
    }

    proptest::proptest! {
        #[test]
        fn any_figures_are_counted(figures: Vec<(u64, u64, bool)>) {
            let mut tally = Tally::default();
            for (total, last, begins) in figures {
                if begins {
                    tally.begin_turn();
                }
                tally.recall(&told(last, total));
                let _ = tally.count(&told(total, last));
            }
        }
    }
}
