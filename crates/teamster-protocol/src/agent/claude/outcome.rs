//! What a run adds up to: usage, cost, turns, and the outcome made of them.

use super::wire::{ApiUsage, ModelUsage, ResultLine};
use crate::agent::failure::Judgement;
use crate::event::{ErrorCode, Event, Failure, PermissionDenial, StopReason, Usage, UsageScope, UsageSoFar};
use crate::protocol::Outcome;

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
        }
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
        Some(Event::Usage(UsageSoFar { usage: self.usage.clone(), scope: UsageScope::Run }))
    }

    /// The outcome that a result line gives. Per turn in it: turns, denials, stop reason. Over the whole process: cost,
    /// model usage, API time; a resumed process starts from zero, so these are the run's own.
    pub(super) fn outcome(&mut self, line: ResultLine, judgement: Option<Judgement>) -> Outcome {
        let (failure, told_by) = judgement.map(|judgement| (judgement.failure, judgement.row)).unzip();
        self.num_turns += line.num_turns.unwrap_or(0);
        self.denials.extend(line.permission_denials.into_iter().map(|denial| PermissionDenial {
            tool_name: denial.tool_name,
            tool_id: denial.tool_use_id.map(Into::into),
            input: denial.tool_input,
        }));
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
        Outcome {
            failure,
            told_by: told_by.flatten(),
            interrupted,
            session_id,
            usage: usage(line.model_usage.as_ref(), line.usage.as_ref()).map(|usage| (usage, UsageScope::Run)),
            total_cost_usd: line.total_cost_usd,
            api_duration_ms: line.duration_api_ms,
            num_turns: Some(self.num_turns),
            stop_reason,
            permission_denials: self.denials.clone(),
            structured_output: structured,
            model: self.model.clone().or(only_model),
        }
    }
}

/// All API calls of the process. `usage` of the result is the main loop alone, and zero after a redone call
/// (`err_cut_once`); `modelUsage` has subagents and helper calls too, as the cost has.
fn usage(models: Option<&std::collections::BTreeMap<String, ModelUsage>>, main: Option<&ApiUsage>) -> Option<Usage> {
    let mut sum = Usage::default();
    for model in models.into_iter().flatten().map(|(_, usage)| usage) {
        sum += &Usage {
            input_tokens: model.input_tokens,
            cache_read_tokens: Some(model.cache_read_input_tokens),
            cache_write_tokens: Some(model.cache_creation_input_tokens),
            output_tokens: model.output_tokens,
            reasoning_tokens: None,
        };
    }
    if sum.is_zero() { main.map(of_api) } else { Some(sum) }
}

fn of_api(usage: &ApiUsage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens,
        cache_read_tokens: usage.cache_read_input_tokens,
        cache_write_tokens: usage.cache_creation_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_tokens: None,
    }
}
