//! What a run came to: the result inside `done`, and token usage.

use serde::{Deserialize, Serialize};

use super::{ErrorCode, SessionId, StopReason, ToolId, UsageScope};
use crate::json::RawJson;
use crate::text::UntrustedText;

/// Tokens, with one meaning for every agent.
///
/// Agents count differently; each protocol converts. All figures are counts of tokens.
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
    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        let optional = [self.cache_read_tokens, self.cache_write_tokens, self.reasoning_tokens];
        self.input_tokens == 0 && self.output_tokens == 0 && optional.iter().all(|count| count.unwrap_or(0) == 0)
    }
}

impl Usage {
    /// What was counted after another count of the same thing.
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

/// A tool call that the run's permissions refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionDenial {
    /// The agent's name of the tool.
    pub tool_name: UntrustedText,
    /// The refused call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// What the tool was to be called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<RawJson>,
}

/// What a run came to. Fields that are unknown are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunResult {
    /// Every text delta of the main thread that was not retracted, concatenated: its last 16 MiB, if it is longer.
    pub text: UntrustedText,
    /// The last message alone: what a chat shows. It is an end of `text`.
    pub final_text: UntrustedText,
    /// Whether `text` lacks its beginning, because it was too long. The deltas are complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text_truncated: bool,
    /// How many bytes `text` lacks at its beginning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub text_missing_bytes: u64,
    /// The session that holds the conversation, to resume it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Wall time of the run in milliseconds, measured by us from the start of the process to its end; with all attempts and
    /// waits of a run that was started again.
    pub duration_ms: u64,
    /// Tokens of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What `usage` adds up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_scope: Option<UsageScope>,
    /// Cost in US dollars, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
    /// Milliseconds that the agent waited for its vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_duration_ms: Option<u64>,
    /// Turns as the agent counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_turns: Option<u64>,
    /// Why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Whether the caller ended the run before the agent was done.
    pub aborted: bool,
    /// Whether the run failed. An `error` event stands before this `done` then.
    pub is_error: bool,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// Tool calls that the permissions refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permission_denials: Vec<PermissionDenial>,
    /// The document that the request's JSON schema asked for, as the agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<RawJson>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<UntrustedText>,
    /// The CLI's exit code, unless a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the CLI, by its name (`SIGKILL`). A server that cannot exit by itself, and was ended because the run was
    /// over, has neither this nor an exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The last of what the CLI wrote to its diagnostics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<UntrustedText>,
    /// Processes of the run that live on: such as were kept on request, and such as could not be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_processes: Vec<LeftProcess>,
}

/// A process that outlived its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeftProcess {
    /// Its process number.
    pub pid: u32,
    /// The first 15 bytes of its program's name.
    pub name: UntrustedText,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
