//! What a run adds up to: usage, cost, turns, and the outcome made of them.

use std::collections::BTreeMap;

use super::wire::{ApiUsage, ModelUsage, ResultLine};
use crate::agent::failure::Classification;
use crate::bounded;
use crate::protocol::Outcome;
use teamster_types::event::{ErrorCode, Event, Failure, PermissionDenial, StopReason, Usage, UsageScope, UsageSoFar};

/// Sums over the turns of a process.
#[derive(Debug)]
pub(super) struct Tally {
    schema: bool,
    turns_begun: u32,
    /// Main loop, so far.
    usage: Usage,
    num_turns: u64,
    denials: Vec<PermissionDenial>,
    stop_reason: Option<StopReason>,
    model: Option<String>,
    /// What the process had come to when the turn of a session began, and has come to now.
    before: Totals,
    now: Totals,
}

/// What a result line adds up over the whole process.
#[derive(Clone, Debug, Default)]
struct Totals {
    usage: Usage,
    cost_usd: f64,
    api_ms: u64,
}

impl Tally {
    pub(super) fn new(schema: bool) -> Self {
        Self {
            schema,
            turns_begun: 0,
            usage: Usage::default(),
            num_turns: 0,
            denials: Vec::new(),
            stop_reason: None,
            model: None,
            before: Totals::default(),
            now: Totals::default(),
        }
    }

    /// Another turn of a session begins: what was added up until now is not its own.
    pub(super) fn next_turn(&mut self) {
        self.usage = Usage::default();
        self.num_turns = 0;
        self.denials.clear();
        self.stop_reason = None;
        self.before = self.now.clone();
    }

    /// Notes that a turn begins; tells whether it is the first.
    pub(super) fn begin_turn(&mut self) -> bool {
        self.turns_begun += 1;
        self.turns_begun == 1
    }

    pub(super) fn model(&mut self, model: Option<&str>) {
        if let Some(model) = model
            && self.model.as_deref() != Some(model)
        {
            self.model = Some(model.to_owned());
        }
    }

    /// The end of a message: the only place where its final figures stand (trap 16: not on `assistant` lines).
    pub(super) fn message_delta(&mut self, stop_reason: Option<&str>, usage: Option<&ApiUsage>) -> Option<Event> {
        self.stop_reason = stop_reason.map(StopReason::from).or(self.stop_reason.take());
        self.usage += &of_api(usage?);
        Some(Event::Usage(UsageSoFar::new(self.usage.clone(), UsageScope::Run)))
    }

    /// The outcome that a result line gives. Per turn in it: turns, denials, stop reason. Over the whole process: cost,
    /// model usage, API time; a resumed process starts from zero, so these are the run's own, or those of the session's
    /// turns.
    pub(super) fn outcome(&mut self, line: ResultLine, judgement: Option<Classification>) -> Outcome {
        let usage = self.usage_of(&line);
        let (failure, classified_by) = judgement.map(|judgement| (judgement.failure, judgement.row)).unzip();
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
            // A model that never calls the tool ends in success all the same (structured_never).
            (self.schema && structured.is_none() && !interrupted)
                .then(|| Failure::new(ErrorCode::StructuredOutput, "the model gave no output that follows the schema"))
        });
        // A result that the CLI made up (`stop_sequence` of a synthetic message) says nothing about the model.
        let stop_reason = match &failure {
            Some(_) if line.stop_reason.as_deref() == Some("stop_sequence") => self.stop_reason.clone(),
            _ => line.stop_reason.as_deref().map(StopReason::from),
        };
        let session_id = match &failure {
            // The CLI names the session that was asked for, or makes an id up: neither can be resumed.
            Some(Failure { code: ErrorCode::SessionNotFound, .. }) => None,
            _ => line.session_id.filter(|id| !id.is_empty()).map(Into::into),
        };
        let stop_reason = match &failure {
            Some(Failure { code: ErrorCode::MaxTurns, .. }) => Some(StopReason::MaxTurns),
            _ if interrupted => Some(StopReason::Cancelled),
            _ => stop_reason,
        };
        // A document without messages: the figures alone say who answered.
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
        Outcome {
            failure,
            classified_by: classified_by.flatten(),
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

    /// All API calls. `usage` of the result is the main loop alone, and zero after a redone call (`err_cut_once`);
    /// `modelUsage` has subagents and helper calls too, as the cost has.
    fn usage_of(&mut self, line: &ResultLine) -> Option<Usage> {
        let sum = sum_of(line.model_usage.as_ref());
        if sum.is_zero() {
            return line.usage.as_ref().map(of_api);
        }
        self.now.usage = sum;
        Some(self.now.usage.since(&self.before.usage))
    }
}

/// In dollars to the millionth of a cent: the difference of two sums has digits that mean nothing.
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
