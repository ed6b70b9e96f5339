//! What a run says: one stream of events with one meaning, whichever agent it comes from.
//!
//! In JSON an event is one object whose `type` is in `snake_case`, its other fields in `camelCase`. A field that is unknown
//! is left out, never null and never made up. The rules of the stream (one `done`, last; one result for each tool call)
//! are kept by [`Transcript`](crate::transcript::Transcript).

mod codes;
mod permission;
mod read;
mod result;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use codes::{
    AnsweredBy, ErrorCode, PermissionDecision, PermissionOptionKind, PlanStatus, RateLimitStatus, StopReason, ToolKind,
    UsageScope, WarningCode,
};
pub use permission::{PermissionAnswered, PermissionOption, PermissionRequest};
pub use result::{LeftProcess, PermissionDenial, RunResult, Usage};

use crate::json::RawJson;
use crate::names::id;
use crate::text::UntrustedText;

id! {
    /// A conversation that the agent keeps, as the agent names it.
    SessionId
}
id! {
    /// One message of the model.
    MessageId
}
id! {
    /// One call of a tool.
    ToolId
}
id! {
    /// A request of the agent that waits for an answer.
    RequestId
}
id! {
    /// Words of the caller's, said as a turn or within one. A UUID, since an agent may keep it with them.
    SteerId
}

/// One thing that happened in a run.
///
/// Reading one back keeps an event of a type that this version does not know, as [`Event::Unknown`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The agent has said who it is; at most one a run.
    Init(Box<Init>),
    /// A delta of the answer, in order; a new message id begins a new message.
    Text(Delta),
    /// A delta of reasoning that the agent shows.
    Thinking(Delta),
    /// What was streamed of this message is void: the agent's connection broke and it says it again, or the whole run is
    /// started again.
    Retract(Retract),
    /// The agent calls a tool; once, complete, before its result.
    ToolUse(Box<ToolUse>),
    /// A call's outcome: exactly one for each `tool_use`, always after it.
    ToolResult(Box<ToolResult>),
    /// The agent waits for leave to do something (sessions only).
    PermissionRequest(Box<PermissionRequest>),
    /// A permission request was answered: exactly one for each `permission_request`, after it. One that was answered without
    /// being asked (by a rule, by the mode) has no `permission_request`, and is in this event.
    PermissionAnswered(Box<PermissionAnswered>),
    /// The agent asks its user something (sessions only).
    Question(Box<Question>),
    /// The agent's to-do list, whole, each time it changes.
    Plan(Plan),
    /// The run waits for a place among those that the host lets run at once; again when its position has changed, at most
    /// once a second.
    Queued(Queued),
    /// Tokens so far, where the agent tells before the end.
    Usage(UsageSoFar),
    /// The vendor limits us, or warns.
    RateLimit(Box<RateLimit>),
    /// Worth knowing, not fatal.
    Warning(Box<Warning>),
    /// The run failed; always before `done`.
    Error(Box<Failure>),
    /// Exactly one, always, always last.
    Done(Box<Done>),
    /// An event of a newer version, whose type this version does not know: the whole object. Only reading gives one.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown(RawJson),
}

/// A run's place in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// 1 is the next to run.
    pub position: u64,
}

/// Who the agent is and what it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Init {
    /// The agent's name in Teamster: `claude`, `codex`, ...
    pub agent: String,
    /// The conversation.
    pub session_id: SessionId,
    /// The model that the agent set out to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<UntrustedText>,
    /// The CLI's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<UntrustedText>,
    /// The directory that the agent works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The tools that the agent offers its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<UntrustedText>>,
    /// MCP servers and their state, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<McpServerState>>,
}

impl Init {
    /// An init with what every agent knows.
    pub fn new(agent: impl Into<String>, session_id: SessionId) -> Self {
        Self {
            agent: agent.into(),
            session_id,
            model: None,
            agent_version: None,
            cwd: None,
            tools: None,
            mcp_servers: None,
        }
    }
}

/// How an MCP server fares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServerState {
    /// The server's name in the configuration.
    pub name: UntrustedText,
    /// The agent's word for its state: `connected`, `failed`, `pending`, ...
    pub status: UntrustedText,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The text, never empty.
    pub text: UntrustedText,
    /// The message that it belongs to.
    pub message_id: MessageId,
    /// The tool call of the subagent that speaks; absent on the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
}

/// Takes back what was streamed of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Retract {
    /// The message that is void.
    pub message_id: MessageId,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    /// The call.
    pub tool_id: ToolId,
    /// The agent's own name of the tool, without the prefix that marks MCP tools.
    pub tool_name: UntrustedText,
    /// The arguments: any JSON; a string where the model wrote none that parses.
    pub input: RawJson,
    /// What sort of work it is.
    pub kind: ToolKind,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<UntrustedText>,
    /// The tool call of the subagent that calls; absent on the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
}

/// The outcome of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call.
    pub tool_id: ToolId,
    /// The outcome as plain text.
    pub output: UntrustedText,
    /// Whether the call failed, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The outcome's blocks in MCP's form, where it is more than text (images), as the agent wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<RawJson>>,
    /// The tool call of the subagent that called; absent on the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
}

/// The agent asks its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Names the request in the answer.
    pub request_id: RequestId,
    /// One or more questions.
    pub questions: Vec<QuestionItem>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuestionItem {
    /// Names the question in the answer.
    pub id: UntrustedText,
    /// What is asked.
    pub text: UntrustedText,
    /// The choices; none for a free answer.
    pub options: Vec<QuestionOption>,
    /// Whether several choices may be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuestionOption {
    /// What is chosen.
    pub label: UntrustedText,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<UntrustedText>,
}

/// The agent's to-do list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Its steps, in order.
    pub entries: Vec<PlanEntry>,
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry {
    /// What is to be done.
    pub content: UntrustedText,
    /// How far it is.
    pub status: PlanStatus,
}

/// Tokens so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageSoFar {
    /// The figures.
    pub usage: Usage,
    /// What they add up.
    pub scope: UsageScope,
}

/// The vendor limits us, or warns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// How hard the limit is.
    pub status: RateLimitStatus,
    /// When the limit ends, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<UntrustedText>,
    /// Which limit, in the vendor's words (`five_hour`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<UntrustedText>,
}

/// Worth knowing, not fatal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// For people to read.
    pub message: UntrustedText,
    /// What it is about.
    pub code: WarningCode,
    /// Figures and names that belong to the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, Value>>,
}

impl Warning {
    /// A warning without data.
    pub fn new(code: WarningCode, message: impl Into<UntrustedText>) -> Self {
        Self { message: message.into(), code, data: None }
    }

    /// Adds a figure or a name.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.get_or_insert_with(BTreeMap::new).insert(key.to_owned(), value.into());
        self
    }
}

impl From<Warning> for Event {
    fn from(warning: Warning) -> Self {
        Self::Warning(Box::new(warning))
    }
}

/// Why the run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// For people to read: what happened, and what to do where we know.
    pub message: UntrustedText,
    /// The stable name.
    pub code: ErrorCode,
    /// Whether the same request may well work in a moment: after seconds, at most minutes. A quota that is used up comes
    /// back later, and is not meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

impl Failure {
    /// A failure that is as retryable as its code.
    pub fn new(code: ErrorCode, message: impl Into<UntrustedText>) -> Self {
        Self { message: message.into(), retryable: Some(code.is_transient()), code }
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// What the run came to.
    pub result: RunResult,
}
