//! Tool calls: one `tool_use`, parts of the output, and one `tool_result`, in this order.

use super::attempts::MAX_IDS;
use crate::bounded::{Bounded, Ids as BoundedIds, MAX_ENTRIES};
use teamster_types::event::{Event, ToolId, ToolKind, ToolOutput, ToolResult, ToolUse};

/// The number of bytes of a running tool's output that are emitted.
const MAX_OUTPUT: usize = 1 << 20;

/// The tool calls of a run.
#[derive(Debug)]
pub(super) struct Tools {
    open: Bounded<ToolId, OpenTool>,
    closed: BoundedIds<ToolId>,
    /// The number of calls.
    calls: usize,
}

/// A tool call without its result.
#[derive(Clone, Debug)]
struct OpenTool {
    name: String,
    parent: Option<ToolId>,
    /// The bytes of its output so far.
    output_bytes: usize,
}

impl Default for Tools {
    fn default() -> Self {
        Self { open: Bounded::default(), closed: BoundedIds::of(MAX_IDS), calls: 0 }
    }
}

impl Tools {
    /// Returns the number of calls.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// Returns the name of the tool that has been running for the longest time.
    pub(super) fn running(&self) -> Option<&str> {
        self.open.iter().next().map(|(_, tool)| tool.name.as_str())
    }

    /// Returns the ids of closed calls that are remembered.
    pub(super) fn closed(&self) -> impl Iterator<Item = ToolId> {
        self.closed.iter().map(|(id, ())| id.clone())
    }

    /// Closes all open calls with an error.
    pub(super) fn interrupt(&mut self, out: &mut impl Extend<Event>) {
        let open = self.open.take();
        self.close_without_result(open, "interrupted", out);
    }

    /// Records a tool call. Returns whether it is emitted: a second call with the same id is not.
    pub(super) fn open(&mut self, tool: &ToolUse, out: &mut impl Extend<Event>) -> bool {
        if self.open.contains(&tool.tool_id) || self.closed.contains(&tool.tool_id) {
            return false;
        }
        self.calls += 1;
        let open =
            OpenTool { name: tool.tool_name.as_str().to_owned(), parent: tool.parent_tool_id.clone(), output_bytes: 0 };
        let bytes = open.name.len() + open.parent.as_ref().map_or(0, |parent| parent.as_str().len());
        let excess = self.open.insert(tool.tool_id.clone(), open, bytes);
        let why = format!("closed without a result: more than {MAX_ENTRIES} calls are open");
        self.close_without_result(excess, &why, out);
        true
    }

    /// Records a part of a running tool's output. Returns whether it is emitted.
    pub(super) fn add_output(&mut self, output: &ToolOutput) -> bool {
        let Some(tool) = self.open.get_mut(&output.tool_id) else { return false };
        tool.output_bytes = tool.output_bytes.saturating_add(output.text.len());
        !output.text.is_empty() && tool.output_bytes <= MAX_OUTPUT
    }

    /// Emits an error result for each call that has no result from the agent.
    fn close_without_result(&mut self, calls: Vec<(ToolId, OpenTool)>, why: &str, out: &mut impl Extend<Event>) {
        for (tool_id, tool) in calls {
            self.closed.add(tool_id.clone());
            out.extend([Event::ToolResult(Box::new(
                ToolResult::new(tool_id, why, Some(true)).with_parent(tool.parent),
            ))]);
        }
    }

    /// Records the result of a tool call. Returns whether it is emitted: a second result is not.
    pub(super) fn close(&mut self, result: &ToolResult, out: &mut impl Extend<Event>) -> bool {
        if self.closed.contains(&result.tool_id) {
            return false;
        }
        if self.open.remove(&result.tool_id).is_none() {
            // A result without a call: the call is emitted first, with what is known of it.
            self.calls += 1;
            out.extend([Event::ToolUse(Box::new(
                ToolUse::new(result.tool_id.clone(), "unknown", serde_json::json!({}).into(), ToolKind::Unclassified)
                    .with_parent(result.parent_tool_id.clone()),
            ))]);
        }
        self.closed.add(result.tool_id.clone());
        true
    }
}
