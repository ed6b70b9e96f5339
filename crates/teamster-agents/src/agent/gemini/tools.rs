//! Gemini CLI's tools: what sort of work each does, and how their calls and results read.

use serde_json::Value;

use super::wire::Line;
use crate::agent::mcp::Names;
use teamster_types::event::{Plan, PlanEntry, PlanStatus, ToolKind, ToolResult, ToolUse};
use teamster_types::json::RawJson;

/// What sort of work a built-in tool does. Names as 0.61.0 offers them to its model.
fn kind(name: &str) -> ToolKind {
    match name {
        "run_shell_command" | "list_background_processes" | "read_background_output" => ToolKind::Execute,
        "replace" | "write_file" => ToolKind::Edit,
        "read_file" | "read_many_files" | "get_internal_docs" | "read_mcp_resource" => ToolKind::Read,
        "glob" | "grep_search" | "list_directory" | "google_web_search" | "list_mcp_resources" => ToolKind::Search,
        "web_fetch" => ToolKind::Fetch,
        "invoke_agent" => ToolKind::Agent,
        _ => ToolKind::Unclassified,
    }
}

/// Tools that a mode takes out of the offer: a call all the same is answered as if there were no such tool
/// (`perm_default_shell`).
fn is_withheld(name: &str) -> bool {
    name.starts_with(MCP_PREFIX)
        || matches!(kind(name), ToolKind::Execute | ToolKind::Edit | ToolKind::Fetch | ToolKind::Agent)
        || matches!(name, "enter_plan_mode" | "exit_plan_mode" | "activate_skill" | "ask_user")
}

const MCP_PREFIX: &str = "mcp_";

/// A tool call. MCP tools are named `mcp_SERVER_TOOL`.
pub(super) fn tool_use(id: &str, name: &str, input: RawJson, servers: &Names) -> ToolUse {
    let (tool_name, server, kind) = match servers.guess(name) {
        Some((server, tool)) => (tool.to_owned(), Some(server), ToolKind::Mcp),
        None if name.starts_with(MCP_PREFIX) => (name.to_owned(), None, ToolKind::Mcp),
        None => (name.to_owned(), None, kind(name)),
    };
    ToolUse {
        tool_id: id.into(),
        tool_name: tool_name.into(),
        input,
        kind,
        server: server.map(Into::into),
        parent_tool_id: None,
    }
}

/// Its outcome. What an MCP tool said of its failure stands in the error's message alone (`mcp_tool_error`). A command that
/// exits with an error is a success here, so nothing is said of one (`tool_fail`).
pub(super) fn tool_result(id: &str, name: Option<&str>, line: &mut Line<'_>) -> ToolResult {
    let failed = line.status.as_deref() == Some("error");
    let output = line.output.take().unwrap_or_default();
    let output = match line.error.as_ref().filter(|_| failed) {
        Some(error) if error.kind == "mcp_tool_error" => mcp_error(&error.message).unwrap_or(output),
        Some(error) if output.is_empty() => error.message.clone(),
        _ => output,
    };
    let unknown = !failed && name == Some("run_shell_command");
    ToolResult {
        tool_id: id.into(),
        output: output.into(),
        is_error: (!unknown).then_some(failed),
        content: None,
        parent_tool_id: None,
    }
}

/// What the tool said, out of `... with response: [{"functionResponse": {"response": ...}}]`.
fn mcp_error(message: &str) -> Option<String> {
    let (_, json) = message.split_once(" with response: ")?;
    let parts: Value = serde_json::from_str(json).ok()?;
    let response = parts.pointer("/0/functionResponse/response")?;
    if let Some(text) = response.pointer("/error/message").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let blocks = response.get("content")?.as_array()?;
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    Some(texts.join("\n"))
}

/// Whether a call failed since the permissions do not allow it.
pub(super) fn is_denied(name: &str, line: &Line<'_>) -> bool {
    let Some(error) = line.error.as_ref().filter(|_| line.status.as_deref() == Some("error")) else { return false };
    match &*error.kind {
        "policy_violation" => true,
        "tool_not_registered" => is_withheld(name),
        "unhandled_exception" => error.message.contains("requires user confirmation"),
        _ => false,
    }
}

/// The to-do list that a call of `write_todos` gives.
pub(super) fn plan(name: &str, input: &RawJson) -> Option<Plan> {
    let input = (name == "write_todos").then(|| input.to_value().ok()).flatten()?;
    let todos = input.get("todos")?.as_array()?;
    let text = |todo: &Value, field: &str| todo.get(field).and_then(Value::as_str).map(str::to_owned);
    let entries = todos.iter().filter_map(|todo| {
        let status = text(todo, "status")?;
        Some(PlanEntry { content: text(todo, "description")?.into(), status: PlanStatus::from(&*status) })
    });
    Some(Plan { entries: entries.collect() })
}
