//! The line that ends a turn.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::ApiUsage;
use crate::agent::json_string::JsonString;
use crate::agent::line::if_readable;
use teamster_types::json::RawJson;

/// `result`. Only the fields that decide between success and failure must have their known form. Any other field of another form
/// is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::agent::claude) struct ResultLine<'a> {
    pub(in crate::agent::claude) subtype: String,
    pub(in crate::agent::claude) is_error: bool,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) api_error_status: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) terminal_reason: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) duration_api_ms: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) num_turns: Option<u64>,
    #[serde(borrow)]
    pub(in crate::agent::claude) result: Option<JsonString<'a>>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) errors: Vec<Value>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) stop_reason: Option<String>,
    pub(in crate::agent::claude) session_id: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) total_cost_usd: Option<f64>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) usage: Option<ApiUsage>,
    #[serde(rename = "modelUsage", deserialize_with = "if_readable")]
    pub(in crate::agent::claude) model_usage: Option<ModelUsages>,
    /// By 2.1.318 and newer, not by 2.1.304.
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) model_usage_since_last_result: Option<ModelUsages>,
    /// By 2.1.276 and newer, not by 2.1.197.
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) result_index: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) permission_denials: Vec<Denial>,
    /// The call that a hook put off.
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) deferred_tool_use: Option<DeferredCall>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) structured_output: Option<RawJson>,
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) uuid: Option<String>,
}

/// The usage by model.
pub(in crate::agent::claude) type ModelUsages = BTreeMap<String, ModelUsage>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::agent::claude) struct ModelUsage {
    pub(in crate::agent::claude) input_tokens: u64,
    pub(in crate::agent::claude) output_tokens: u64,
    pub(in crate::agent::claude) cache_read_input_tokens: u64,
    pub(in crate::agent::claude) cache_creation_input_tokens: u64,
    #[serde(rename = "costUSD", deserialize_with = "if_readable")]
    pub(in crate::agent::claude) cost_usd: Option<f64>,
    /// The model's context window, in tokens.
    #[serde(deserialize_with = "if_readable")]
    pub(in crate::agent::claude) context_window: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(in crate::agent::claude) struct DeferredCall {
    pub(in crate::agent::claude) name: String,
}

#[derive(Debug, Deserialize)]
pub(in crate::agent::claude) struct Denial {
    pub(in crate::agent::claude) tool_name: String,
    pub(in crate::agent::claude) tool_use_id: Option<String>,
    pub(in crate::agent::claude) tool_input: Option<RawJson>,
}
