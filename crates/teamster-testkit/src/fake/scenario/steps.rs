//! The turns and steps of a scenario, as they are written in its file.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    pub(super) steps: Vec<Step>,
}

/// One step of a turn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Step {
    /// The model thinks. The output shows it if the CLI does.
    Think(String),
    /// A message of the model. `{prompt}` is replaced by the turn's prompt.
    #[serde(rename = "say")]
    Text(String),
    /// A command, run with the agent's own shell tool.
    Run(CommandRun),
    /// A call of another tool, by the agent's own name for it, or `mcp__SERVER__TOOL` for a tool of
    /// an MCP server.
    Tool(ToolUse),
    WaitMs(u64),
    /// A pause until this file exists.
    WaitForFile(PathBuf),
    /// The turn fails with this HTTP status of the provider.
    Fail(ProviderFailure),
    /// The process exits during the turn.
    Exit(i32),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandRun {
    pub(super) command: String,
    #[serde(default)]
    pub(super) output: String,
    /// The time before each line of the output, in milliseconds. Some interfaces report each line at once.
    #[serde(default, rename = "lineMs")]
    pub(super) line_ms: u64,
    /// The command's exit code.
    #[serde(default)]
    pub(super) exit: i32,
    /// The command runs until this file exists.
    #[serde(default, rename = "waitForFile")]
    pub(super) wait_for_file: Option<PathBuf>,
    /// Whether the agent requests permission first.
    #[serde(default)]
    pub(super) ask: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolUse {
    pub(super) name: String,
    #[serde(default)]
    pub(super) input: Map<String, Value>,
    #[serde(default)]
    pub(super) output: String,
    #[serde(default)]
    pub(super) failed: bool,
    #[serde(default)]
    pub(super) ask: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderFailure {
    pub(super) status: u16,
    pub(super) message: String,
}

/// Splits `mcp__SERVER__TOOL` into server and tool.
pub(super) fn split_mcp_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}
