//! Messages of `codex app-server` 0.169.0: the fields that are used. Unknown fields are skipped. Methods are strings.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::line::{Text, if_readable};

/// The answer to `thread/start`, `thread/resume` and `thread/fork`.
#[derive(Debug, Deserialize)]
pub(super) struct ThreadAnswer {
    pub(super) thread: ThreadInfo,
    pub(super) model: Option<String>,
    pub(super) cwd: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadInfo {
    pub(super) id: String,
    pub(super) cli_version: Option<String>,
    pub(super) model: Option<String>,
}

/// The answer to `thread/read`.
#[derive(Debug, Deserialize)]
pub(super) struct ReadAnswer {
    pub(super) thread: ThreadInfo,
}

/// The answer to `thread/list`.
#[derive(Debug, Deserialize)]
pub(super) struct ListAnswer {
    pub(super) data: Vec<ThreadInfo>,
}

/// The thread and the turn of a notification. Some have no thread, and some have no turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) turn_id: Option<Text<'a>>,
}

/// `turn/started`, `turn/completed`, and the answer to `turn/start`.
#[derive(Debug, Deserialize)]
pub(super) struct TurnLine {
    pub(super) turn: TurnInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct TurnInfo {
    pub(super) id: String,
    #[serde(default)]
    pub(super) status: String,
    pub(super) error: Option<TurnError>,
}

/// The answer to `thread/turns/list`.
#[derive(Debug, Deserialize)]
pub(super) struct TurnList {
    pub(super) data: Vec<TurnInfo>,
}

/// The answer to `thread/read` with turns.
#[derive(Debug, Deserialize)]
pub(super) struct ReadTurns {
    pub(super) thread: ThreadTurns,
}

#[derive(Debug, Deserialize)]
pub(super) struct ThreadTurns {
    #[serde(default)]
    pub(super) turns: Vec<TurnInfo>,
}

/// `thread/status/changed`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusLine<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Text<'a>,
    #[serde(borrow)]
    pub(super) status: ThreadStatus<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ThreadStatus<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
}

/// Why a turn failed, or an error within it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnError {
    #[serde(default)]
    pub(super) message: String,
    /// A name, or an object whose only field has this name.
    pub(super) codex_error_info: Option<Value>,
    pub(super) additional_details: Option<String>,
}

/// `error`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorLine {
    pub(super) error: TurnError,
    #[serde(default)]
    pub(super) will_retry: bool,
}

/// `item/started`, `item/completed`
#[derive(Debug, Deserialize)]
pub(super) struct ItemLine<'a> {
    #[serde(borrow)]
    pub(super) item: &'a RawValue,
}

/// A complete message, or a complete summary of reasoning.
#[derive(Debug, Deserialize)]
pub(super) struct MessageItem<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    pub(super) text: Option<String>,
    /// `commentary` before more work, `final_answer`, or unknown.
    #[serde(borrow, default)]
    pub(super) phase: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) summary: Vec<String>,
}

/// A delta of a message, or of a summary of reasoning.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeltaLine<'a> {
    #[serde(borrow)]
    pub(super) item_id: Text<'a>,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
    #[serde(default)]
    pub(super) summary_index: u64,
}

/// `turn/plan/updated`
#[derive(Debug, Deserialize)]
pub(super) struct PlanLine {
    pub(super) plan: Vec<Step>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) step: String,
    #[serde(default)]
    pub(super) status: String,
}

/// `thread/tokenUsage/updated`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageLine {
    pub(super) token_usage: TokenUsage,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    /// The whole thread.
    pub(super) total: Tokens,
    /// The last call of the model.
    pub(super) last: Tokens,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) model_context_window: Option<u64>,
}

/// Cached tokens are part of `inputTokens`, reasoning is part of `outputTokens`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: Option<u64>,
    pub(super) cache_write_input_tokens: Option<u64>,
    pub(super) output_tokens: u64,
    pub(super) reasoning_output_tokens: Option<u64>,
}

/// `mcpServer/startupStatus/updated`
#[derive(Debug, Deserialize)]
pub(super) struct ServerLine {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) error: Option<String>,
}

/// `warning`, `guardianWarning`, `configWarning` and `deprecationNotice`: some have a message, and some have a summary.
#[derive(Debug, Deserialize)]
pub(super) struct NoticeLine {
    pub(super) message: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) details: Option<String>,
}

/// `hook/completed`
#[derive(Debug, Deserialize)]
pub(super) struct HookLine {
    pub(super) run: HookRun,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HookRun {
    pub(super) event_name: String,
    pub(super) status: String,
    #[serde(default)]
    entries: Vec<HookEntry>,
}

#[derive(Debug, Deserialize)]
struct HookEntry {
    text: String,
}

impl HookRun {
    /// Whether the hook stopped the agent, or blocked what the agent was about to do.
    pub(super) fn has_stopped(&self) -> bool {
        matches!(self.status.as_str(), "stopped" | "blocked")
    }

    /// Returns what the hook did, with its reason.
    pub(super) fn describe(&self, what: &str) -> String {
        let texts: Vec<_> =
            self.entries.iter().map(|entry| entry.text.trim()).filter(|text| !text.is_empty()).collect();
        let end = if texts.is_empty() { String::new() } else { format!(": {}", texts.join("; ")) };
        format!("the hook {} {what}{end}", self.event_name)
    }
}

/// `model/rerouted`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReroutedLine {
    pub(super) from_model: String,
    pub(super) to_model: String,
}

/// `account/rateLimits/updated`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LimitsLine {
    pub(super) rate_limits: Limits,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Limits {
    pub(super) limit_id: Option<String>,
    pub(super) primary: Option<Window>,
    pub(super) secondary: Option<Window>,
    pub(super) rate_limit_reached_type: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Window {
    #[serde(default)]
    pub(super) used_percent: i64,
    /// Seconds since 1970-01-01 (UTC).
    pub(super) resets_at: Option<i64>,
}

/// `serverRequest/resolved`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResolvedLine {
    pub(super) request_id: Value,
}
