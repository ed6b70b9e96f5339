//! Claude Code's tools: what sort of work each does, and how their calls and results read.

use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::Block;
use crate::event::{ToolId, ToolKind, ToolResult, ToolUse};

/// What sort of work a built-in tool does. Names as in 2.1.197's init line and tool calls; the older names stay, since
/// they cost nothing.
fn kind(name: &str) -> ToolKind {
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

/// A tool call. MCP tools are named `mcp__SERVER__TOOL`, with what is no letter, digit, `-` or `_` in the server's name
/// written as `_`; `servers` are the configured names, to tell where the server's name ends.
pub(super) fn tool_use(id: &str, name: &str, input: Value, parent: Option<&str>, servers: &[String]) -> ToolUse {
    let mcp = name.strip_prefix("mcp__").and_then(|rest| split_server(rest, servers));
    let (tool_name, server, kind) = match mcp {
        Some((server, tool)) => (tool.to_owned(), Some(server), ToolKind::Mcp),
        None => (name.to_owned(), None, kind(name)),
    };
    let input = unwrap_unparsed(input);
    ToolUse { tool_id: id.into(), tool_name, input, kind, server, parent_tool_id: parent.map(ToolId::from) }
}

/// Arguments that the model wrote and that are no JSON come as `{"__unparsedToolInput": {"raw": TEXT, "len": N}}`
/// (`tool_badjson`).
fn unwrap_unparsed(input: Value) -> Value {
    match input.get("__unparsedToolInput").and_then(|wrapped| wrapped.get("raw")) {
        Some(Value::String(raw)) => Value::String(raw.clone()),
        _ => input,
    }
}

fn split_server<'a>(rest: &'a str, servers: &[String]) -> Option<(String, &'a str)> {
    let known = servers.iter().filter_map(|server| {
        let tool = rest.strip_prefix(&wire_name(server))?.strip_prefix("__")?;
        Some((server.clone(), tool))
    });
    // The longest name wins: with servers `a` and `a__b`, `a__b__c` is tool `c` of `a__b`.
    known
        .max_by_key(|(server, _)| server.len())
        .or_else(|| rest.split_once("__").map(|(server, tool)| (server.to_owned(), tool)))
}

fn wire_name(server: &str) -> String {
    server.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
}

/// A tool result. Its content is a string, or a list of blocks of which any may be text.
pub(super) fn tool_result(id: &str, block: &Block<'_>, parent: Option<&str>) -> ToolResult {
    let (output, content) = match block.content {
        None => (String::new(), None),
        Some(raw) => read_content(raw),
    };
    ToolResult {
        tool_id: id.into(),
        output,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mcp(name: &str, servers: &[&str]) -> (Option<String>, String) {
        let servers: Vec<String> = servers.iter().map(|&server| server.to_owned()).collect();
        let tool = tool_use("t", name, Value::Null, None, &servers);
        (tool.server, tool.tool_name)
    }

    #[test]
    fn an_mcp_tool_is_named_without_its_prefix_and_with_its_server() {
        assert_eq!(mcp("mcp__calc__add", &[]), (Some("calc".into()), "add".into()));
        assert_eq!(mcp("mcp__my_dots__add", &["my.dots"]), (Some("my.dots".into()), "add".into()));
        assert_eq!(mcp("mcp__a__b__c", &["a", "a__b"]), (Some("a__b".into()), "c".into()));
        assert_eq!(mcp("Bash", &["Bash"]), (None, "Bash".into()));
    }
}
