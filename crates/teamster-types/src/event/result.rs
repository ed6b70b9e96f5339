//! The result of a run, which `done` contains, and token usage.

use serde::{Deserialize, Serialize};

use super::{ErrorCode, Failure, SessionId, StopReason, ToolId, UsageScope};
use crate::json::RawJson;
use crate::text::UntrustedText;

/// Numbers of tokens, with one meaning for every agent.
///
/// Agents count differently; each protocol converts its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input_tokens: u64,
    /// Prompt tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Prompt tokens written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All generated tokens, reasoning included.
    pub output_tokens: u64,
    /// The part of the generated tokens that is reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Returns a count without cached tokens and without a number of reasoning tokens.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, ..Self::default() }
    }

    /// Sets the tokens that were read from and written to a cache.
    #[must_use]
    pub fn with_cache(mut self, read: Option<u64>, written: Option<u64>) -> Self {
        (self.cache_read_tokens, self.cache_write_tokens) = (read, written);
        self
    }

    /// Sets the part of the generated tokens that is reasoning.
    #[must_use]
    pub fn with_reasoning(mut self, tokens: Option<u64>) -> Self {
        self.reasoning_tokens = tokens;
        self
    }

    /// Returns whether all numbers are zero.
    pub fn is_zero(&self) -> bool {
        let optional = [self.cache_read_tokens, self.cache_write_tokens, self.reasoning_tokens];
        self.input_tokens == 0 && self.output_tokens == 0 && optional.iter().all(|count| count.unwrap_or(0) == 0)
    }

    /// Returns the tokens that were counted since an earlier count of the same scope.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then.unwrap_or(0)));
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            cache_read_tokens: less(self.cache_read_tokens, earlier.cache_read_tokens),
            cache_write_tokens: less(self.cache_write_tokens, earlier.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            reasoning_tokens: less(self.reasoning_tokens, earlier.reasoning_tokens),
        }
    }
}

impl Usage {
    /// Returns the sum of all tokens. Reasoning is part of the output.
    pub fn total(&self) -> u64 {
        [self.cache_read_tokens, self.cache_write_tokens, Some(self.output_tokens)]
            .into_iter()
            .flatten()
            .fold(self.input_tokens, u64::saturating_add)
    }
}

impl std::ops::AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        fn add(sum: &mut Option<u64>, more: Option<u64>) {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

/// How much of the model's context window the conversation uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextUse {
    /// The tokens of the last model call of the main thread: its prompt, cached or not, and its answer.
    pub used_tokens: u64,
    /// The size of the context window, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
}

impl ContextUse {
    /// Creates a use.
    pub fn new(used_tokens: u64, window_tokens: Option<u64>) -> Self {
        Self { used_tokens, window_tokens }
    }
}

/// A tool call that the permissions denied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionDenial {
    /// The tool's name as the agent names it.
    pub tool_name: UntrustedText,
    /// The denied call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// The arguments of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<RawJson>,
}

/// The result of a run. Unknown values are omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunResult {
    /// The messages of the main thread without retracted deltas, separated by blank lines; at most the last 16 MiB.
    pub text: UntrustedText,
    /// The last message alone, as a chat shows it. It is a suffix of `text`.
    pub final_text: UntrustedText,
    /// Whether the beginning of `text` is missing because it was too long. The deltas are complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text_truncated: bool,
    /// The number of missing bytes at the beginning of `text`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub text_missing_bytes: u64,
    /// The session to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Wall time of the run in milliseconds, from the start of the process to its end. For a retried run it includes all
    /// attempts and the waits between them.
    pub duration_ms: u64,
    /// Tokens of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The scope that `usage` covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_scope: Option<UsageScope>,
    /// How much of the model's context window is used, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// The cost in US dollars, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
    /// The time that the agent waited for its vendor, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_duration_ms: Option<u64>,
    /// The number of turns as the agent counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_turns: Option<u64>,
    /// Why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Whether the caller ended the run early.
    pub aborted: bool,
    /// Whether the run failed. In that case an `error` event precedes `done`.
    pub is_error: bool,
    /// The error of a failed run, as the `error` event emitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<Failure>>,
    /// The code of `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// Tool calls that the permissions denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permission_denials: Vec<PermissionDenial>,
    /// The document that matches the request's JSON schema, as the agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<RawJson>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<UntrustedText>,
    /// The CLI's exit code, unless a signal killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The name of the signal that killed the CLI, such as `SIGKILL`. A server that cannot exit by itself is killed at the end
    /// of the run; it has neither a signal nor an exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The end of the CLI's standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<UntrustedText>,
    /// Processes of the run that are still alive: kept on request, or impossible to kill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_processes: Vec<LeftProcess>,
}

/// A process that outlived its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LeftProcess {
    /// The process id.
    pub pid: u32,
    /// The first 15 bytes of the program's name.
    pub name: UntrustedText,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
