//! Reads and checks a request. Each error names its parameter.

use axum::http::HeaderMap;
use serde_json::{Map, Value};
use teamster_store::ConversationId;

use super::content::{self, Attached};
use super::error::ApiError;

/// The header that names a conversation.
const CONVERSATION_HEADER: &str = "x-teamster-conversation";

/// The key in `metadata` that names a conversation.
const CONVERSATION_KEY: &str = "conversation_id";

/// A request for an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChatRequest {
    /// The model, as the client names it.
    pub(super) model: String,
    /// The agent.
    pub(super) agent: String,
    /// The model of the agent.
    pub(super) agent_model: Option<String>,
    /// The messages, at least one. The last one is not from the assistant.
    pub(super) messages: Vec<Message>,
    /// Whether the answer is streamed.
    pub(super) stream: bool,
    /// Whether the stream ends with the usage.
    pub(super) include_usage: bool,
    /// The conversation that has the history.
    pub(super) conversation: Option<ConversationId>,
    /// Values of the caller.
    pub(super) metadata: Map<String, Value>,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    /// Who wrote it.
    pub(super) role: Role,
    /// Its text.
    pub(super) text: String,
    /// Its files.
    pub(super) attached: Vec<Attached>,
    /// The tool calls of the assistant, as the client sends them.
    pub(super) tool_calls: Option<Value>,
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The application.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    /// Returns its name in the prompt.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Reads a request.
pub(super) fn read(body: &Value, headers: &HeaderMap) -> Result<ChatRequest, ApiError> {
    let body = body.as_object().ok_or_else(|| ApiError::invalid("body", "must be a JSON object"))?;
    check_form(body)?;
    let stream = boolean(body, "stream")?;
    let (model, agent, agent_model) = model(body)?;
    let mut metadata = object(body, "metadata")?.cloned().unwrap_or_default();
    let named = metadata.remove(CONVERSATION_KEY);
    Ok(ChatRequest {
        model,
        agent,
        agent_model,
        messages: messages(body)?,
        stream,
        include_usage: include_usage(body, stream)?,
        conversation: conversation(named.as_ref(), headers)?,
        metadata,
    })
}

/// Refuses what would change the form of the answer. Other unknown parameters are ignored.
fn check_form(body: &Map<String, Value>) -> Result<(), ApiError> {
    let refuse = |param: &str, problem: &str| Err(ApiError::invalid(param, problem));
    let value = |name: &str| body.get(name).filter(|value| !value.is_null());
    if value("n").is_some_and(|n| n.as_u64() != Some(1)) {
        return refuse("n", "must be 1: an agent gives one answer");
    }
    if value("logprobs").is_some_and(|logprobs| *logprobs != Value::Bool(false)) {
        return refuse("logprobs", "must be false: agents do not report probabilities");
    }
    let format = value("response_format").map(|format| format.get("type").and_then(Value::as_str));
    if format.is_some_and(|format| format != Some("text")) {
        return refuse("response_format", "must have the type text: describe another form of the answer in the prompt");
    }
    let is_audio = |modality: &Value| modality.as_str() == Some("audio");
    if value("modalities").and_then(Value::as_array).is_some_and(|list| list.iter().any(is_audio)) {
        return refuse("modalities", "must be [\"text\"]: agents answer with text");
    }
    for name in ["tool_choice", "function_call"] {
        if value(name).is_some_and(|choice| !matches!(choice.as_str(), Some("auto" | "none"))) {
            return refuse(name, "must be auto or none: the agent uses its own tools and calls none of the client");
        }
    }
    Ok(())
}

fn model(body: &Map<String, Value>) -> Result<(String, String, Option<String>), ApiError> {
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    let (agent, agent_model) = model.split_once('/').map_or((model, None), |(agent, rest)| (agent, Some(rest)));
    if agent.is_empty() || agent_model.is_some_and(str::is_empty) || model.chars().any(char::is_control) {
        return Err(ApiError::invalid("model", "must be an agent, or AGENT/MODEL; GET /v1/models lists the agents"));
    }
    Ok((model.to_owned(), agent.to_owned(), agent_model.map(str::to_owned)))
}

fn include_usage(body: &Map<String, Value>, stream: bool) -> Result<bool, ApiError> {
    let Some(options) = object(body, "stream_options")? else { return Ok(false) };
    if !stream {
        return Err(ApiError::invalid("stream_options", "is only allowed when 'stream' is true"));
    }
    boolean(options, "include_usage")
        .map_err(|_| ApiError::invalid("stream_options.include_usage", "must be true or false"))
}

fn messages(body: &Map<String, Value>) -> Result<Vec<Message>, ApiError> {
    let list = body.get("messages").and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| ApiError::invalid("messages", "must be a list with at least one message"))?;
    let read: Vec<_> = list.iter().enumerate().map(|(index, value)| message(index, value)).collect::<Result<_, _>>()?;
    let latest = read.iter().rev().find(|message| message.role != Role::System);
    let is_answerable = latest.is_some_and(|message| message.role != Role::Assistant);
    if !is_answerable {
        return Err(ApiError::invalid("messages", "must end with a message of the user, which the agent answers"));
    }
    if latest.is_some_and(|message| message.text.trim().is_empty() && message.attached.is_empty()) {
        return Err(ApiError::invalid("messages", "must end with a message that is not empty"));
    }
    Ok(read)
}

fn message(index: usize, value: &Value) -> Result<Message, ApiError> {
    let param = |name: &str| format!("messages[{index}].{name}");
    let role = match value.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => return Err(ApiError::invalid(param("role"), "must be system, developer, user, assistant or tool")),
    };
    let mut attached = Vec::new();
    let text = content::read(value.get("content").unwrap_or(&Value::Null), &param("content"), &mut attached)?;
    let tool_calls = value.get("tool_calls").filter(|calls| !calls.is_null()).cloned();
    Ok(Message { role, text, attached, tool_calls })
}

fn conversation(named: Option<&Value>, headers: &HeaderMap) -> Result<Option<ConversationId>, ApiError> {
    let parse = |param: &str, text: Option<&str>| {
        let id = text.and_then(|text| text.parse().ok());
        id.ok_or_else(|| ApiError::invalid(param, "must be the id of a conversation, a UUID"))
    };
    let param = format!("metadata.{CONVERSATION_KEY}");
    let in_metadata: Option<ConversationId> = named.map(|value| parse(&param, value.as_str())).transpose()?;
    let header = headers.get(CONVERSATION_HEADER);
    let in_header: Option<ConversationId> =
        header.map(|value| parse("X-Teamster-Conversation", value.to_str().ok())).transpose()?;
    match (in_metadata, in_header) {
        (Some(one), Some(other)) if one != other => {
            Err(ApiError::invalid(param, "differs from the header X-Teamster-Conversation"))
        }
        (one, other) => Ok(one.or(other)),
    }
}

fn boolean(body: &Map<String, Value>, name: &str) -> Result<bool, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(_) => Err(ApiError::invalid(name, "must be true or false")),
    }
}

fn object<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a Map<String, Value>>, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(value)) => Ok(Some(value)),
        Some(_) => Err(ApiError::invalid(name, "must be an object")),
    }
}
