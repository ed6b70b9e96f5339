//! Permission requests and their answers.

use serde::{Deserialize, Deserializer, Serialize};

use super::{AnsweredBy, PermissionDecision, PermissionOptionKind, RequestId, ToolId, ToolKind};
use crate::json::RawJson;
use crate::text::UntrustedText;

/// The agent waits for leave to call a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// Names the request in the answer.
    pub request_id: RequestId,
    /// The call that waits, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// The name of the tool, as a rule names it: the agent's name of it, or `mcp__SERVER__TOOL` where the server is known.
    pub tool_name: UntrustedText,
    /// What sort of work the tool does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The MCP server that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<UntrustedText>,
    /// The tool call of the subagent that asks; absent on the main thread, and where the agent does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
    /// What is asked for, in the agent's words, where one call may ask for several things: `edit`, `external_directory`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<UntrustedText>,
    /// What the permission is for, where the agent tells: paths, patterns or commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<UntrustedText>,
    /// The arguments.
    pub input: RawJson,
    /// When the request is denied if it was not answered before (RFC 3339, UTC); absent where that has no limit. The turn
    /// may end before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<UntrustedText>,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
}

impl PermissionRequest {
    /// A request of which no more is known.
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
pub struct PermissionOption {
    /// Names the option in the answer.
    pub option_id: UntrustedText,
    /// For people to read.
    pub name: UntrustedText,
    /// What it does.
    pub kind: PermissionOptionKind,
}

/// A permission request was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionAnswered {
    /// The request.
    pub request_id: RequestId,
    /// What the agent was answered. It may be less than the answer that was given, where the agent cannot take that.
    pub decision: PermissionDecision,
    /// Who gave the answer.
    pub by: AnsweredBy,
    /// The option that was chosen, where one was chosen by its id or the agent takes the answer as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<UntrustedText>,
    /// Why, where a reason was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<UntrustedText>,
    /// What the tool is called with, where the answer has changed that.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_too")]
    pub input: Option<RawJson>,
    /// The request, where no `permission_request` was emitted for it, since it never waited for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<PermissionRequest>>,
}

impl PermissionAnswered {
    /// An answer of which no more is known.
    pub fn new(request_id: RequestId, decision: PermissionDecision, by: AnsweredBy) -> Self {
        Self { request_id, decision, by, option_id: None, message: None, input: None, request: None }
    }

    /// The answer to a request that was never emitted.
    pub fn unasked(request: Box<PermissionRequest>, decision: PermissionDecision, by: AnsweredBy) -> Self {
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

/// Reads a field that may be `null`, and is there.
fn null_too<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}
