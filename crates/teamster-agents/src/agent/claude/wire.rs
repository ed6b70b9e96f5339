//! The lines that Claude Code 2.1.197 prints, with the fields that Teamster uses.
//!
//! Unknown fields are ignored, and unknown types are kept as text. A delta line is parsed once and borrows its text. Other lines
//! are parsed again into their own struct. The order of keys varies.

mod delta;
mod result;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) use self::delta::{DeltaKind, StreamDelta};
pub(super) use self::result::{ModelUsages, ResultLine};
use crate::agent::json_string::JsonString;
use crate::agent::line::{self, Text, if_readable};
use teamster_types::json::RawJson;

/// The fields of every line, and all fields of a `stream_event` line. A delta is most of what the CLI prints, so these types are
/// small: parsing moves them several times.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) kind: LineKind,
    #[serde(borrow)]
    pub(super) subtype: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) event: Option<StreamEvent<'a>>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) session_id: Option<Text<'a>>,
}

/// The `type` of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LineKind {
    StreamEvent,
    Assistant,
    User,
    System,
    Result,
    RateLimitEvent,
    ControlRequest,
    ControlCancelRequest,
    ControlResponse,
    KeepAlive,
    ToolProgress,
    #[serde(other)]
    Other,
}

/// An event of the Messages API's stream.
#[derive(Debug, Deserialize)]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type")]
    pub(super) kind: StreamEventKind,
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) delta: Option<StreamDelta<'a>>,
    /// A [`Block`].
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    /// A [`MessageHead`].
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    /// An [`ApiUsage`].
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

/// The `type` of an event of the Messages API's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamEventKind {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageHead<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
}

/// Tokens as the Messages API counts them: `input_tokens` does not include cached tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiUsage {
    pub(super) input_tokens: u64,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) output_tokens: u64,
}

/// `assistant` and `user` lines.
#[derive(Debug, Deserialize)]
pub(super) struct MessageLine<'a> {
    #[serde(borrow)]
    pub(super) message: Message<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) uuid: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) supersedes: Vec<Text<'a>>,
    /// What a tool returned, in the CLI's own form.
    #[serde(borrow)]
    pub(super) tool_use_result: Option<&'a RawValue>,
    /// Whether the line echoes a prompt.
    #[serde(default, rename = "isReplay")]
    pub(super) is_replay: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

/// A content block of a message. Its fields depend on `kind`.
#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) is_error: Option<bool>,
}

/// `system/init`.
#[derive(Debug, Deserialize)]
pub(super) struct InitLine {
    pub(super) session_id: String,
    pub(super) cwd: Option<String>,
    pub(super) model: Option<String>,
    pub(super) claude_code_version: Option<String>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) mcp_servers: Option<Vec<InitServer>>,
    /// The source of the API key; `none` with a login or a cloud.
    #[serde(default, rename = "apiKeySource", deserialize_with = "if_readable")]
    pub(super) api_key_source: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct InitServer {
    pub(super) name: String,
    pub(super) status: String,
}

/// The other `system/*` lines that are used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SystemLine {
    pub(super) attempt: Option<u64>,
    pub(super) max_retries: Option<u64>,
    pub(super) retry_delay_ms: Option<f64>,
    pub(super) error_status: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) error: Option<Value>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) content: Option<Value>,
    pub(super) original_model: Option<String>,
    pub(super) fallback_model: Option<String>,
    pub(super) compact_metadata: Option<CompactMetadata>,
    pub(super) retracted_message_uuids: Vec<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) task_id: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) tool_use_id: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) summary: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) output_file: Option<String>,
    /// Of `task_started`.
    #[serde(deserialize_with = "if_readable")]
    pub(super) description: Option<String>,
    /// Of `task_started`, by 2.1.332.
    #[serde(deserialize_with = "if_readable")]
    pub(super) is_backgrounded: bool,
    /// Of `task_updated`.
    #[serde(deserialize_with = "if_readable")]
    pub(super) patch: TaskPatch,
    /// Of `hook_response`: the event, with the tool (`PreToolUse:Bash`).
    #[serde(deserialize_with = "if_readable")]
    pub(super) hook_name: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) stdout: Option<String>,
    /// Of `informational`: a hook refused the prompt.
    #[serde(deserialize_with = "if_readable")]
    pub(super) prevent_continuation: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskPatch {
    #[serde(deserialize_with = "if_readable")]
    pub(super) is_backgrounded: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompactMetadata {
    pub(super) trigger: Option<String>,
    pub(super) pre_tokens: Option<u64>,
    pub(super) post_tokens: Option<u64>,
}

/// `rate_limit_event`.
#[derive(Debug, Deserialize)]
pub(super) struct RateLimitLine {
    pub(super) rate_limit_info: RateLimitInfo,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimitInfo {
    pub(super) status: String,
    /// Seconds since 1970.
    pub(super) resets_at: Option<i64>,
    pub(super) rate_limit_type: Option<String>,
}

/// `control_request`: a request of the CLI.
#[derive(Debug, Deserialize)]
pub(super) struct ControlRequestLine {
    pub(super) request_id: String,
    pub(super) request: ControlRequest,
}

/// The content of a request of the CLI. All fields except the first are those of `can_use_tool`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ControlRequest {
    pub(super) subtype: String,
    pub(super) tool_name: Option<String>,
    pub(super) input: RawJson,
    pub(super) tool_use_id: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) permission_suggestions: Vec<Value>,
    /// A path outside the directories in which the CLI may work.
    #[serde(deserialize_with = "if_readable")]
    pub(super) blocked_path: Option<String>,
}

/// `control_cancel_request`: the CLI has withdrawn its request.
#[derive(Debug, Deserialize)]
pub(super) struct ControlCancelLine {
    pub(super) request_id: String,
}

/// `control_response`: the answer to a request of Teamster.
#[derive(Debug, Deserialize)]
pub(super) struct ControlResponseLine {
    pub(super) response: ControlResponse,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ControlResponse {
    pub(super) subtype: String,
    pub(super) request_id: String,
    pub(super) error: Option<String>,
}

/// The fields that show to which turn a line belongs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnLine {
    #[serde(rename = "type", deserialize_with = "if_readable")]
    kind: String,
    #[serde(deserialize_with = "if_readable")]
    subtype: String,
    /// Of `system/session_state_changed`.
    #[serde(deserialize_with = "if_readable")]
    state: String,
    /// Of a `result`: the origin of the turn, if the turn was not started by a prompt.
    #[serde(deserialize_with = "if_readable")]
    origin: Option<Value>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) response: Option<CancelResponse>,
}

impl TurnLine {
    /// Parses a line. A line that cannot be parsed has no such fields.
    pub(super) fn of(line: &[u8]) -> Self {
        line::with_json(line, |text| serde_json::from_str(text)).unwrap_or_default()
    }

    pub(super) fn starts_turn(&self) -> bool {
        self.kind == "system" && self.subtype == "init"
    }

    pub(super) fn is_output(&self) -> bool {
        matches!(self.kind.as_str(), "stream_event" | "assistant" | "user")
    }

    pub(super) fn is_result(&self) -> bool {
        self.kind == "result"
    }

    /// Whether the CLI started the turn that ends with this result by itself.
    pub(super) fn is_of_agent(&self) -> bool {
        self.origin.is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.kind == "system" && self.subtype == "session_state_changed" && self.state == "idle"
    }
}

/// The answer to `cancel_async_message`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CancelResponse {
    pub(super) request_id: String,
    pub(super) response: Option<CancelResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CancelResult {
    #[serde(deserialize_with = "if_readable")]
    pub(super) cancelled: bool,
}
