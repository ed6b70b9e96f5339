//! Permission requests and their answers.

use serde::{Deserialize, Deserializer, Serialize};

use super::{AnsweredBy, PermissionDecision, PermissionOptionKind, RequestId, ToolId, ToolKind};
use crate::json::RawJson;
use crate::text::UntrustedText;

/// A request of the agent for permission to call a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The id to name in the answer.
    pub request_id: RequestId,
    /// The waiting call, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// The tool's name as rules name it: the agent's own name, or `mcp__SERVER__TOOL` if the server is known.
    pub tool_name: UntrustedText,
    /// The kind of work that the tool does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The MCP server of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<UntrustedText>,
    /// The tool call that started the subagent; absent on the main thread, or if the agent does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
    /// The requested permission as the agent names it, if one call can need several: `edit`, `external_directory`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<UntrustedText>,
    /// The paths, patterns or commands that the permission covers, if the agent reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<UntrustedText>,
    /// The arguments.
    pub input: RawJson,
    /// The time at which an unanswered request is denied (RFC 3339, UTC); absent without a limit. The turn may end
    /// earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<UntrustedText>,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
}

impl PermissionRequest {
    /// Creates a request with only the required fields.
    pub fn new(request_id: RequestId, tool_name: impl Into<UntrustedText>, input: RawJson) -> Self {
        Self {
            request_id,
            tool_id: None,
            tool_name: tool_name.into(),
            kind: None,
            server: None,
            parent_tool_id: None,
            permission: None,
            targets: Vec::new(),
            input,
            deadline: None,
            options: Vec::new(),
        }
    }
}

/// A possible answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionOption {
    /// The id to name in the answer.
    pub option_id: UntrustedText,
    /// The name for people.
    pub name: UntrustedText,
    /// Its effect.
    pub kind: PermissionOptionKind,
}

/// The answer to a permission request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionAnswered {
    /// The request's id.
    pub request_id: RequestId,
    /// The decision that the agent received. It may permit less than the given answer, if the agent does not support that.
    pub decision: PermissionDecision,
    /// Who or what answered.
    pub by: AnsweredBy,
    /// The chosen option, if it was chosen by id or the agent expects one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<UntrustedText>,
    /// The reason, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<UntrustedText>,
    /// The tool's arguments, if the answer changed them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_too")]
    pub input: Option<RawJson>,
    /// The request itself, if it was answered at once and no `permission_request` was emitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<PermissionRequest>>,
}

impl PermissionAnswered {
    /// Creates an answer with only the required fields.
    pub fn new(request_id: RequestId, decision: PermissionDecision, by: AnsweredBy) -> Self {
        Self { request_id, decision, by, option_id: None, message: None, input: None, request: None }
    }

    /// Creates the answer to a request that is not emitted.
    pub fn automatic(request: Box<PermissionRequest>, decision: PermissionDecision, by: AnsweredBy) -> Self {
        Self { request: Some(request.clone()), ..Self::new(request.request_id, decision, by) }
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(mut self, message: impl Into<UntrustedText>) -> Self {
        self.message = Some(message.into());
        self
    }
}

impl From<PermissionAnswered> for super::Event {
    fn from(answered: PermissionAnswered) -> Self {
        Self::PermissionAnswered(Box::new(answered))
    }
}

/// Deserializes a present field; `null` is a value.
fn null_too<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}
