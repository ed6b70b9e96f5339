//! Parses the body of `POST /v1/messages`.

use serde_json::Value;

use crate::provider::record::{Message, Part, Role, ToolResult};
use crate::provider::state::ParsedRequest;

/// The tag in which Claude Code 2.1.197 wraps the text that it adds to a user message.
const REMINDER: &str = "<system-reminder>";

/// Parses a request. Returns a description of the first error.
pub(super) fn parse(bytes: &[u8]) -> Result<ParsedRequest, String> {
    let body: Value = serde_json::from_slice(bytes).map_err(|error| format!("the body is not JSON: {error}"))?;
    let messages = body
        .get("messages")
        .and_then(Value::as_array)
        .ok_or("messages: Field required")?
        .iter()
        .map(message)
        .collect::<Result<_, _>>()?;
    Ok(ParsedRequest {
        model: string(&body, "model").ok_or("model: Field required")?,
        system: body.get("system").map(joined_text).unwrap_or_default(),
        messages,
        tool_names: list(&body, "tools").iter().filter_map(|tool| string(tool, "name")).collect(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
        body,
    })
}

fn message(message: &Value) -> Result<Message, String> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        other => return Err(format!("messages: unexpected role {other:?}")),
    };
    let parts = match message.get("content") {
        Some(Value::String(content)) => vec![text(role, content.clone())],
        Some(Value::Array(blocks)) => blocks.iter().map(|block| part(role, block)).collect(),
        _ => return Err("messages: content is required".to_owned()),
    };
    Ok(Message::new(role, parts))
}

fn part(role: Role, block: &Value) -> Part {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => text(role, string(block, "text").unwrap_or_default()),
        Some("thinking") => Part::Thinking(string(block, "thinking").unwrap_or_default()),
        Some("tool_use") => Part::ToolUse {
            id: string(block, "id").unwrap_or_default(),
            name: string(block, "name").unwrap_or_default(),
            input: block.get("input").cloned().unwrap_or_default(),
        },
        Some("tool_result") => Part::ToolResult(tool_result(block)),
        _ => Part::Other(block.clone()),
    }
}

fn text(role: Role, text: String) -> Part {
    if role == Role::User && text.trim_start().starts_with(REMINDER) { Part::Context(text) } else { Part::Text(text) }
}

fn tool_result(block: &Value) -> ToolResult {
    let content = block.get("content").cloned().unwrap_or_default();
    ToolResult {
        tool_id: string(block, "tool_use_id").unwrap_or_default(),
        output: joined_text(&content),
        is_error: block.get("is_error").and_then(Value::as_bool) == Some(true),
        content,
    }
}

/// Returns the text of a field that is a string or a list of blocks.
fn joined_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn string(object: &Value, name: &str) -> Option<String> {
    object.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
