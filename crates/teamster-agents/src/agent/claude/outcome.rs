//! The totals of a run or a turn (usage, cost, number of turns), and the outcome.

use super::counters::{Counters, of_api};
use super::wire::{ApiUsage, ModelUsages, ResultLine};
use crate::agent::failure::Classification;
use crate::bounded;
use crate::protocol::Outcome;
use teamster_types::event::{
    ContextUse, ErrorCode, Event, Failure, PermissionDenial, StopReason, Usage, UsageScope, UsageSoFar,
};
use teamster_types::json::RawJson;
use teamster_types::request::RunRequest;

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
    /// The structured output of the turn. A turn that the CLI starts by itself in the same run has none.
    structured_output: Option<RawJson>,
    /// The model of the last message.
    model: Option<String>,
    /// Whether a message of this turn has set the model.
    has_model_of_turn: bool,
    pub(super) counters: Counters,
}

impl UsageTotals {
    pub(super) fn new(request: &RunRequest) -> Self {
        Self {
            has_schema: request.schema.is_some(),
            started_turns: 0,
            usage: Usage::default(),
            num_turns: 0,
            context_tokens: None,
            denials: Vec::new(),
            stop_reason: None,
            structured_output: None,
            model: None,
            has_model_of_turn: false,
            counters: Counters::new(request),
        }
    }

    /// Starts another turn of a session.
    pub(super) fn next_turn(&mut self) {
        self.usage = Usage::default();
        self.num_turns = 0;
        self.denials.clear();
        self.stop_reason = None;
        self.structured_output = None;
        self.has_model_of_turn = false;
        self.counters.next_turn();
    }

    /// Counts a started turn. Returns whether it is the first of the process.
    pub(super) fn count_turn(&mut self) -> bool {
        self.started_turns += 1;
        self.has_model_of_turn = false;
        self.counters.turn_started();
        self.started_turns == 1
    }

    /// Notes the model of a message. Returns the model of the message before in this turn, if that was another one.
    pub(super) fn set_model(&mut self, model: &str) -> Option<String> {
        let is_first = !std::mem::replace(&mut self.has_model_of_turn, true);
        if self.model.as_deref() == Some(model) {
            return None;
        }
        self.model.replace(model.to_owned()).filter(|_| !is_first)
    }

    /// Adds the usage of a message. Only `message_delta` has the final numbers; `assistant` lines do not.
    pub(super) fn message_delta(&mut self, stop_reason: Option<&str>, usage: Option<&ApiUsage>) -> Option<Event> {
        self.stop_reason = stop_reason.map(StopReason::from).or(self.stop_reason.take());
        let usage = of_api(usage?);
        self.usage += &usage;
        self.context_tokens = Some(usage.total());
        Some(Event::Usage(Box::new(UsageSoFar::new(self.usage.clone(), UsageScope::Run))))
    }

    /// Returns the outcome of a result line, which counts turns and denials, and has the stop reason, of one turn.
    pub(super) fn outcome(&mut self, line: ResultLine<'_>, classification: Option<Classification>) -> Outcome {
        let is_repeated = self.counters.is_repeated();
        let spent = self.counters.count(&line);
        let reported = classification.map(Outcome::from).unwrap_or_default();
        let (failure, classified_by) = (reported.failure, reported.classified_by);
        self.num_turns += line.num_turns.filter(|_| !is_repeated).unwrap_or(0);
        let denials = line.permission_denials.into_iter().filter(|_| !is_repeated).map(|denial| {
            PermissionDenial::new(denial.tool_name)
                .with_tool_id(denial.tool_use_id.map(Into::into))
                .with_input(denial.tool_input)
        });
        bounded::push_denials(&mut self.denials, denials);
        let interrupted = line.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted_"));
        self.structured_output = line.structured_output.or(self.structured_output.take());
        let structured = self.structured_output.clone();
        let failure = failure.or_else(|| {
            // If the model never calls the tool, the CLI reports success (recording `structured_never`).
            (self.has_schema && structured.is_none() && !interrupted).then(|| {
                Failure::new(ErrorCode::StructuredOutput, "the model returned no output that matches the schema")
            })
        });
        // The CLI reports `stop_sequence` for its own synthetic messages, which is not a stop reason of the model.
        let stop_reason = match &failure {
            Some(_) if line.stop_reason.as_deref() == Some("stop_sequence") => self.stop_reason.clone(),
            _ => {
                let reported = line.stop_reason.as_deref().map(StopReason::from);
                reported.or_else(|| self.stop_reason.clone()).or_else(|| of_subtype(&line.subtype, failure.is_some()))
            }
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
        let window = line.model_usage.as_ref().and_then(|models| self.window_of(models));
        Outcome {
            failure,
            classified_by,
            limit_end: reported.limit_end,
            context: self.context_tokens.map(|used| ContextUse::new(used, window)),
            interrupted,
            session_id,
            usage: spent.usage.map(|usage| (usage, UsageScope::Run)),
            total_cost_usd: spent.cost_usd,
            api_duration_ms: spent.api_ms,
            num_turns: Some(self.num_turns),
            stop_reason,
            permission_denials: self.denials.clone(),
            structured_output: structured,
            model: self.model.clone().or(only_model),
        }
    }

    /// Returns the context window of the main loop's model.
    fn window_of(&self, models: &ModelUsages) -> Option<u64> {
        let only = models.values().next().filter(|_| models.len() == 1);
        self.model.as_ref().and_then(|model| models.get(model)).or(only)?.context_window
    }
}

/// Returns the stop reason of a result that has none and whose messages had none. An API error has the subtype `success`.
fn of_subtype(subtype: &str, is_error: bool) -> Option<StopReason> {
    match subtype {
        "" => None,
        "success" => (!is_error).then_some(StopReason::EndTurn),
        other => Some(other.into()),
    }
}
