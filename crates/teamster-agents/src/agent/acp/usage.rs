//! The tokens of a turn, from the response to its prompt.
//!
//! The protocol does not define whether cached tokens are part of the input, and reasoning is part of the output. The total shows it.

use super::wire::Tokens;
use teamster_types::event::{Usage, UsageScope};

/// What the usage in the response to a prompt covers. The protocol's schema states both "for this turn" and "across all turns".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Covers {
    Turn,
    /// The session so far.
    Session,
    /// Only the last model call of the turn.
    LastCall,
}

impl Covers {
    /// Returns what an agent reports, by the name in its `agentInfo`.
    fn by(agent: &str) -> Self {
        match agent {
            // Copilot CLI 1.0.102 and Mistral Vibe 3.0.3.
            "Copilot" | "@mistralai/mistral-vibe" => Self::Session,
            // OpenCode 1.18.33 and Kilo Code 7.7.9.
            "OpenCode" | "Kilo" => Self::LastCall,
            _ => Self::Turn,
        }
    }
}

/// The usage that the agent has reported in a session.
#[derive(Debug, Default)]
pub(super) struct ReportedUsage {
    /// The last total of an agent that reports totals.
    total: Option<Usage>,
}

impl ReportedUsage {
    /// Returns the usage of a turn, or of the session if the part of the turn is unknown. `None` if it is unknown or zero.
    pub(super) fn of_turn(&mut self, agent: &str, tokens: &Tokens, is_new: bool) -> Option<(Usage, UsageScope)> {
        let usage = read(tokens);
        let usage = match Covers::by(agent) {
            Covers::LastCall => return None,
            Covers::Turn => usage,
            Covers::Session => {
                let before = self.total.replace(usage.clone()).or_else(|| is_new.then(Usage::default));
                match before {
                    // The total includes turns of other processes.
                    None => return (!usage.is_zero()).then_some((usage, UsageScope::Session)),
                    // The agent has started to count again.
                    Some(before) if usage.total() < before.total() => usage,
                    Some(before) => usage.since(&before),
                }
            }
        };
        (!usage.is_zero()).then_some((usage, UsageScope::Run))
    }
}

/// Converts reported tokens.
fn read(tokens: &Tokens) -> Usage {
    let cached = tokens.cached_read_tokens.unwrap_or(0).saturating_add(tokens.cached_write_tokens.unwrap_or(0));
    let thought = tokens.thought_tokens.unwrap_or(0);
    let sum = tokens.input_tokens.saturating_add(tokens.output_tokens);
    let separate = |parts: &[u64]| tokens.total_tokens == parts.iter().fold(sum, |sum, part| sum.saturating_add(*part));
    let (separate_cache, separate_thoughts) =
        (separate(&[cached]) || separate(&[cached, thought]), separate(&[thought]) || separate(&[cached, thought]));
    Usage::new(
        if separate_cache { tokens.input_tokens } else { tokens.input_tokens.saturating_sub(cached) },
        tokens.output_tokens.saturating_add(if separate_thoughts { thought } else { 0 }),
    )
    .with_cache(tokens.cached_read_tokens, tokens.cached_write_tokens)
    .with_reasoning(tokens.thought_tokens)
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
            let (usage, scope) = ReportedUsage::default().of_turn("any", &reported, true).unwrap();
            assert_eq!((usage.input_tokens, usage.output_tokens), (80, 30), "{reported:?}");
            assert_eq!(scope, UsageScope::Run);
        }
        for agent in ["OpenCode", "Kilo"] {
            assert_eq!(ReportedUsage::default().of_turn(agent, &tokens(160, 80, 20), true), None);
        }
    }

    #[test]
    fn totals_of_the_session_are_counted_once() {
        let tokens = |input_tokens, output_tokens| Tokens {
            total_tokens: input_tokens + output_tokens,
            input_tokens,
            output_tokens,
            thought_tokens: None,
            cached_read_tokens: None,
            cached_write_tokens: None,
        };
        for (agent, is_new) in [("Copilot", true), ("@mistralai/mistral-vibe", false)] {
            let mut reported = ReportedUsage::default();
            let mut turn = |input, output| {
                let (usage, scope) = reported.of_turn(agent, &tokens(input, output), is_new)?;
                Some((usage.input_tokens, usage.output_tokens, scope))
            };
            let first = if is_new { UsageScope::Run } else { UsageScope::Session };
            assert_eq!(turn(1200, 30), Some((1200, 30, first)));
            assert_eq!(turn(2400, 60), Some((1200, 30, UsageScope::Run)));
            assert_eq!(turn(2400, 60), None);
            assert_eq!(turn(100, 1), Some((100, 1, UsageScope::Run)));
        }
        let mut reported = ReportedUsage::default();
        for _ in 0..2 {
            let (usage, _) = reported.of_turn("another", &tokens(1200, 30), true).unwrap();
            assert_eq!(usage.input_tokens, 1200);
        }
    }
}
