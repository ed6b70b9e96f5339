//! Tool calls: one `tool_use`, parts of the output, and one `tool_result`, in this order.

use super::Transcript;
use crate::bounded::MAX_ENTRIES;
use teamster_types::event::{Event, ToolId, ToolKind, ToolOutput, ToolResult, ToolUse};

/// The number of bytes of a running tool's output that are emitted.
const MAX_OUTPUT: usize = 1 << 20;

/// A tool call without its result.
#[derive(Clone, Debug)]
pub(super) struct OpenTool {
    pub(super) name: String,
    parent: Option<ToolId>,
    /// The bytes of its output so far.
    output_bytes: usize,
}

impl Transcript {
    /// Records a tool call. Returns whether it is emitted: a second call with the same id is not.
    pub(super) fn open(&mut self, tool: &ToolUse, out: &mut impl Extend<Event>) -> bool {
        if self.open_tools.contains(&tool.tool_id) || self.closed_tools.contains(&tool.tool_id) {
            return false;
        }
        self.has_tools = true;
        self.answers_in_attempt += 1;
        let open =
            OpenTool { name: tool.tool_name.as_str().to_owned(), parent: tool.parent_tool_id.clone(), output_bytes: 0 };
        let bytes = open.name.len() + open.parent.as_ref().map_or(0, |parent| parent.as_str().len());
        let excess = self.open_tools.insert(tool.tool_id.clone(), open, bytes);
        let why = format!("closed without a result: more than {MAX_ENTRIES} calls are open");
        self.close_without_result(excess, &why, out);
        true
    }

    /// Records a part of a running tool's output. Returns whether it is emitted.
    pub(super) fn add_output(&mut self, output: &ToolOutput) -> bool {
        let Some(tool) = self.open_tools.get_mut(&output.tool_id) else { return false };
        tool.output_bytes = tool.output_bytes.saturating_add(output.text.len());
        !output.text.is_empty() && tool.output_bytes <= MAX_OUTPUT
    }

    /// Emits an error result for calls of which the agent reported no result.
    pub(super) fn close_without_result(
        &mut self,
        calls: Vec<(ToolId, OpenTool)>,
        why: &str,
        out: &mut impl Extend<Event>,
    ) {
        for (tool_id, tool) in calls {
            self.closed_tools.add(tool_id.clone());
            out.extend([Event::ToolResult(Box::new(
                ToolResult::new(tool_id, why, Some(true)).with_parent(tool.parent),
            ))]);
        }
    }

    /// Records the result of a tool call. Returns whether it is emitted: a second result is not.
    pub(super) fn close(&mut self, result: &ToolResult, out: &mut impl Extend<Event>) -> bool {
        if self.closed_tools.contains(&result.tool_id) {
            return false;
        }
        if self.open_tools.remove(&result.tool_id).is_none() {
            // A result without a call: the call is emitted first, with what is known of it.
            out.extend([Event::ToolUse(Box::new(
                ToolUse::new(result.tool_id.clone(), "unknown", serde_json::json!({}).into(), ToolKind::Unclassified)
                    .with_parent(result.parent_tool_id.clone()),
            ))]);
        }
        self.has_tools = true;
        self.closed_tools.add(result.tool_id.clone());
        true
    }
}
