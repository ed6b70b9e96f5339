//! The lines of `opencode run`, as far as they are used. Other fields and types are ignored.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::line::{Text, if_readable};

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

/// The part of `step_start`. A step is one model call, and one message.
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
    /// Whether the agent wrote the text as the user's message.
    #[serde(default)]
    pub(super) synthetic: bool,
}
