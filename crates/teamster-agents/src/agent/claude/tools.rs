//! The tools of Claude Code: their kinds, and the format of their calls and results.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::Block;
use crate::agent::mcp::Names;
use teamster_types::event::{ToolId, ToolKind, ToolResult, ToolUse};
use teamster_types::json::RawJson;

/// Returns the kind of a built-in tool. The names are those of the init line and of tool calls in 2.1.197, and older ones.
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

/// Whether a rule for all calls of this tool would allow all commands, or changes of all files.
pub(super) fn takes_commands_or_files(name: &str) -> bool {
    matches!(kind(name), ToolKind::Execute | ToolKind::Edit)
}

/// Returns a tool call. MCP tools are named `mcp__SERVER__TOOL`.
pub(super) fn tool_use(id: &str, name: &str, input: RawJson, parent: Option<&str>, servers: &Names) -> ToolUse {
    let (tool_name, server, kind) = match servers.guess(name) {
        Some((server, tool)) => (tool.to_owned(), Some(server), ToolKind::Mcp),
        None => (name.to_owned(), None, kind(name)),
    };
    let input = unwrap_unparsed(input);
    ToolUse::new(id, tool_name, input, kind).with_server(server.map(Into::into)).with_parent(parent.map(ToolId::from))
}

/// Returns the text of arguments that are not JSON. The CLI prints them as `{"__unparsedToolInput": {"raw": TEXT, "len": N}}`
/// (recording `tool_badjson`).
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

/// Returns a tool result. Its content is a string, or a list of blocks. Without `is_error`, the call succeeded (Messages API).
pub(super) fn tool_result(id: &str, block: &Block<'_>, parent: Option<&str>) -> ToolResult {
    let (output, content) = match block.content {
        None => (String::new(), None),
        Some(raw) => read_content(raw),
    };
    let is_error = block.is_error.unwrap_or(false);
    let exit_code = exit_code(&output).filter(|_| is_error);
    ToolResult::new(id, output, Some(is_error))
        .with_exit_code(exit_code)
        .with_content(content)
        .with_parent(parent.map(ToolId::from))
}

/// Returns the exit code from the first line of a failed command's output, `Exit code 3` (recording `tool_fail`).
fn exit_code(output: &str) -> Option<i32> {
    output.lines().next()?.strip_prefix("Exit code ")?.parse().ok()
}

fn read_content(raw: &RawValue) -> (String, Option<Vec<RawJson>>) {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return (text, None);
    }
    let Ok(blocks) = serde_json::from_str::<Vec<RawJson>>(raw.get()) else { return (raw.get().to_owned(), None) };
    let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
    let only_text = texts.len() == blocks.len();
    (texts.join("\n"), (!only_text).then(|| blocks.into_iter().map(mcp_block).collect()))
}

fn text_of(block: &RawJson) -> Option<String> {
    (block.text_member("type")? == "text").then(|| block.text_member("text")).flatten()
}

/// Converts an image block of the Messages API to MCP's form. Other blocks stay as they are.
fn mcp_block(block: RawJson) -> RawJson {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Image {
        data: String,
        mime_type: String,
        r#type: &'static str,
    }
    let image = || {
        let source = block.member("source")?;
        let (data, mime_type) = (source.text_member("data")?, source.text_member("media_type")?);
        Some(RawJson::of(&Image { data, mime_type, r#type: "image" }))
    };
    let is_image = block.text_member("type").is_some_and(|kind| kind == "image");
    is_image.then(image).flatten().unwrap_or(block)
}

/// Whether calls of this tool are subagents.
pub(super) fn is_subagent(name: &str) -> bool {
    matches!(name, "Agent" | "Task")
}
