//! OpenCode's tools: their kinds, and the events of their calls.

use serde_json::{Value, json};

use super::wire::{Attachment, ToolPart, ToolState};
use crate::agent::mcp::Names;
use teamster_types::event::{PermissionDenial, Plan, PlanEntry, PlanStatus, ToolId, ToolKind, ToolResult, ToolUse};
use teamster_types::json::RawJson;

/// The built-in tools of 1.18.33: name, permission and kind.
const BUILT_IN: &[(&str, &str, ToolKind)] = &[
    ("bash", "bash", ToolKind::Execute),
    ("edit", "edit", ToolKind::Edit),
    ("write", "edit", ToolKind::Edit),
    ("multiedit", "edit", ToolKind::Edit),
    ("patch", "edit", ToolKind::Edit),
    ("apply_patch", "edit", ToolKind::Edit),
    ("read", "read", ToolKind::Read),
    ("lsp", "lsp", ToolKind::Read),
    ("list", "list", ToolKind::Search),
    ("glob", "glob", ToolKind::Search),
    ("grep", "grep", ToolKind::Search),
    ("websearch", "websearch", ToolKind::Search),
    ("codesearch", "codesearch", ToolKind::Search),
    ("webfetch", "webfetch", ToolKind::Fetch),
    ("task", "task", ToolKind::Agent),
    ("skill", "skill", ToolKind::Unclassified),
    ("question", "question", ToolKind::Unclassified),
    ("todowrite", "todowrite", ToolKind::Unclassified),
    ("todoread", "todoread", ToolKind::Unclassified),
];

/// Returns the permission that a built-in tool requests; `None` for other tools.
pub(super) fn permission_of(tool: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(name, _, _)| *name == tool).map(|(_, permission, _)| *permission)
}

fn kind(tool: &str) -> ToolKind {
    BUILT_IN.iter().find(|(name, _, _)| *name == tool).map_or(ToolKind::Unclassified, |(_, _, kind)| kind.clone())
}

/// A tool call and its result. The agent reports both together.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: ToolUse,
    pub(super) result: ToolResult,
    pub(super) denial: Option<PermissionDenial>,
    pub(super) plan: Option<Plan>,
}

/// Returns the events of a call. MCP tools are named `SERVER_TOOL`, so only tools of known servers can be identified.
pub(super) fn call(part: ToolPart, servers: &Names) -> Call {
    let ToolPart { id, tool, call_id, state } = part;
    let id = ToolId::from(call_id.filter(|id| !id.is_empty()).unwrap_or(id));
    // A call of an unavailable tool is reported as a completed call of the tool `invalid` (`unknown_tool`, `perm_bash_deny`).
    let input = (tool == "invalid").then(|| state.input.to_value().unwrap_or_default());
    let requested = input.as_ref().and_then(|input| input.get("tool")?.as_str());
    let invalid = tool == "invalid";
    let name = requested.unwrap_or(&tool).to_owned();
    let (tool_name, server) = match servers.split(&name) {
        Some((server, rest)) => (rest.to_owned(), Some(server)),
        None => (name.clone(), None),
    };
    let kind = if server.is_some() { ToolKind::Mcp } else { kind(&tool_name) };
    let output = output(&state);
    let denied = is_denied(&name, server.is_some(), &output);
    let denial = denied.then(|| {
        PermissionDenial::new(servers.rule(&name))
            .with_tool_id(Some(id.clone()))
            .with_input(Some(state.input.clone()).filter(|input| !input.is_null()))
    });
    let plan = (tool_name == "todowrite").then(|| plan(&state)).flatten();
    Call {
        result: ToolResult::new(id.clone(), output, Some(invalid || failed(&state)))
            .with_exit_code(exit_code(&state))
            .with_content(state.attachments.as_deref().and_then(content)),
        tool: ToolUse::new(id, tool_name, state.input, kind).with_server(server.map(Into::into)),
        denial,
        plan,
    }
}

fn output(state: &ToolState) -> String {
    state.output.clone().or_else(|| state.error.clone()).unwrap_or_default()
}

