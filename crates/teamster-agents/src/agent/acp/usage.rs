//! Tokens of a turn, as its last answer tells them.
//!
//! The protocol leaves open whether cached tokens are part of the input, and reasoning of the output; the total shows it.

use super::wire::Tokens;
use teamster_types::event::Usage;

/// Agents whose figures are not those of the turn. OpenCode 1.18.33 tells the last call of the model only.
const OTHER_THAN_THE_TURN: &[&str] = &["OpenCode"];

pub(super) fn of_turn(agent: &str, tokens: &Tokens) -> Option<Usage> {
    if OTHER_THAN_THE_TURN.contains(&agent) {
        return None;
    }
    let cached = tokens.cached_read_tokens.unwrap_or(0).saturating_add(tokens.cached_write_tokens.unwrap_or(0));
    let thought = tokens.thought_tokens.unwrap_or(0);
    let sum = tokens.input_tokens.saturating_add(tokens.output_tokens);
    let apart = |parts: &[u64]| tokens.total_tokens == parts.iter().fold(sum, |sum, part| sum.saturating_add(*part));
    let (cached_apart, thought_apart) =
        (apart(&[cached]) || apart(&[cached, thought]), apart(&[thought]) || apart(&[cached, thought]));
    let usage = Usage::new(
        if cached_apart { tokens.input_tokens } else { tokens.input_tokens.saturating_sub(cached) },
        tokens.output_tokens.saturating_add(if thought_apart { thought } else { 0 }),
    )
    .with_cache(tokens.cached_read_tokens, tokens.cached_write_tokens)
    .with_reasoning(tokens.thought_tokens);
    (!usage.is_zero()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_shows_what_is_counted_where() {
        let tokens = |total_tokens, input_tokens, output_tokens| Tokens {
            total_tokens,
            input_tokens,
            output_tokens,
            thought_tokens: Some(10),
            cached_read_tokens: Some(50),
            cached_write_tokens: None,
        };
        for told in [tokens(160, 80, 20), tokens(160, 130, 30), tokens(160, 130, 20), tokens(160, 80, 30)] {
            let usage = of_turn("any", &told).unwrap();
            assert_eq!((usage.input_tokens, usage.output_tokens), (80, 30), "{told:?}");
        }
        assert_eq!(of_turn("OpenCode", &tokens(160, 80, 20)), None);
    }
}
