//! Parses the body of `POST /v1/chat/completions`.

use serde_json::Value;

use crate::provider::record::{Message, Part, Role, ToolResult};
use crate::provider::state::ParsedRequest;

/// Parses a request. Returns a description of the first error.
pub(super) fn parse(bytes: &[u8]) -> Result<ParsedRequest, String> {
    let body: Value = serde_json::from_slice(bytes).map_err(|error| format!("the body is not JSON: {error}"))?;
    let all = body.get("messages").and_then(Value::as_array).ok_or("you must provide a messages parameter")?;
    // Instructions precede the conversation; later ones are part of it.
    let opening = all.iter().take_while(|message| is_system(message)).count();
    let (system, conversation) = all.split_at_checked(opening).unwrap_or_default();
    let system: Vec<String> = system.iter().filter_map(|message| message.get("content").map(joined_text)).collect();
    let messages = conversation.iter().map(message).collect::<Result<_, _>>()?;
    Ok(ParsedRequest {
        model: string(&body, "model").ok_or("you must provide a model parameter")?,
        system: system.join("\n"),
        messages,
        tool_names: list(&body, "tools").iter().filter_map(|tool| string(tool.get("function")?, "name")).collect(),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
        body,
    })
}

fn is_system(message: &Value) -> bool {
    matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

fn message(message: &Value) -> Result<Message, String> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        Some("tool") => return Ok(Message::new(Role::User, vec![Part::ToolResult(tool_result(message))])),
        other => return Err(format!("messages: unexpected role {other:?}")),
    };
    let mut parts = Vec::new();
    parts.extend(string(message, "reasoning_content").map(Part::Thinking));
    match message.get("content") {
        Some(Value::String(content)) => parts.push(Part::Text(content.clone())),
        Some(Value::Array(blocks)) => parts.extend(blocks.iter().map(part)),
        _ => {}
    }
    parts.extend(list(message, "tool_calls").iter().map(call));
    Ok(Message::new(role, parts))
}

fn part(block: &Value) -> Part {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => Part::Text(string(block, "text").unwrap_or_default()),
        _ => Part::Other(block.clone()),
    }
}

fn call(call: &Value) -> Part {
    let function = call.get("function").unwrap_or(&Value::Null);
    let arguments = string(function, "arguments").unwrap_or_default();
    Part::ToolUse {
        id: string(call, "id").unwrap_or_default(),
        name: string(function, "name").unwrap_or_default(),
        input: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
    }
}

/// Returns a tool result. The API has no flag for a failed tool.
fn tool_result(message: &Value) -> ToolResult {
    let content = message.get("content").cloned().unwrap_or_default();
    ToolResult {
        tool_id: string(message, "tool_call_id").unwrap_or_default(),
        output: joined_text(&content),
        is_error: false,
        content,
    }
}

/// Returns the text of a field that is a string or a list of parts.
fn joined_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")
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