/// Returns whether a call failed. A command with a non-zero exit code, or a timeout (`exit: null`), is `completed`
/// (`tool_fail`).
fn failed(state: &ToolState) -> bool {
    let exit = state.metadata.as_ref().and_then(|metadata| metadata.get("exit"));
    state.status == "error" || exit.is_some_and(|code| code.as_i64() != Some(0))
}

fn exit_code(state: &ToolState) -> Option<i32> {
    state.metadata.as_ref()?.get("exit")?.as_i64()?.try_into().ok()
}

/// Returns whether a call was denied, by the messages of 1.18.33. A built-in tool, or one of our servers, is "unavailable" if
/// a rule removed it.
fn is_denied(name: &str, is_ours: bool, output: &str) -> bool {
    output.starts_with("The user rejected permission to use this") // perm_bash_ask
        || output.starts_with("The user has specified a rule which prevents you") // perm_bash_pattern_deny
        || (output.contains("Model tried to call unavailable tool")
            && (is_ours || permission_of(name).is_some())) // perm_bash_deny, perm_readonly
}

fn plan(state: &ToolState) -> Option<Plan> {
    let todos = state.metadata.as_ref()?.get("todos")?.as_array()?;
    let entry = |todo: &Value| {
        Some(PlanEntry::new(todo.get("content")?.as_str()?, PlanStatus::from(todo.get("status")?.as_str()?)))
    };
    Some(Plan::new(todos.iter().filter_map(entry).collect()))
}

/// Returns the images of a tool's result as MCP content.
fn content(attachments: &[Attachment]) -> Option<Vec<RawJson>> {
    let block = |file: &Attachment| {
        let data = file.url.strip_prefix("data:")?.split_once(";base64,")?.1;
        Some(json!({"type": "image", "data": data, "mimeType": file.mime}).into())
    };
    let images = attachments.iter().filter(|file| file.mime.starts_with("image/"));
    let blocks: Vec<_> = images.filter_map(block).collect();
    (!blocks.is_empty()).then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tool: &str, state: &Value, servers: &[&str]) -> Call {
        let servers =
            servers.iter().map(|&name| (name.to_owned(), teamster_types::request::McpServer::stdio("x"))).collect();
        let servers = Names::new(&super::super::mcp::STYLE, &servers).unwrap();
        call(
            serde_json::from_value(json!({"id": "prt", "tool": tool, "callID": "c", "state": state})).unwrap(),
            &servers,
        )
    }

    #[test]
    fn a_command_that_fails_or_times_out_is_an_error_of_its_call() {
        for (exit, error) in [(json!(0), false), (json!(7), true), (Value::Null, true)] {
            let state = json!({"status": "completed", "output": "out", "metadata": {"exit": exit}});
            assert_eq!(of("bash", &state, &[]).result.is_error, Some(error), "{exit}");
        }
    }

    #[test]
    fn an_unknown_tool_is_no_denial_and_a_removed_tool_is() {
        for (name, denied) in [("bash", true), ("write", true), ("teleport", false), ("calc_add", true)] {
            let text = format!("The arguments are invalid: Model tried to call unavailable tool '{name}'.");
            let state = json!({"status": "completed", "input": {"tool": name}, "output": text});
            let call = of("invalid", &state, &["calc"]);
            assert_eq!(call.denial.is_some(), denied, "{name}");
            assert_eq!(call.result.is_error, Some(true));
        }
    }

    #[test]
    fn an_image_becomes_mcp_content_and_todos_become_a_plan() {
        let file =
            json!([{"mime": "image/png", "url": "data:image/png;base64,aGk="}, {"mime": "text/plain", "url": "x"}]);
        let state = json!({"status": "completed", "output": "", "attachments": file});
        let blocks = of("read", &state, &[]).result.content.unwrap();
        assert_eq!(blocks, [json!({"type": "image", "data": "aGk=", "mimeType": "image/png"})]);
        let todos = json!([{"content": "One", "status": "in_progress", "priority": "high"}, {"no": 1}]);
        let plan = of("todowrite", &json!({"status": "completed", "metadata": {"todos": todos}}), &[]).plan.unwrap();
        assert_eq!(plan.entries, [PlanEntry::new("One", PlanStatus::InProgress)]);
    }
}
