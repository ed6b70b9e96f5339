//! The totals of a run or a turn (usage, cost, number of turns), and the outcome.

use std::collections::BTreeMap;

use super::wire::{ApiUsage, ModelUsage, ResultLine};
use crate::agent::failure::Classification;
use crate::bounded;
use crate::protocol::Outcome;
use teamster_types::event::{
    ContextUse, ErrorCode, Event, Failure, PermissionDenial, StopReason, Usage, UsageScope, UsageSoFar,
};

/// Sums over the turns of a process.
#[derive(Debug)]
pub(super) struct UsageTotals {
    has_schema: bool,
    started_turns: u32,
    /// The usage of the main loop.
    usage: Usage,
    num_turns: u64,
    /// The tokens of the last call of the main loop.
    context_tokens: Option<u64>,
    denials: Vec<PermissionDenial>,
    stop_reason: Option<StopReason>,
    model: Option<String>,
    /// The totals of the process at the start of the session's turn.
    before: Totals,
    /// The totals of the process now.
    now: Totals,
}

/// The totals of a process, as a result line reports them.
#[derive(Clone, Debug, Default)]
struct Totals {
    usage: Usage,
    cost_usd: f64,
    api_ms: u64,
}

impl UsageTotals {
    pub(super) fn new(has_schema: bool) -> Self {
        Self {
            has_schema,
            started_turns: 0,
            usage: Usage::default(),
            num_turns: 0,
            context_tokens: None,
            denials: Vec::new(),
            stop_reason: None,
            model: None,
            before: Totals::default(),
            now: Totals::default(),
        }
    }

    /// Starts another turn of a session.
    pub(super) fn next_turn(&mut self) {
        self.usage = Usage::default();
        self.num_turns = 0;
        self.denials.clear();
        self.stop_reason = None;
        self.before = self.now.clone();
    }

    /// Counts a started turn. Returns whether it is the first of the process.
    pub(super) fn count_turn(&mut self) -> bool {
        self.started_turns += 1;
        self.started_turns == 1
    }

    pub(super) fn set_model(&mut self, model: Option<&str>) {
        if let Some(model) = model
            && self.model.as_deref() != Some(model)
        {
            self.model = Some(model.to_owned());
        }
    }

    /// Adds the usage of a message. Only `message_delta` has the final numbers; `assistant` lines do not.
    pub(super) fn message_delta(&mut self, stop_reason: Option<&str>, usage: Option<&ApiUsage>) -> Option<Event> {
        self.stop_reason = stop_reason.map(StopReason::from).or(self.stop_reason.take());
        let usage = of_api(usage?);
        self.usage += &usage;
        self.context_tokens = Some(usage.total());
        Some(Event::Usage(Box::new(UsageSoFar::new(self.usage.clone(), UsageScope::Run))))
    }

    /// Returns the outcome of a result line.
    ///
    /// The line counts turns, denials and the stop reason per turn. It counts cost, model usage and API time per process. A
    /// process that resumes a session starts from zero.
    pub(super) fn outcome(&mut self, line: ResultLine<'_>, classification: Option<Classification>) -> Outcome {
        let usage = self.usage_of(&line);
        let (failure, classified_by) = classification.map(|found| (found.failure, found.row)).unzip();
        self.num_turns += line.num_turns.unwrap_or(0);
        let denials = line.permission_denials.into_iter().map(|denial| {
            PermissionDenial::new(denial.tool_name)
                .with_tool_id(denial.tool_use_id.map(Into::into))
                .with_input(denial.tool_input)
        });
        bounded::push_denials(&mut self.denials, denials);
        let interrupted = line.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted_"));
        let structured = line.structured_output;
        let failure = failure.or_else(|| {
            // If the model never calls the tool, the CLI reports success (recording `structured_never`).
            (self.has_schema && structured.is_none() && !interrupted).then(|| {
                Failure::new(ErrorCode::StructuredOutput, "the model returned no output that matches the schema")
            })
        });
        // The CLI reports `stop_sequence` for its own synthetic messages, which is not a stop reason of the model.
        let stop_reason = match &failure {
            Some(_) if line.stop_reason.as_deref() == Some("stop_sequence") => self.stop_reason.clone(),
            _ => line.stop_reason.as_deref().map(StopReason::from),
        };
        let session_id = match &failure {
            // The CLI reports the requested id or an invented one. Neither can be resumed.
            Some(Failure { code: ErrorCode::SessionNotFound, .. }) => None,
            _ => line.session_id.filter(|id| !id.is_empty()).map(Into::into),
        };
        let stop_reason = match &failure {
            Some(Failure { code: ErrorCode::MaxTurns, .. }) => Some(StopReason::MaxTurns),
            _ if interrupted => Some(StopReason::Cancelled),
            _ => stop_reason,
        };
        // In a document without messages, only the model usage names the model.
        let mut models = line.model_usage.iter().flatten().map(|(model, _)| model.clone());
        let only_model = models.next().filter(|_| models.next().is_none());
        let total_cost_usd = line.total_cost_usd.map(|total| {
            self.now.cost_usd = total;
            cost_since(total, self.before.cost_usd)
        });
        let api_duration_ms = line.duration_api_ms.map(|total| {
            self.now.api_ms = total;
            total.saturating_sub(self.before.api_ms)
        });
        let window = line.model_usage.as_ref().and_then(|models| self.window_of(models));
        Outcome {
            failure,
            classified_by: classified_by.flatten(),
            context: self.context_tokens.map(|used| ContextUse::new(used, window)),
            interrupted,
            session_id,
            usage: usage.map(|usage| (usage, UsageScope::Run)),
            total_cost_usd,
            api_duration_ms,
            num_turns: Some(self.num_turns),
            stop_reason,
            permission_denials: self.denials.clone(),
            structured_output: structured,
            model: self.model.clone().or(only_model),
        }
    }

    /// Returns the context window of the main loop's model.
    fn window_of(&self, models: &BTreeMap<String, ModelUsage>) -> Option<u64> {
        let only = models.values().next().filter(|_| models.len() == 1);
        self.model.as_ref().and_then(|model| models.get(model)).or(only)?.context_window
    }

    /// Returns the usage of all API calls.
    ///
    /// `modelUsage` includes subagents and internal calls, as the cost does. `usage` includes only the main loop, and is zero after a
    /// repeated call (recording `err_cut_once`).
    fn usage_of(&mut self, line: &ResultLine<'_>) -> Option<Usage> {
        let sum = sum_of(line.model_usage.as_ref());
        if sum.is_zero() {
            return line.usage.as_ref().map(of_api);
        }
        self.now.usage = sum;
        Some(self.now.usage.since(&self.before.usage))
    }
}

/// Returns the difference of two costs in dollars, rounded to 8 decimals, since more digits are rounding errors.
fn cost_since(total: f64, before: f64) -> f64 {
    if before == 0.0 { total } else { ((total - before).max(0.0) * 1e8).round() / 1e8 }
}

fn sum_of(models: Option<&BTreeMap<String, ModelUsage>>) -> Usage {
    let mut sum = Usage::default();
    for model in models.into_iter().flatten().map(|(_, usage)| usage) {
        sum += &Usage::new(model.input_tokens, model.output_tokens)
            .with_cache(Some(model.cache_read_input_tokens), Some(model.cache_creation_input_tokens));
    }
    sum
}

fn of_api(usage: &ApiUsage) -> Usage {
    Usage::new(usage.input_tokens, usage.output_tokens)
        .with_cache(usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
}
