//! The tools of Gemini CLI.

use crate::agent::mcp::Names;
use teamster_types::event::{ToolKind, ToolUse};
use teamster_types::json::RawJson;

/// Returns the kind of a built-in tool, by the name that 0.61.0 reports to its model.
pub(super) fn kind(name: &str) -> ToolKind {
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

/// The prefix of the names of MCP tools.
pub(super) const MCP_PREFIX: &str = "mcp_";

/// Returns a tool call. MCP tools are named `mcp_SERVER_TOOL`.
pub(super) fn tool_use(id: &str, name: &str, input: RawJson, servers: &Names) -> ToolUse {
    let (tool_name, server, kind) = match servers.guess(name) {
        Some((server, tool)) => (tool.to_owned(), Some(server), ToolKind::Mcp),
        None if name.starts_with(MCP_PREFIX) => (name.to_owned(), None, ToolKind::Mcp),
        None => (name.to_owned(), None, kind(name)),
    };
    ToolUse::new(id, tool_name, input, kind).with_server(server.map(Into::into))
}
