//! The events of a tool call.

use serde::{Deserialize, Serialize};

use super::{ToolId, ToolKind};
use crate::json::RawJson;
use crate::text::UntrustedText;

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUse {
    /// The call's id.
    pub tool_id: ToolId,
    /// The tool's name as the agent names it, without the prefix of MCP tools.
    pub tool_name: UntrustedText,
    /// The arguments: any JSON value; a string if the model wrote invalid JSON.
    pub input: RawJson,
    /// The kind of work.
    pub kind: ToolKind,
    /// The MCP server of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<UntrustedText>,
    /// The tool call that started the subagent; absent on the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
}

/// A part of the output of a running tool, in order.
///
/// It is a preview: parts may be missing. The `tool_result` has the whole output. Codex (0.169.0, app-server) and OpenCode
/// (1.18.33) report it for commands, and some ACP agents do. At most 1 MiB of a call is emitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutput {
    /// The call's id.
    pub tool_id: ToolId,
    /// The text, never empty.
    pub text: UntrustedText,
    /// The tool call that started the subagent; absent on the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResult {
    /// The call's id.
    pub tool_id: ToolId,
    /// The result as plain text.
    pub output: UntrustedText,
    /// Whether the call failed, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The exit code of a command, if the agent reports it. Codex and OpenCode report it always, Claude Code (2.1.197) if it is
    /// not 0, Gemini CLI never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The result as MCP content blocks, if it is more than text (images). Each block is the agent's exact JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<RawJson>>,
    /// The tool call that started the subagent; absent on the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<ToolId>,
}

impl ToolUse {
    /// Creates a call of a tool of the agent itself, on the main thread.
    pub fn new(
        tool_id: impl Into<ToolId>,
        tool_name: impl Into<UntrustedText>,
        input: RawJson,
        kind: ToolKind,
    ) -> Self {
        Self { tool_id: tool_id.into(), tool_name: tool_name.into(), input, kind, server: None, parent_tool_id: None }
    }

    /// Sets the MCP server of the tool.
    #[must_use]
    pub fn with_server(self, server: Option<UntrustedText>) -> Self {
        Self { server, ..self }
    }

    /// Sets the tool call that started the subagent; `None` on the main thread.
    #[must_use]
    pub fn with_parent(self, parent_tool_id: Option<ToolId>) -> Self {
        Self { parent_tool_id, ..self }
    }
}

impl ToolOutput {
    /// Creates a part of a call's output, on the main thread. The text must not be empty.
    pub fn new(tool_id: impl Into<ToolId>, text: impl Into<UntrustedText>) -> Self {
        Self { tool_id: tool_id.into(), text: text.into(), parent_tool_id: None }
    }

    /// Sets the tool call that started the subagent; `None` on the main thread.
    #[must_use]
    pub fn with_parent(self, parent_tool_id: Option<ToolId>) -> Self {
        Self { parent_tool_id, ..self }
    }
}

impl ToolResult {
    /// Creates the result of a call on the main thread, with text only.
    pub fn new(tool_id: impl Into<ToolId>, output: impl Into<UntrustedText>, is_error: Option<bool>) -> Self {
        Self {
            tool_id: tool_id.into(),
            output: output.into(),
            is_error,
            exit_code: None,
            content: None,
            parent_tool_id: None,
        }
    }

    /// Sets the exit code of a command.
    #[must_use]
    pub fn with_exit_code(self, exit_code: Option<i32>) -> Self {
        Self { exit_code, ..self }
    }

    /// Sets the content blocks of the result.
    #[must_use]
    pub fn with_content(self, content: Option<Vec<RawJson>>) -> Self {
        Self { content, ..self }
    }

    /// Sets the tool call that started the subagent; `None` on the main thread.
    #[must_use]
    pub fn with_parent(self, parent_tool_id: Option<ToolId>) -> Self {
        Self { parent_tool_id, ..self }
    }
}
