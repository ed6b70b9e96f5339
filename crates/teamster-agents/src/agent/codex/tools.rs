//! The calls and results of Codex's tools. Neither interface reports the names that the model uses for tools, only the types of
//! items.

use serde_json::{Map, Value, json};

use super::items::{Item, McpResult};
use crate::agent::mcp::Names;
use teamster_types::event::{PermissionDenial, ToolKind, ToolResult, ToolUse};
use teamster_types::json::RawJson;

/// Returns the tool call of an item; `None` if the item is not a tool call.
pub(super) fn call(id: &str, item: &Item, servers: &Names) -> Option<ToolUse> {
    let (name, kind, input) = match item.kind.as_str() {
        "command_execution" => ("command_execution", ToolKind::Execute, json!({ "command": item.command }).into()),
        "file_change" => {
            let changes = item.changes.iter().flatten();
            let changes: Vec<_> = changes.map(|change| json!({ "path": change.path, "kind": change.kind })).collect();
            ("file_change", ToolKind::Edit, json!({ "changes": changes }).into())
        }
        "mcp_tool_call" => {
            let name = item.tool.as_deref().unwrap_or("unknown");
            (name, ToolKind::Mcp, item.arguments.clone().unwrap_or_else(|| json!({}).into()))
        }
        "web_search" => ("web_search", web_kind(item), web_input(item).into()),
        "collab_tool_call" => {
            let mut input = Map::new();
            if let Some(prompt) = &item.prompt {
                input.insert("prompt".to_owned(), prompt.as_str().into());
            }
            if let Some(receivers) = item.receiver_thread_ids.as_ref().filter(|ids| !ids.is_empty()) {
                input.insert("receiverThreadIds".to_owned(), json!(receivers));
            }
            (item.tool.as_deref().unwrap_or("unknown"), ToolKind::Agent, Value::Object(input).into())
        }
        _ => return None,
    };
    let server = item.server.as_deref().filter(|_| item.kind == "mcp_tool_call");
    let server = server.map(|server| servers.given(server).to_owned());
    Some(ToolUse::new(id, name, input, kind).with_server(server.map(Into::into)))
}

fn web_kind(item: &Item) -> ToolKind {
    match action(item) {
        Some("open_page" | "find_in_page") => ToolKind::Fetch,
        _ => ToolKind::Search,
    }
}

fn action(item: &Item) -> Option<&str> {
    item.action.as_ref()?.get("type")?.as_str()
}

fn web_input(item: &Item) -> Value {
    let mut input = Map::new();
    if let Some(query) = item.query.as_deref().filter(|query| !query.is_empty()) {
        input.insert("query".to_owned(), query.into());
    }
    if let Some(action) = &item.action {
        input.insert("action".to_owned(), action.clone());
    }
    Value::Object(input)
}

/// Returns the result of a completed tool item.
pub(super) fn result(id: &str, item: &Item) -> ToolResult {
    let (output, content) = match item.kind.as_str() {
        "command_execution" => (command_output(item), None),
        // The files of a patch that was not applied are not its result.
        "file_change" if item.status.as_deref() == Some("declined") => ("declined".to_owned(), None),
        "file_change" => {
            let lines = item.changes.iter().flatten().map(|change| format!("{} {}", change.kind, change.path));
            (lines.collect::<Vec<_>>().join("\n"), None)
        }
        "mcp_tool_call" => match (&item.error, &item.result) {
            (Some(error), _) => (error.message.clone(), None),
            (None, Some(result)) => mcp_output(result),
            (None, None) => (String::new(), None),
        },
        "collab_tool_call" => (agents(item), None),
        _ => (String::new(), None),
    };
    let is_error = item.status.as_deref().map(|status| matches!(status, "failed" | "declined"));
    let exit_code = item.exit_code.and_then(|code| i32::try_from(code).ok());
    ToolResult::new(id, output, is_error).with_exit_code(exit_code).with_content(content)
}

/// Returns standard output and standard error, interleaved. If there is no output, it describes the exit code or the denial.
fn command_output(item: &Item) -> String {
    let output = item.aggregated_output.clone().unwrap_or_default();
    match (item.exit_code, item.status.as_deref()) {
        (Some(code), Some("failed")) if output.is_empty() => format!("exit code {code}"),
        (_, Some("declined")) if output.is_empty() => "declined".to_owned(),
        _ => output,
    }
}

fn mcp_output(result: &McpResult) -> (String, Option<Vec<RawJson>>) {
    let text_of = |block: &RawJson| {
        block.text_member("type").filter(|kind| kind == "text").and_then(|_| block.text_member("text"))
    };
    let texts: Vec<String> = result.content.iter().filter_map(text_of).collect();
    let only_text = texts.len() == result.content.len();
    let output = match &result.structured_content {
        Some(document) if texts.is_empty() && !document.is_null() => document.as_str().to_owned(),
        _ => texts.join("\n"),
    };
    (output, (!only_text).then(|| result.content.clone()))
}

fn agents(item: &Item) -> String {
    let states = item.agents_states.iter().flatten();
    let lines = states.map(|(thread, state)| match &state.message {
        Some(message) => format!("{thread}: {}: {message}", state.status),
        None => format!("{thread}: {}", state.status),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the denial of a call, if the item reports one.
pub(super) fn denial(call: &ToolUse, item: &Item) -> Option<PermissionDenial> {
    // mcp_approval_default, app_mcp_approval_decline
    let phrases = ["requires approval", "user rejected"];
    let unapproved =
        item.error.as_ref().is_some_and(|error| phrases.iter().any(|phrase| error.message.contains(phrase)));
    let denied = item.status.as_deref() == Some("declined") || unapproved;
    denied.then(|| {
        PermissionDenial::new(match &call.server {
            // The name of the rule that would have allowed the call.
            Some(server) => format!("mcp__{}__{}", server.as_str(), call.tool_name.as_str()).into(),
            None => call.tool_name.clone(),
        })
        .with_tool_id(Some(call.tool_id.clone()))
        .with_input(Some(call.input.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declined_patch_does_not_list_its_files_as_a_result() {
        let output = |status: &str| {
            let item = serde_json::json!({
                "type": "file_change", "status": status, "changes": [{"path": "/p/a", "kind": "add"}],
            });
            let result = result("t", &serde_json::from_value(item).unwrap());
            (result.output.as_str().to_owned(), result.is_error)
        };
        assert_eq!(output("declined"), ("declined".to_owned(), Some(true)));
        assert_eq!(output("completed"), ("add /p/a".to_owned(), Some(false)));
    }
}
