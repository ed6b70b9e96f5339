//! Claude Code's tools: what sort of work each does, and how their calls and results read.

use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::Block;
use crate::agent::mcp::Names;
use crate::event::{ToolId, ToolKind, ToolResult, ToolUse};
use crate::json::RawJson;

/// What sort of work a built-in tool does. Names as in 2.1.197's init line and tool calls; the older names stay, since
/// they cost nothing.
pub(super) fn kind(name: &str) -> ToolKind {
    match name {
        "Bash" | "BashOutput" | "KillShell" | "PowerShell" => ToolKind::Execute,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Read" | "NotebookRead" => ToolKind::Read,
        "Glob" | "Grep" | "LS" | "WebSearch" | "web_search" | "ToolSearch" => ToolKind::Search,
        "WebFetch" | "web_fetch" => ToolKind::Fetch,
        "Agent" | "Task" | "SendMessage" => ToolKind::Agent,
        _ => ToolKind::Unclassified,
    }
}

/// Whether a rule for all calls of this tool would allow any command or the change of any file.
pub(super) fn takes_commands_or_files(name: &str) -> bool {
    matches!(kind(name), ToolKind::Execute | ToolKind::Edit)
}

/// A tool call. MCP tools are named `mcp__SERVER__TOOL`.
pub(super) fn tool_use(id: &str, name: &str, input: RawJson, parent: Option<&str>, servers: &Names) -> ToolUse {
    let (tool_name, server, kind) = match servers.guess(name) {
        Some((server, tool)) => (tool.to_owned(), Some(server), ToolKind::Mcp),
        None => (name.to_owned(), None, kind(name)),
    };
    let input = unwrap_unparsed(input);
    ToolUse {
        tool_id: id.into(),
        tool_name: tool_name.into(),
        input,
        kind,
        server: server.map(Into::into),
        parent_tool_id: parent.map(ToolId::from),
    }
}

/// Arguments that the model wrote and that are no JSON come as `{"__unparsedToolInput": {"raw": TEXT, "len": N}}`
/// (`tool_badjson`).
fn unwrap_unparsed(input: RawJson) -> RawJson {
    if !input.as_str().contains("__unparsedToolInput") {
        return input;
    }
    let value = input.to_value().unwrap_or_default();
    match value.pointer("/__unparsedToolInput/raw") {
        Some(raw @ Value::String(_)) => raw.into(),
        _ => input,
    }
}

/// A tool result. Its content is a string, or a list of blocks of which any may be text.
pub(super) fn tool_result(id: &str, block: &Block<'_>, parent: Option<&str>) -> ToolResult {
    let (output, content) = match block.content {
        None => (String::new(), None),
        Some(raw) => read_content(raw),
    };
    ToolResult {
        tool_id: id.into(),
        output: output.into(),
        is_error: block.is_error,
        content,
        parent_tool_id: parent.map(ToolId::from),
    }
}

fn read_content(raw: &RawValue) -> (String, Option<Vec<Value>>) {
    match serde_json::from_str(raw.get()) {
        Ok(Value::String(text)) => (text, None),
        Ok(Value::Array(blocks)) => {
            let texts: Vec<&str> = blocks.iter().filter_map(text_of).collect();
            let output = texts.join("\n");
            let only_text = texts.len() == blocks.len();
            (output, (!only_text).then(|| blocks.into_iter().map(mcp_block).collect()))
        }
        _ => (raw.get().to_owned(), None),
    }
}

fn text_of(block: &Value) -> Option<&str> {
    (block.get("type")? == "text").then(|| block.get("text")?.as_str()).flatten()
}

/// An image of the Messages API in MCP's form; other blocks as they are.
fn mcp_block(block: Value) -> Value {
    let image = (block.get("type").is_some_and(|kind| kind == "image"))
        .then(|| {
            let source = block.get("source")?;
            Some(serde_json::json!({
                "type": "image", "data": source.get("data")?, "mimeType": source.get("media_type")?,
            }))
        })
        .flatten();
    image.unwrap_or(block)
}

/// Whether calls of this tool are subagents.
pub(super) fn is_subagent(name: &str) -> bool {
    matches!(name, "Agent" | "Task")
}
