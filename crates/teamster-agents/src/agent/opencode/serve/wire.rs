//! The events and replies of OpenCode's server, as far as they are used. Other fields and types are ignored.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::wire::ErrorBody;
use crate::agent::line::{Text, if_readable};
use crate::bounded::bytes_of;
use teamster_types::json::RawJson;

/// An event of the stream: `{id, type, properties}`.
#[derive(Debug, Deserialize)]
pub(super) struct ServerEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) properties: Option<&'a RawValue>,
}

/// `session.idle`, `session.compacted`, and the start of all other events of a session.
#[derive(Debug, Deserialize)]
pub(super) struct SessionEvent<'a> {
    #[serde(rename = "sessionID", borrow)]
    pub(super) session: Text<'a>,
}

/// `session.created`.
#[derive(Debug, Deserialize)]
pub(super) struct SessionCreated {
    pub(super) info: SessionInfo,
}

/// A session, in events and replies.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SessionInfo {
    pub(super) id: String,
    #[serde(rename = "parentID", default)]
    pub(super) parent: Option<String>,
    #[serde(default)]
    pub(super) directory: Option<String>,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) time: SessionTime,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionTime {
    pub(super) updated: u64,
}

/// The reply to `GET /path`.
#[derive(Debug, Deserialize)]
pub(super) struct PathReply {
    pub(super) directory: String,
}

/// `session.status`.
#[derive(Debug, Deserialize)]
pub(super) struct StatusChange<'a> {
    #[serde(rename = "sessionID", borrow)]
    pub(super) session: Text<'a>,
    pub(super) status: Status,
}

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) attempt: Option<u64>,
    #[serde(default)]
    pub(super) message: Option<String>,
    /// Milliseconds since 1970.
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) next: Option<i64>,
}

/// `session.error`.
#[derive(Debug, Deserialize)]
pub(super) struct SessionError {
    #[serde(rename = "sessionID", default)]
    pub(super) session: Option<String>,
    #[serde(default)]
    pub(super) error: Option<ErrorBody>,
}

/// `message.updated`.
#[derive(Debug, Deserialize)]
pub(super) struct MessageChange {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    pub(super) info: MessageInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageInfo {
    pub(super) id: String,
    pub(super) role: String,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) time: MessageTime,
    #[serde(default)]
    pub(super) finish: Option<String>,
    #[serde(default)]
    pub(super) error: Option<ErrorBody>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) structured: Option<RawJson>,
    /// `true` for a summary of the conversation. A user's message has an object here.
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) summary: Option<Value>,
    /// In a message of the model: the user's message that it answers.
    #[serde(rename = "parentID", default, deserialize_with = "if_readable")]
    pub(super) parent: Option<String>,
    #[serde(rename = "modelID", default)]
    pub(super) model: Option<String>,
    #[serde(rename = "providerID", default)]
    pub(super) provider: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageTime {
    /// Milliseconds since 1970.
    pub(super) completed: Option<i64>,
}

/// `message.part.updated`.
#[derive(Debug, Deserialize)]
pub(super) struct PartChange<'a> {
    #[serde(rename = "sessionID", borrow)]
    pub(super) session: Text<'a>,
    #[serde(borrow)]
    pub(super) part: &'a RawValue,
}

/// The start of every part.
#[derive(Debug, Deserialize)]
pub(super) struct PartHead<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(rename = "messageID", borrow)]
    pub(super) message: Text<'a>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) state: StateHead,
}

/// The state of a tool's part.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StateHead {
    pub(super) status: String,
    pub(super) metadata: StateMetadata,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StateMetadata {
    /// The session of the subagent that `task` started.
    #[serde(rename = "sessionId", deserialize_with = "if_readable")]
    pub(super) session: Option<String>,
    /// The output of a running command so far.
    #[serde(deserialize_with = "if_readable")]
    pub(super) output: String,
}

/// A part of type `text` or `reasoning`.
#[derive(Debug, Deserialize)]
pub(super) struct TextPart<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(default)]
    pub(super) synthetic: bool,
    #[serde(default)]
    pub(super) ignored: bool,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) time: PartTime,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PartTime {
    pub(super) end: Option<f64>,
}

/// `message.part.delta`.
#[derive(Debug, Deserialize)]
pub(super) struct DeltaChange<'a> {
    #[serde(rename = "partID", borrow)]
    pub(super) part: Text<'a>,
    #[serde(borrow)]
    pub(super) field: Text<'a>,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
}

/// `todo.updated`.
#[derive(Debug, Deserialize)]
pub(super) struct TodoChange<'a> {
    #[serde(rename = "sessionID", borrow)]
    pub(super) session: Text<'a>,
    #[serde(default)]
    pub(super) todos: Vec<Todo>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Todo {
    pub(super) content: String,
    pub(super) status: String,
}

/// `permission.asked`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Permission {
    pub(super) id: String,
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    pub(super) permission: String,
    #[serde(default)]
    pub(super) patterns: Vec<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) metadata: Value,
    #[serde(default)]
    pub(super) always: Vec<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) tool: Option<CallReference>,
}

impl Permission {
    /// Returns the approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.patterns.iter().chain(&self.always).map(|text| size_of::<String>() + text.len());
        self.session.len() + self.permission.len() + texts.sum::<usize>() + bytes_of(&self.metadata)
    }
}

/// The tool call for which the agent requests something.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CallReference {
    #[serde(rename = "callID")]
    pub(super) call: String,
}

/// `question.asked`.
#[derive(Debug, Deserialize)]
pub(super) struct QuestionAsked {
    pub(super) id: String,
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    #[serde(default)]
    pub(super) questions: Vec<AskedQuestion>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AskedQuestion {
    pub(super) question: String,
    #[serde(default)]
    pub(super) header: Option<String>,
    #[serde(default)]
    pub(super) options: Vec<AskedOption>,
    #[serde(default)]
    pub(super) multiple: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AskedOption {
    pub(super) label: String,
    #[serde(default)]
    pub(super) description: Option<String>,
}

/// `permission.replied`, `question.replied` and `question.rejected`.
#[derive(Debug, Deserialize)]
pub(super) struct Replied {
    #[serde(rename = "requestID")]
    pub(super) request: String,
    /// The reply to a permission request: `once`, `always` or `reject`.
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) reply: Option<String>,
}

/// An MCP server in the reply to `GET /mcp`.
#[derive(Debug, Deserialize)]
pub(super) struct ServerStatus {
    pub(super) status: String,
    #[serde(default)]
    pub(super) error: Option<String>,
}
