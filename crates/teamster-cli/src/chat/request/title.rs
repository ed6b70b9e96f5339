//! The title of a permission request: what the agent wants to do, in words.

use std::path::Path;

use teamster::event::{PermissionRequest, ToolKind};

use super::location::Location;
use crate::path_text::home_relative;
use crate::printable::{Printable, printable};

/// Returns the title. Names that the agent or a server chose are quoted, so that none of them can look like the title.
pub(super) fn title(agent: &str, request: &PermissionRequest, directory: &Path, location: &Location) -> Printable {
    let agent = Printable::exact(agent);
    let place = match location {
        Location::Inside => printable!(" in {}", home_relative(directory)),
        Location::Outside => printable!(" outside of {}", home_relative(directory)),
        Location::Unknown => Printable::default(),
    };
    let tool = quoted(request.tool_name.as_str());
    if let Some(server) = &request.server {
        let prefix = format!("mcp__{}__", server.as_str());
        let name = request.tool_name.as_str();
        let tool = quoted(name.strip_prefix(&prefix).unwrap_or(name));
        return printable!("Allow {} to call the tool {} of the MCP server {}?", agent, tool, quoted(server.as_str()));
    }
    if let Some(permission) = &request.permission
        && !matches!(
            permission.as_str(),
            "bash" | "edit" | "read" | "webfetch" | "websearch" | "glob" | "grep" | "list"
        )
    {
        return printable!("Allow {} the permission {} for the tool {}?", agent, quoted(permission.as_str()), tool);
    }
    match &request.kind {
        Some(ToolKind::Execute) => printable!("Allow {} to run this command{}?", agent, place),
        Some(ToolKind::Edit) => printable!("Allow {} to change files{}?", agent, place),
        Some(ToolKind::Read) => printable!("Allow {} to read this?", agent),
        Some(ToolKind::Search) => printable!("Allow {} to search for this?", agent),
        Some(ToolKind::Fetch) => printable!("Allow {} to fetch this from the network?", agent),
        Some(ToolKind::Agent) => printable!("Allow {} to start another agent?", agent),
        Some(ToolKind::Mcp) => printable!("Allow {} to call the MCP tool {}?", agent, tool),
        _ => printable!("Allow {} to use the tool {}?", agent, tool),
    }
}

/// Returns a text as a JSON string.
fn quoted(text: &str) -> Printable {
    Printable::exact(&serde_json::Value::from(text).to_string())
}
