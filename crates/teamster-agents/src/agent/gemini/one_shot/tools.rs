//! Results of tool calls, denials and plans in the output of a run.

use serde_json::Value;

use super::super::tools::{MCP_PREFIX, kind};
use super::wire::Line;
use teamster_types::event::{Plan, PlanEntry, PlanStatus, ToolKind, ToolResult};
use teamster_types::json::RawJson;

/// Returns whether a permission mode may remove the tool. A call of a removed tool fails as if the tool did not exist
/// (`perm_default_shell`).
fn is_withheld(name: &str) -> bool {
    name.starts_with(MCP_PREFIX)
        || matches!(kind(name), ToolKind::Execute | ToolKind::Edit | ToolKind::Fetch | ToolKind::Agent)
        || matches!(name, "enter_plan_mode" | "exit_plan_mode" | "activate_skill" | "ask_user")
}

/// Returns the result of a tool call. If an MCP tool failed, only the error's message contains its output (`mcp_tool_error`). A
/// command that exits with an error is reported as a success, so `is_error` is unknown (`tool_fail`).
pub(super) fn tool_result(id: &str, name: Option<&str>, line: &mut Line<'_>) -> ToolResult {
    let failed = line.status.as_deref() == Some("error");
    let output = line.output.take().unwrap_or_default();
    let output = match line.error.as_ref().filter(|_| failed) {
        Some(error) if error.kind == "mcp_tool_error" => mcp_error(&error.message).unwrap_or(output),
        Some(error) if output.is_empty() => error.message.clone(),
        _ => output,
    };
    let unknown = !failed && name == Some("run_shell_command");
    ToolResult::new(id, output, (!unknown).then_some(failed))
}

/// Returns the tool's output from `... with response: [{"functionResponse": {"response": ...}}]`.
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

/// Returns whether a call failed because the permissions deny it.
pub(super) fn is_denied(name: &str, line: &Line<'_>) -> bool {
    let Some(error) = line.error.as_ref().filter(|_| line.status.as_deref() == Some("error")) else { return false };
    match &*error.kind {
        "policy_violation" => true,
        "tool_not_registered" => is_withheld(name),
        "unhandled_exception" => error.message.contains("requires user confirmation"),
        _ => false,
    }
}

/// Returns why a hook of the user stopped the agent, if the call's result reports that. The CLI then reports a success
/// (`hook_stopped_tool`).
pub(super) fn stop_of_hook(line: &Line<'_>) -> Option<String> {
    const STOPPED: &str = "Agent execution stopped by hook: ";
    let error = line.error.as_ref().filter(|error| error.kind == "stop_execution")?;
    Some(format!("{STOPPED}{}", error.message.strip_prefix(STOPPED).unwrap_or(&error.message)))
}

/// Returns the plan, if a call of `write_todos` contains one.
pub(super) fn plan(name: &str, input: &RawJson) -> Option<Plan> {
    let input = (name == "write_todos").then(|| input.to_value().ok()).flatten()?;
    let todos = input.get("todos")?.as_array()?;
    let text = |todo: &Value, field: &str| todo.get(field).and_then(Value::as_str).map(str::to_owned);
    let entries = todos.iter().filter_map(|todo| {
        let status = text(todo, "status")?;
        Some(PlanEntry::new(text(todo, "description")?, PlanStatus::from(&*status)))
    });
    Some(Plan::new(entries.collect()))
}
