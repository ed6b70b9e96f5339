//! The output of Gemini CLI 0.61.0: the fields that are used of `stream-json` lines and of the `json` document.
//!
//! Unknown fields are skipped. Types are strings.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::agent::line::{Text, if_readable};
use teamster_types::json::RawJson;

/// A line. `kind` decides which fields exist.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tool_id: Option<Text<'a>>,
    pub(super) parameters: Option<RawJson>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    #[serde(default, deserialize_with = "as_text")]
    pub(super) output: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) error: Option<Problem>,
    #[serde(borrow)]
    pub(super) severity: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Text<'a>>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) stats: Option<Stats>,
}

/// The error of a tool or a run. Only documents have a `code`: the vendor's status or the exit code.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) message: String,
    #[serde(deserialize_with = "if_readable")]
    pub(super) code: Option<u64>,
}

/// Sums over the model calls of this process. `input_tokens` includes cached tokens. Only the total includes thoughts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stats {
    pub(super) total_tokens: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cached: u64,
    #[serde(deserialize_with = "if_readable")]
    pub(super) models: BTreeMap<String, Value>,
}

/// The document of a batch run. A failed run also prints one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Document {
    #[serde(deserialize_with = "if_readable")]
    pub(super) session_id: Option<String>,
    pub(super) response: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) error: Option<Problem>,
    #[serde(deserialize_with = "if_readable")]
    pub(super) stats: Option<DocumentStats>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DocumentStats {
    #[serde(deserialize_with = "if_readable")]
    pub(super) models: BTreeMap<String, ModelStats>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelStats {
    pub(super) api: ApiStats,
    pub(super) tokens: Tokens,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ApiStats {
    pub(super) total_latency_ms: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) prompt: u64,
    pub(super) candidates: u64,
    pub(super) cached: u64,
    pub(super) thoughts: u64,
    pub(super) total: u64,
}

/// Reads a string, or the JSON text of any other value.
fn as_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}
