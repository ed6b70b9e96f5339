//! The tokens of a turn, from the response to its prompt.
//!
//! The protocol does not define whether cached tokens are part of the input, and reasoning is part of the output. The total shows it.

use super::wire::Tokens;
use teamster_types::event::Usage;

/// Agents that report other figures than those of the turn. OpenCode 1.18.33 reports only the last model call.
const NOT_THE_TURN: &[&str] = &["OpenCode"];

/// Returns the usage of a turn; `None` if it is unknown or zero.
pub(super) fn of_turn(agent: &str, tokens: &Tokens) -> Option<Usage> {
    if NOT_THE_TURN.contains(&agent) {
        return None;
    }
    let cached = tokens.cached_read_tokens.unwrap_or(0).saturating_add(tokens.cached_write_tokens.unwrap_or(0));
    let thought = tokens.thought_tokens.unwrap_or(0);
    let sum = tokens.input_tokens.saturating_add(tokens.output_tokens);
    let separate = |parts: &[u64]| tokens.total_tokens == parts.iter().fold(sum, |sum, part| sum.saturating_add(*part));
    let (separate_cache, separate_thoughts) =
        (separate(&[cached]) || separate(&[cached, thought]), separate(&[thought]) || separate(&[cached, thought]));
    let usage = Usage::new(
        if separate_cache { tokens.input_tokens } else { tokens.input_tokens.saturating_sub(cached) },
        tokens.output_tokens.saturating_add(if separate_thoughts { thought } else { 0 }),
    )
    .with_cache(tokens.cached_read_tokens, tokens.cached_write_tokens)
    .with_reasoning(tokens.thought_tokens);
    (!usage.is_zero()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_shows_whether_cached_tokens_and_reasoning_are_counted_separately() {
        let tokens = |total_tokens, input_tokens, output_tokens| Tokens {
            total_tokens,
            input_tokens,
            output_tokens,
            thought_tokens: Some(10),
            cached_read_tokens: Some(50),
            cached_write_tokens: None,
        };
        for reported in [tokens(160, 80, 20), tokens(160, 130, 30), tokens(160, 130, 20), tokens(160, 80, 30)] {
            let usage = of_turn("any", &reported).unwrap();
            assert_eq!((usage.input_tokens, usage.output_tokens), (80, 30), "{reported:?}");
        }
        assert_eq!(of_turn("OpenCode", &tokens(160, 80, 20)), None);
    }
}
