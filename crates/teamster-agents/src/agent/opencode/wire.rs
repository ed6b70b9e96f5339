//! The types that both interfaces use, as far as they are used. Other fields and types are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::agent::line::{Text, if_readable};
use teamster_types::json::RawJson;

/// The part of `tool_use`.
#[derive(Debug, Deserialize)]
pub(super) struct ToolPart {
    pub(super) id: String,
    pub(super) tool: String,
    #[serde(rename = "callID", default)]
    pub(super) call_id: Option<String>,
    pub(super) state: ToolState,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolState {
    pub(super) status: String,
    #[serde(default)]
    pub(super) input: RawJson,
    #[serde(default)]
    pub(super) output: Option<String>,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) metadata: Option<Value>,
    #[serde(default)]
    pub(super) attachments: Option<Vec<Attachment>>,
}

/// A file that a tool returned, as a `data:` URL.
#[derive(Debug, Deserialize)]
pub(super) struct Attachment {
    #[serde(default)]
    pub(super) mime: String,
    #[serde(default)]
    pub(super) url: String,
}

/// The part of `step_finish`.
#[derive(Debug, Deserialize)]
pub(super) struct FinishPart<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Option<Text<'a>>,
    #[serde(default)]
    pub(super) cost: Option<f64>,
    #[serde(default)]
    pub(super) tokens: Option<Tokens>,
}

/// The tokens of one step. `input` excludes cached tokens, and `output` excludes reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) reasoning: u64,
    pub(super) cache: CacheTokens,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CacheTokens {
    pub(super) read: u64,
    pub(super) write: u64,
}

/// The body of an error.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) data: ErrorData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorData {
    pub(super) message: Option<String>,
    #[serde(rename = "statusCode")]
    pub(super) status_code: Option<u64>,
    #[serde(rename = "responseHeaders")]
    pub(super) response_headers: Option<BTreeMap<String, Value>>,
    #[serde(rename = "responseBody")]
    pub(super) response_body: Option<String>,
    pub(super) metadata: Option<BTreeMap<String, Value>>,
    /// The reference of the log entry that has details.
    #[serde(rename = "ref")]
    pub(super) reference: Option<String>,
}
