//! OpenCode's lines, typed as far as we use them. All other fields and types are passed over.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::line::{Text, if_readable};
use teamster_types::json::RawJson;

/// A line: `{type, timestamp, sessionID, part | error}`.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(rename = "sessionID", borrow, default)]
    pub(super) session_id: Option<Text<'a>>,
    /// Milliseconds since 1970.
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) timestamp: Option<i64>,
    #[serde(borrow, default)]
    pub(super) part: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The part of `step_start`: one call of the model, one message.
#[derive(Debug, Deserialize)]
pub(super) struct StepPart<'a> {
    #[serde(rename = "messageID", borrow)]
    pub(super) message_id: Text<'a>,
}

/// The part of `text` and `reasoning`.
#[derive(Debug, Deserialize)]
pub(super) struct TextPart<'a> {
    #[serde(rename = "messageID", borrow)]
    pub(super) message_id: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    /// Said by the agent in the user's name.
    #[serde(default)]
    pub(super) synthetic: bool,
}

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

/// A file that a tool gave, as a `data:` URL.
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

/// Tokens of one step. `input` is without the cached ones, `output` without reasoning.
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

/// What an `error` line says.
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
    /// Names the entry of the log that tells more.
    #[serde(rename = "ref")]
    pub(super) reference: Option<String>,
}
