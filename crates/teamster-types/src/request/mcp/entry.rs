//! The JSON form of a server: a flat object, as in the configuration files of agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An MCP server: a program (`command`), or a URL (`url`).
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Entry {
    /// `stdio` with a command, `http` (the default with a URL) or `sse`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<Kind>,
    /// The program: a path, or a name that is searched in PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    /// The program's arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) args: Vec<String>,
    /// Variables that are added to the program's environment. Values are secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) env: BTreeMap<String, String>,
    /// The program's working directory. Default: that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// The URL of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// Headers of each request. Values are secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, String>,
    /// The token of an `Authorization: Bearer` header. A secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bearer_token: Option<String>,
    /// Whether the run fails if the server does not start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) required: bool,
    /// The time limit of the start, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) startup_timeout_ms: Option<u64>,
    /// The time limit of a tool call, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_timeout_ms: Option<u64>,
    /// The tools that the model receives. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) enabled_tools: Option<Vec<String>>,
    /// Tools that the model does not receive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) disabled_tools: Vec<String>,
}

/// The transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "McpTransport"))]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A program that speaks MCP over its standard streams.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// The older HTTP + SSE transport.
    Sse,
}
