//! Messages of ACP agents, protocol version 1: the fields that are used.
//!
//! The official crate (`agent-client-protocol-schema` 1.15) is not suitable. Its updates and stop reasons are closed enums, so one
//! unknown kind makes the whole message unreadable. It no longer has `models`, which Gemini CLI 0.61.0 reports. It has usage only
//! behind an unstable feature. It also makes `serde_json` keep the order of fields in the whole build.
//!
//! Unknown fields are skipped, kinds are strings, and a field of an unexpected type is ignored.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::line::{Text, if_readable};
use teamster_types::json::RawJson;

/// The result of `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct InitializeResult {
    pub(super) protocol_version: u64,
    #[serde(deserialize_with = "if_readable")]
    pub(super) agent_capabilities: WireCapabilities,
    #[serde(deserialize_with = "if_readable")]
    pub(super) agent_info: Info,
    #[serde(deserialize_with = "if_readable")]
    pub(super) auth_methods: Vec<AuthMethod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Info {
    pub(super) name: String,
    #[serde(deserialize_with = "if_readable")]
    pub(super) version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuthMethod {
    pub(super) name: String,
    #[serde(deserialize_with = "if_readable")]
    pub(super) description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WireCapabilities {
    #[serde(deserialize_with = "if_readable")]
    pub(super) load_session: bool,
    #[serde(deserialize_with = "if_readable")]
    pub(super) prompt_capabilities: PromptCapabilities,
    #[serde(deserialize_with = "if_readable")]
    pub(super) mcp_capabilities: McpCapabilities,
    #[serde(deserialize_with = "if_readable")]
    pub(super) session_capabilities: SessionCapabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PromptCapabilities {
    pub(super) image: bool,
    pub(super) embedded_context: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpCapabilities {
    pub(super) http: bool,
    pub(super) sse: bool,
}

/// The session's optional methods. A field that exists is supported, whatever its value.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionCapabilities {
    #[serde(deserialize_with = "if_readable")]
    pub(super) resume: Option<Value>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) fork: Option<Value>,
}

/// The result of `session/new`, `session/resume`, `session/fork` and `session/load`. The last one has no session id.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Opened {
    #[serde(deserialize_with = "if_readable")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) modes: Option<Modes>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) models: Option<Models>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) config_options: Vec<ConfigOption>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Modes {
    pub(super) current_mode_id: String,
    #[serde(deserialize_with = "if_readable")]
    pub(super) available_modes: Vec<Mode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Mode {
    pub(super) id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Models {
    #[serde(deserialize_with = "if_readable")]
    pub(super) current_model_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfigOption {
    pub(super) id: String,
    #[serde(deserialize_with = "if_readable")]
    pub(super) category: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) current_value: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) options: Vec<Choice>,
}

/// A value, or a group of values.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(deserialize_with = "if_readable")]
    pub(super) value: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) options: Vec<Choice>,
}

/// The parameters of `session/update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateParams<'a> {
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) update: &'a RawValue,
}

/// An update. `kind` decides which fields exist; those of a tool call are in [`CallFields`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Update<'a> {
    #[serde(borrow, rename = "sessionUpdate")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) message_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) entries: Vec<Entry>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) current_mode_id: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) config_options: Vec<ConfigOption>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) cost: Option<Cost>,
    /// The tokens in the context window.
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) used: Option<u64>,
    /// The size of the context window.
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) size: Option<u64>,
}

/// A content block.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) uri: Option<Text<'a>>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) resource: Option<Resource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    #[serde(deserialize_with = "if_readable")]
    pub(super) text: Option<String>,
}

/// An update of a tool call. A missing field keeps its value.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CallFields {
    pub(super) tool_call_id: String,
    #[serde(deserialize_with = "if_readable")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) locations: Option<Vec<Location>>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) content: Option<Vec<RawJson>>,
    pub(super) raw_input: Option<RawJson>,
    pub(super) raw_output: Option<RawJson>,
    #[serde(rename = "_meta", deserialize_with = "if_readable")]
    pub(super) meta: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Location {
    pub(super) path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    pub(super) content: String,
    pub(super) status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cost {
    pub(super) amount: f64,
    pub(super) currency: String,
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionParams {
    #[serde(deserialize_with = "if_readable")]
    pub(super) options: Vec<PermissionChoice>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) tool_call: CallFields,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionChoice {
    pub(super) option_id: String,
    pub(super) name: String,
    pub(super) kind: String,
}

/// The parameters of `elicitation/create`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ElicitationParams {
    #[serde(deserialize_with = "if_readable")]
    pub(super) mode: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) requested_schema: Option<Value>,
}

/// The result of `session/prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PromptResult {
    #[serde(deserialize_with = "if_readable")]
    pub(super) stop_reason: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) usage: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    pub(super) total_tokens: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    #[serde(deserialize_with = "if_readable")]
    pub(super) thought_tokens: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) cached_read_tokens: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) cached_write_tokens: Option<u64>,
}
