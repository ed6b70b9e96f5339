//! Parses the body of `generateContent`.

use serde_json::Value;

use crate::provider::record::{Message, Part, Role, ToolResult};
use crate::provider::state::ParsedRequest;

/// The tag of the machine description that Gemini CLI 0.61.0 puts before the prompt.
const CONTEXT: &str = "<session_context>";

/// Parses a request. Returns a description of the first error.
pub(super) fn parse(model: &str, stream: bool, bytes: &[u8]) -> Result<ParsedRequest, String> {
    let body: Value = serde_json::from_slice(bytes).map_err(|error| format!("the body is not JSON: {error}"))?;
    let contents = body.get("contents").and_then(Value::as_array).ok_or("contents is not specified")?;
    let messages = contents.iter().map(message).collect::<Result<_, _>>()?;
    let declarations = list(&body, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations"));
    Ok(ParsedRequest {
        model: model.to_owned(),
        system: body.get("systemInstruction").map(joined_text).unwrap_or_default(),
        messages,
        tool_names: declarations.filter_map(|declaration| string(declaration, "name")).collect(),
        stream,
        body,
    })
}

fn message(content: &Value) -> Result<Message, String> {
    let role = match content.get("role").and_then(Value::as_str) {
        Some("user") | None => Role::User,
        Some("model") => Role::Assistant,
        other => return Err(format!("Please use a valid role: user, model. Found {other:?}")),
    };
    Ok(Message::new(role, list(content, "parts").iter().map(|part| self::part(role, part)).collect()))
}

fn part(role: Role, part: &Value) -> Part {
    if let Some(call) = part.get("functionCall") {
        return Part::ToolUse {
            id: string(call, "id").unwrap_or_default(),
            name: string(call, "name").unwrap_or_default(),
            input: call.get("args").cloned().unwrap_or_default(),
        };
    }
    if let Some(response) = part.get("functionResponse") {
        return Part::ToolResult(tool_result(response));
    }
    match string(part, "text") {
        Some(text) if part.get("thought") == Some(&Value::Bool(true)) => Part::Thinking(text),
        Some(text) if role == Role::User && text.trim_start().starts_with(CONTEXT) => Part::Context(text),
        Some(text) => Part::Text(text),
        None => Part::Other(part.clone()),
    }
}

/// Returns a tool result. A failed call has `error` instead of `output`.
fn tool_result(response: &Value) -> ToolResult {
    let content = response.get("response").cloned().unwrap_or_default();
    let error = string(&content, "error");
    let is_error = error.is_some();
    let output = error.or_else(|| string(&content, "output")).unwrap_or_else(|| content.to_string());
    ToolResult { tool_id: string(response, "id").unwrap_or_default(), output, is_error, content }
}

/// Returns the text of a content object or of a string.
fn joined_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => list(content, "parts").iter().filter_map(|part| string(part, "text")).collect::<Vec<_>>().join("\n"),
    }
}

fn string(object: &Value, name: &str) -> Option<String> {
    object.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
