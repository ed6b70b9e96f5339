//! Parses the body of `POST /v1/responses`.
//!
//! A conversation is a flat list of items. The items of one model response (messages, reasoning,
//! calls) become one assistant message here, and consecutive tool results become one user message,
//! so that turns can be counted.

use serde_json::Value;

use crate::provider::record::{Message, Part, Role, ToolResult};
use crate::provider::state::ParsedRequest;

/// The prefixes of the texts that Codex 0.169.0 adds in the user's name.
const CONTEXT: &[&str] = &["<environment_context>", "# AGENTS.md instructions", "<skill>", "<turn_aborted>"];

/// Parses a request. Returns a description of the first error.
pub(super) fn parse(bytes: &[u8]) -> Result<ParsedRequest, String> {
    let body: Value = serde_json::from_slice(bytes).map_err(|error| format!("the body is not JSON: {error}"))?;
    let mut messages: Vec<Message> = Vec::new();
    match body.get("input") {
        Some(Value::String(prompt)) => messages.push(Message::new(Role::User, vec![Part::Text(prompt.clone())])),
        Some(Value::Array(items)) => {
            for item in items {
                add(&mut messages, item)?;
            }
        }
        _ => return Err("Missing required parameter: 'input'.".to_owned()),
    }
    let instructions = string(&body, "instructions").filter(|text| !text.is_empty());
    let developer = messages.iter().filter(|message| message.role == Role::System).flat_map(Message::texts);
    let system = instructions.into_iter().chain(developer.map(str::to_owned)).collect::<Vec<_>>().join("\n");
    Ok(ParsedRequest {
        model: string(&body, "model").ok_or("Missing required parameter: 'model'.")?,
        system,
        messages,
        tool_names: tool_names(&body),
        stream: body.get("stream").and_then(Value::as_bool) == Some(true),
        body,
    })
}

/// Adds an item to the message that it belongs to.
fn add(messages: &mut Vec<Message>, item: &Value) -> Result<(), String> {
    let kind = string(item, "type").unwrap_or_else(|| "message".to_owned());
    let (role, parts, alone) = match kind.as_str() {
        "message" => {
            let role = match item.get("role").and_then(Value::as_str) {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                Some("developer" | "system") => Role::System,
                other => return Err(format!("Invalid value for 'input.role': {other:?}.")),
            };
            (role, message_parts(role, item), role != Role::Assistant)
        }
        "reasoning" => {
            let summary = item.get("summary").map(joined_text).unwrap_or_default();
            (Role::Assistant, vec![Part::Thinking(summary)], false)
        }
        "function_call" | "custom_tool_call" => (Role::Assistant, vec![call(item)], false),
        // Tools that Codex declares within the conversation.
        "additional_tools" => (Role::System, vec![Part::Other(item.clone())], true),
        kind if kind.ends_with("_output") => (Role::User, vec![Part::ToolResult(outcome(item))], false),
        _ => (Role::Assistant, vec![Part::Other(item.clone())], false),
    };
    match messages.last_mut() {
        Some(last) if !alone && last.role == role && !last.is_prompt() => last.parts.extend(parts),
        _ => messages.push(Message::new(role, parts)),
    }
    Ok(())
}

fn message_parts(role: Role, item: &Value) -> Vec<Part> {
    match item.get("content") {
        Some(Value::String(content)) => vec![text(role, content.clone())],
        Some(Value::Array(blocks)) => blocks.iter().map(|block| part(role, block)).collect(),
        _ => Vec::new(),
    }
}

fn part(role: Role, block: &Value) -> Part {
    match string(block, "type").as_deref() {
        Some("input_text" | "output_text" | "text") => text(role, string(block, "text").unwrap_or_default()),
        _ => Part::Other(block.clone()),
    }
}

fn text(role: Role, text: String) -> Part {
    let context = role == Role::User && CONTEXT.iter().any(|start| text.trim_start().starts_with(start));
    if context { Part::Context(text) } else { Part::Text(text) }
}

/// Returns a tool call. Functions have JSON arguments, custom tools have a text.
fn call(item: &Value) -> Part {
    let name = string(item, "name").unwrap_or_default();
    let input = match (string(item, "arguments"), string(item, "input")) {
        (Some(json), _) => serde_json::from_str(&json).unwrap_or(Value::String(json)),
        (None, text) => Value::String(text.unwrap_or_default()),
    };
    Part::ToolUse {
        id: string(item, "call_id").unwrap_or_default(),
        name: match string(item, "namespace") {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        },
        input,
    }
}

/// Returns a tool result. The API has no flag for a failed call.
fn outcome(item: &Value) -> ToolResult {
    let content = item.get("output").cloned().unwrap_or_default();
    ToolResult {
        tool_id: string(item, "call_id").unwrap_or_default(),
        output: joined_text(&content),
        is_error: false,
        content,
    }
}

/// Returns the names of functions and custom tools, `NAMESPACE/NAME` for tools of a namespace, and
/// the types of the vendor's own tools.
fn tool_names(body: &Value) -> Vec<String> {
    let declared = list(body, "tools").iter();
    let added =
        list(body, "input").iter().filter(|item| item.get("type").is_some_and(|kind| kind == "additional_tools"));
    declared.chain(added.flat_map(|item| list(item, "tools"))).flat_map(names).collect()
}

fn names(tool: &Value) -> Vec<String> {
    let Some(name) = string(tool, "name").or_else(|| string(tool, "type")) else { return Vec::new() };
    if tool.get("tools").is_none() {
        return vec![name];
    }
    list(tool, "tools").iter().filter_map(|inner| Some(format!("{name}/{}", string(inner, "name")?))).collect()
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
    object.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
