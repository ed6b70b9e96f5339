//! The limits on the cost and the tokens of a turn and a session.
//!
//! Tokens are compared with the limits while a turn runs, because agents report them call by call. The cost is compared when a
//! turn has ended; within a turn only the agents know it, and their protocols enforce the limit. No turn starts when the
//! session's budget is used up.

use teamster_types::event::{ErrorCode, Event, Failure, RunResult, Usage, UsageScope};
use teamster_types::request::RunRequest;

/// The limits of a session, and what its turns have used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    turn_tokens: Option<u64>,
    session_tokens: Option<u64>,
    session_usd: Option<f64>,
    /// The tokens of the turns that have ended.
    spent_tokens: u64,
    spent_usd: f64,
    /// The usage of the running turn, as last reported.
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

    /// Returns the remaining cost of the session's budget, in US dollars.
    pub(crate) fn left_usd(&self) -> Option<f64> {
        self.session_usd.map(|budget| (budget - self.spent_usd).max(0.0))
    }

    /// Returns the failure of a turn that must not start, because the budget is used up.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        let text = match (self.session_usd, self.session_tokens) {
            (Some(budget), _) if self.spent_usd >= budget => {
                format!("the session has cost its budget of {budget} US dollars; nothing was sent")
            }
            (_, Some(budget)) if self.spent_tokens >= budget => {
                format!("the session has used its budget of {budget} tokens; nothing was sent")
            }
            _ => return None,
        };
        Some(used_up(text))
    }

    /// Notes an event of the stream. Returns the failure of a turn that must stop.
    pub(crate) fn note(&mut self, event: &Event) -> Option<Failure> {
        match event {
            Event::Usage(so_far) if so_far.scope == UsageScope::Run => {
                let tokens = total(&so_far.usage);
                self.turn = Some(so_far.usage.clone());
                let session = self.session_tokens.filter(|budget| self.spent_tokens.saturating_add(tokens) >= *budget);
                match (self.turn_tokens.filter(|budget| tokens >= *budget), session) {
                    (Some(budget), _) => Some(used_up(format!("the turn has used its budget of {budget} tokens"))),
                    (_, Some(budget)) => Some(used_up(format!("the session has used its budget of {budget} tokens"))),
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

    /// Adds the usage of a turn that has ended.
    fn spend(&mut self, result: &RunResult) {
        // A negative cost must not increase the budget.
        self.spent_usd += result.total_cost_usd.unwrap_or_default().max(0.0);
        let turn = self.turn.take();
        match (&result.usage, &result.usage_scope) {
            // The figure includes the usage of earlier turns.
            (Some(usage), Some(scope)) if *scope != UsageScope::Run => {
                self.spent_tokens = self.spent_tokens.max(total(usage));
            }
            (usage, _) => {
                let tokens = usage.as_ref().or(turn.as_ref()).map_or(0, total);
                self.spent_tokens = self.spent_tokens.saturating_add(tokens);
            }
        }
    }
}

/// Returns the sum of all kinds of tokens.
fn total(usage: &Usage) -> u64 {
    let cached = usage.cache_read_tokens.unwrap_or(0).saturating_add(usage.cache_write_tokens.unwrap_or(0));
    usage.input_tokens.saturating_add(usage.output_tokens).saturating_add(cached)
}

pub(super) fn used_up(text: String) -> Failure {
    Failure::new(ErrorCode::Budget, text).with_retryable(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_cost_does_not_increase_the_budget() {
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
