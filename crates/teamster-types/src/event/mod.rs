//! The events of a run: one stream with one meaning for every agent.
//!
//! In JSON an event is one object. Its `type` is in `snake_case`, its other fields are in `camelCase`. A field without a known
//! value is omitted; it is never null and never invented. The transcript enforces the rules of the stream: one `done`, which is
//! last, and one result for each tool call.

mod answer;
mod codes;
mod constructors;
mod credential;
mod failure;
mod permission;
mod read;
mod result;
mod tool;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use answer::AnswerView;
pub use codes::{
    AnsweredBy, ErrorCode, PermissionDecision, PermissionOptionKind, PlanStatus, RateLimitStatus, StopReason, ToolKind,
    UsageScope, WarningCode,
};
pub use credential::{Credential, CredentialKind};
pub use failure::RunFailure;
pub use permission::{PermissionAnswered, PermissionOption, PermissionRequest};
pub use result::{ContextUse, LeftProcess, PermissionDenial, RunResult, Usage};
pub use tool::{ToolOutput, ToolResult, ToolUse};

use crate::json::RawJson;
use crate::names::id;
use crate::text::UntrustedText;

id! {
    /// The agent's own id of a conversation that it stores.
    SessionId
}
id! {
    /// The id of a message of the model.
    MessageId
}
id! {
    /// The id of a tool call.
    ToolId
}
id! {
    /// The id of an agent's request that waits for an answer.
    RequestId
}
id! {
    /// The id of a text that the caller sends, as a turn or within one. It is a UUID, since an agent may store it.
    SteerId
}

/// An event of a run.
///
/// Deserialization keeps an event of an unknown type as [`Event::Unknown`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The agent reported its identity and session; at most once per run.
    Init(Box<Init>),
    /// A delta of the answer, in order. A new message id starts a new message.
    Text(Delta),
    /// A delta of the reasoning that the agent shows.
    Thinking(Delta),
    /// The text of this message so far is void. The agent's connection broke and it streams the message again, or the run is
    /// retried.
    Retract(Retract),
    /// The agent calls a tool. Emitted once per call, complete, before the result.
    ToolUse(Box<ToolUse>),
    /// A part of a running tool's output: after its `tool_use` and before its `tool_result`. Only some agents report it.
    ToolOutput(ToolOutput),
    /// The result of a tool call: exactly one for each `tool_use`, after it.
    ToolResult(Box<ToolResult>),
    /// The agent waits for permission (sessions only).
    PermissionRequest(Box<PermissionRequest>),
    /// A permission request was answered: exactly one for each `permission_request`, after it. A request that a rule or the mode
    /// answered has no `permission_request`; this event contains it.
    PermissionAnswered(Box<PermissionAnswered>),
    /// The agent asks its user a question (sessions only).
    Question(Box<Question>),
    /// The agent's whole to-do list, each time it changes.
    Plan(Plan),
    /// The run waits in the queue of concurrent runs. Emitted again when its position changes, at most once a second.
    Queued(Queued),
    /// Tokens used so far, if the agent reports them before the end.
    Usage(Box<UsageSoFar>),
    /// The vendor limits requests, or warns about a limit.
    RateLimit(Box<RateLimit>),
    /// A problem that does not end the run.
    Warning(Box<Warning>),
    /// The run failed; before `done`.
    Error(Box<Failure>),
    /// The end of the run: exactly one, always last.
    Done(Box<Done>),
    /// An event of a newer version with an unknown type: the whole object. Only deserialization produces it.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown(RawJson),
}

/// A run's position in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Queued {
    /// The position; 1 is the next run to start.
    pub position: u64,
}

/// The agent's identity, session and tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Init {
    /// The agent's name in Teamster: `claude`, `codex`, ...
    pub agent: String,
    /// The session.
    pub session_id: SessionId,
    /// The model that the agent reported at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<UntrustedText>,
    /// The CLI's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<UntrustedText>,
    /// The agent's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The tools that the agent offers its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<UntrustedText>>,
    /// The MCP servers with their states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<McpServerState>>,
    /// The credential that the agent uses, if it is known. Its account or plan is billed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Credential>,
}

impl Init {
    /// Creates an init event with the fields that every agent reports.
    pub fn new(agent: impl Into<String>, session_id: SessionId) -> Self {
        Self {
            agent: agent.into(),
            session_id,
            model: None,
            agent_version: None,
            cwd: None,
            tools: None,
            mcp_servers: None,
            credential: None,
        }
    }
}

/// The state of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpServerState {
    /// The server's name in the configuration.
    pub name: UntrustedText,
    /// Its state, named as the agent names it: `connected`, `failed`, `pending`, ...
    pub status: UntrustedText,
}

/// A text delta.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Delta {
    /// The text, never empty.
    pub text: UntrustedText,
    /// The message to which it belongs.
    pub message_id: MessageId,
    /// The tool call that started the subagent; absent on the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
}

/// A retraction of a message's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Retract {
    /// The message whose text is void.
    pub message_id: MessageId,
}

/// Questions of the agent to its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Question {
    /// The id to name in the answer.
    pub request_id: RequestId,
    /// One or more questions.
    pub questions: Vec<QuestionItem>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QuestionItem {
    /// The id to name in the answer.
    pub id: UntrustedText,
    /// The question's text.
    pub text: UntrustedText,
    /// The choices; empty for a free answer.
    pub options: Vec<QuestionOption>,
    /// Whether several choices are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
    /// The question's topic in one or two words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<UntrustedText>,
}

/// A choice of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QuestionOption {
    /// The choice's name.
    pub label: UntrustedText,
    /// An explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<UntrustedText>,
}

/// The agent's to-do list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Plan {
    /// The steps, in order.
    pub entries: Vec<PlanEntry>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PlanEntry {
    /// The step's description.
    pub content: UntrustedText,
    /// The step's state.
    pub status: PlanStatus,
}

/// Tokens used so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageSoFar {
    /// The numbers of tokens.
    pub usage: Usage,
    /// The scope that the numbers cover.
    pub scope: UsageScope,
}

/// A rate limit of the vendor, or a warning about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RateLimit {
    /// Whether requests are rejected or only a warning is given.
    pub status: RateLimitStatus,
    /// The time at which the limit ends (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<UntrustedText>,
    /// The vendor's name of the limit, such as `five_hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<UntrustedText>,
}

/// A problem that does not end the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Warning {
    /// The text for people.
    pub message: UntrustedText,
    /// The stable code.
    pub code: WarningCode,
    /// Values that belong to the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, Value>>,
}

impl Warning {
    /// Creates a warning without data.
    pub fn new(code: WarningCode, message: impl Into<UntrustedText>) -> Self {
        Self { message: message.into(), code, data: None }
    }

    /// Adds a value.
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

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failure {
    /// The text for people: what happened and, if known, what to do.
    pub message: UntrustedText,
    /// The stable code.
    pub code: ErrorCode,
    /// Whether the same request may succeed within seconds or a few minutes. An exhausted quota is not retryable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Done {
    /// The result of the run.
    pub result: RunResult,
}
