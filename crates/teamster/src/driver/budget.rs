//! How much a run and a session may cost and use.
//!
//! What the agent reports is compared with the limits: tokens while a turn runs, since agents report them call by call, and
//! everything when a turn is over. The cost within a turn is known to the agents alone, whose protocols keep to it. A turn
//! does not begin when the session's budget is used up.

use teamster_types::event::{ErrorCode, Event, Failure, RunResult, Usage, UsageScope};
use teamster_types::request::RunRequest;

/// The limits of a session, and what its turns have come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    turn_tokens: Option<u64>,
    session_tokens: Option<u64>,
    session_usd: Option<f64>,
    /// Of the turns that are over.
    spent_tokens: u64,
    spent_usd: f64,
    /// Of the turn that runs, as last reported.
    turn: Option<Usage>,
}

impl Budget {
    pub(crate) fn of(request: &RunRequest) -> Self {
        Self {
            turn_tokens: request.max_tokens.map(Into::into),
            session_tokens: request.max_session_tokens.map(Into::into),
            session_usd: request.max_session_budget_usd,
            ..Self::default()
        }
    }

    /// What is left of the session's budget of cost.
    pub(crate) fn left_usd(&self) -> Option<f64> {
        self.session_usd.map(|budget| (budget - self.spent_usd).max(0.0))
    }

    /// Why no further turn may begin, if none may.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        let text = match (self.session_usd, self.session_tokens) {
            (Some(budget), _) if self.spent_usd >= budget => {
                format!("the session has cost the {budget} US dollars it may; nothing was sent")
            }
            (_, Some(budget)) if self.spent_tokens >= budget => {
                format!("the session has used the {budget} tokens it may; nothing was sent")
            }
            _ => return None,
        };
        Some(used_up(text))
    }

    /// Takes an event of the stream. Why the turn is to be stopped, if it is.
    pub(crate) fn note(&mut self, event: &Event) -> Option<Failure> {
        match event {
            Event::Usage(so_far) if so_far.scope == UsageScope::Run => {
                let tokens = all(&so_far.usage);
                self.turn = Some(so_far.usage.clone());
                let session = self.session_tokens.filter(|budget| self.spent_tokens.saturating_add(tokens) >= *budget);
                match (self.turn_tokens.filter(|budget| tokens >= *budget), session) {
                    (Some(budget), _) => Some(used_up(format!("the turn has used the {budget} tokens it may"))),
                    (_, Some(budget)) => Some(used_up(format!("the session has used the {budget} tokens it may"))),
                    _ => None,
                }
            }
            Event::Done(done) => {
                self.spend(&done.result);
                None
            }
            _ => None,
        }
    }

    /// A turn is over.
    fn spend(&mut self, result: &RunResult) {
        // No agent gives anything back by a cost below zero.
        self.spent_usd += result.total_cost_usd.unwrap_or_default().max(0.0);
        let turn = self.turn.take();
        match (&result.usage, &result.usage_scope) {
            // The figure has what was used before.
            (Some(usage), Some(scope)) if *scope != UsageScope::Run => {
                self.spent_tokens = self.spent_tokens.max(all(usage));
            }
            (usage, _) => {
                let tokens = usage.as_ref().or(turn.as_ref()).map_or(0, all);
                self.spent_tokens = self.spent_tokens.saturating_add(tokens);
            }
        }
    }
}

/// Tokens of all kinds.
fn all(usage: &Usage) -> u64 {
    let cached = usage.cache_read_tokens.unwrap_or(0).saturating_add(usage.cache_write_tokens.unwrap_or(0));
    usage.input_tokens.saturating_add(usage.output_tokens).saturating_add(cached)
}

pub(super) fn used_up(text: String) -> Failure {
    Failure { retryable: Some(false), ..Failure::new(ErrorCode::Budget, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_with_a_cost_below_zero_gives_nothing_back() {
        let mut request = RunRequest::new("");
        request.max_session_budget_usd = Some(1.0);
        let mut budget = Budget::of(&request);
        for cost in [-5.0, 0.6, -5.0, 0.6] {
            assert!(budget.refusal().is_none());
            let mut result = RunResult::default();
            result.total_cost_usd = Some(cost);
            budget.spend(&result);
        }
        assert_eq!(budget.refusal().unwrap().code, ErrorCode::Budget);
    }
}
