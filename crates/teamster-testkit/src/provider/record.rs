//! The requests that the provider received, parsed. Wire formats create these types; tests read
//! them.

use std::collections::BTreeMap;

use serde_json::Value;

/// A model request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The position in the order of arrival, counted from one.
    pub number: usize,
    /// Path and query.
    pub path: String,
    /// All headers, by lower-case name. Repeated headers are joined with `, `.
    pub headers: BTreeMap<String, String>,
    /// The unparsed body.
    pub body: Value,
    /// The requested model.
    pub model: String,
    /// The system prompt; several blocks are joined with a line feed.
    pub system: String,
    /// The conversation.
    pub messages: Vec<Message>,
    pub(crate) tool_names: Vec<String>,
    /// Whether the client requests a stream.
    pub stream: bool,
    /// The branch of the scenario that responds.
    pub branch: String,
    /// The number of assistant messages after the prompt.
    pub turn: usize,
    /// How often this reply of the scenario has been requested, including this request.
    pub attempt: usize,
}

impl ModelRequest {
    /// Returns the texts of the latest user message that has any, without those that the agent
    /// added.
    pub fn prompts(&self) -> Vec<&str> {
        self.messages
            .iter()
            .rev()
            .find(|message| message.is_prompt())
            .map(|message| message.texts().collect())
            .unwrap_or_default()
    }

    /// Returns the tool results that follow the model's last message.
    pub fn tool_results(&self) -> Vec<&ToolResult> {
        let new = self.messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |last| last + 1);
        results(self.messages.iter().skip(new))
    }

    /// Returns all tool results of the conversation.
    pub fn all_tool_results(&self) -> Vec<&ToolResult> {
        results(self.messages.iter())
    }

    /// Returns the names of the offered tools, in order.
    pub fn tools(&self) -> Vec<&str> {
        self.tool_names.iter().map(String::as_str).collect()
    }

    /// Returns the value of a header, given by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

fn results<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<&'a ToolResult> {
    messages
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect()
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<Part>,
}

impl Message {
    pub(crate) fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts }
    }

    /// Returns its texts, without those that the agent added.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns whether the user wrote a text in it. Tool results and the agent's own notes do not
    /// count.
    pub fn is_prompt(&self) -> bool {
        self.role == Role::User && self.texts().next().is_some()
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The user, or the agent on the user's behalf.
    User,
    /// The model.
    Assistant,
    /// Instructions between the messages.
    System,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// Text that the agent added to the user message, such as a reminder.
    Context(String),
    /// Thinking of an earlier model response.
    Thinking(String),
    /// A tool call.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// Any other content, such as an image, unparsed.
    Other(Value),
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call's id.
    pub tool_id: String,
    /// Its text; several blocks are joined with a line feed.
    pub output: String,
    /// Whether it reports that the tool failed.
    pub is_error: bool,
    /// The unparsed content.
    pub content: Value,
}

/// A request that is not a model request: a probe, a token count, a list of models, an unknown
/// path.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SideRequest {
    /// The method, in capital letters.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// All headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The unparsed body.
    pub body: Vec<u8>,
}

/// A connection that the client closed before it had received the whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disconnect {
    /// The [`number`](ModelRequest::number) of the request.
    pub request: usize,
    /// The number of deltas sent before.
    pub deltas: usize,
}
