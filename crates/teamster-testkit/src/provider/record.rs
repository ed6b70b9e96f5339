//! What the provider was asked, whole and typed. Wire protocols fill these shapes; tests read them.

use std::collections::BTreeMap;

use serde_json::Value;

/// A request for an answer of the model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The place in the order of arrival, counted from one.
    pub number: usize,
    /// Path and query.
    pub path: String,
    /// All headers, by lower-case name. Values that came in several lines are joined by `, `.
    pub headers: BTreeMap<String, String>,
    /// The body as it came.
    pub body: Value,
    /// The model that is asked.
    pub model: String,
    /// The system prompt; its blocks joined by a line feed.
    pub system: String,
    /// The conversation.
    pub messages: Vec<Message>,
    pub(crate) tool_names: Vec<String>,
    /// Whether the answer is asked for as a stream.
    pub stream: bool,
    /// The branch of the scenario that answers.
    pub branch: String,
    /// The number of assistant messages after the prompt that is answered.
    pub turn: usize,
    /// How often the reply of the scenario has been asked for, this time included.
    pub attempt: usize,
}

impl ModelRequest {
    /// The texts of the newest message of the user that has any, without those that the agent added itself.
    pub fn prompts(&self) -> Vec<&str> {
        self.messages
            .iter()
            .rev()
            .find(|message| message.is_prompt())
            .map(|message| message.texts().collect())
            .unwrap_or_default()
    }

    /// The results of tools that came in after the model's last answer.
    pub fn tool_results(&self) -> Vec<&ToolResult> {
        let new = self.messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |last| last + 1);
        results(self.messages.iter().skip(new))
    }

    /// All results of tools in the conversation.
    pub fn all_tool_results(&self) -> Vec<&ToolResult> {
        results(self.messages.iter())
    }

    /// The names of the tools that the model is offered, in their order.
    pub fn tools(&self) -> Vec<&str> {
        self.tool_names.iter().map(String::as_str).collect()
    }

    /// The value of a header, whose name is given in lower case.
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
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    pub(crate) fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts }
    }

    /// Its texts, without those that the agent added itself.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether this is something that a user said, and not only results of tools or notes of the agent.
    pub fn is_prompt(&self) -> bool {
        self.role == Role::User && self.texts().next().is_some()
    }
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The user, or the agent in the user's name.
    User,
    /// The model.
    Assistant,
    /// Instructions that stand between the messages.
    System,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// Text that the agent added to the user's message, such as a reminder.
    Context(String),
    /// Reasoning that the model gave earlier.
    Thinking(String),
    /// A call of a tool.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
    /// The outcome of a call.
    ToolResult(ToolResult),
    /// Anything else, such as an image, as it came.
    Other(Value),
}

/// The outcome of a call of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call's id.
    pub tool_id: String,
    /// Its text; several blocks are joined by a line feed.
    pub output: String,
    /// Whether it says that the tool failed.
    pub is_error: bool,
    /// The result's content as it came.
    pub content: Value,
}

/// A request that asks for no answer of the model: a probe, a count of tokens, a list of models, an unknown path.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SideRequest {
    /// The method, in capital letters.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// All headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body as it came.
    pub body: Vec<u8>,
}

/// A connection that the client closed before it had its whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disconnect {
    /// The [`number`](ModelRequest::number) of the request.
    pub request: usize,
    /// How many deltas of the answer had been sent.
    pub deltas: usize,
}
