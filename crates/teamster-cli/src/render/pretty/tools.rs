//! What the agent does: a line for each call, with its outcome on it or after it.

use std::io::{self, Write};
use std::time::Instant;

use teamster::event::{ToolId, ToolResult, ToolUse};

use super::page::Kind;
use super::{BAD, BOLD, BULLET, DIM, GOOD, NORMAL, NOTICEABLE, Open, Pretty, call, closing};
use crate::printable::{Printable, printable};

/// Columns that a call leaves free on its line, for its outcome.
const OUTCOME_COLUMNS: usize = 14;
/// An error is told on the call's line if so many columns are left.
const ERROR_COLUMNS: usize = 30;

/// A call without a result yet.
#[derive(Debug)]
pub(super) struct Call {
    label: Printable,
    gist: Printable,
    since: Instant,
    depth: usize,
    parent: Option<ToolId>,
}

impl Pretty {
    pub(super) fn call(&mut self, tool: &ToolUse, now: Instant, out: &mut dyn Write) -> io::Result<()> {
        let parent = tool.parent_tool_id.clone();
        let depth = self.depth(parent.as_ref());
        let label = call::label(tool);
        let before = 2 * depth + 2 + label.columns();
        let room = self.screen.width.saturating_sub(before + OUTCOME_COLUMNS);
        let gist = match call::gist(tool, self.cwd.as_deref()) {
            gist if gist.is_empty() => gist,
            gist => printable!(" {}", gist).cut(room),
        };
        self.place_under(parent.as_ref(), out)?;
        self.page.begin(Kind::Work, out)?;
        self.write(depth, &[(&"● ".into(), BULLET), (&label, BOLD), (&gist, NORMAL)], out)?;
        self.open = Open::Call { tool: tool.tool_id.clone(), columns: before + gist.columns() };
        self.calls.insert(tool.tool_id.clone(), Call { label, gist, since: now, depth, parent });
        self.trail.push(tool.tool_id.clone());
        Ok(())
    }

    pub(super) fn outcome(&mut self, result: &ToolResult, now: Instant, out: &mut dyn Write) -> io::Result<()> {
        let Some(call) = self.calls.remove(&result.tool_id) else { return Ok(()) };
        let elapsed = Some(now.saturating_duration_since(call.since)).filter(|time| *time >= NOTICEABLE);
        let took = elapsed.map(closing::duration);
        let error = (result.is_error == Some(true)).then(|| first_line(&result.output));
        let open = match &self.open {
            Open::Call { tool, columns } if *tool == result.tool_id => Some(*columns),
            _ => None,
        };
        self.open = Open::Nothing;
        self.place_under(call.parent.as_ref(), out)?;
        let width = self.screen.width;
        match (open, error) {
            (Some(_), None) => {
                let took = took.map(|took| printable!(" {}", took)).unwrap_or_default();
                self.write(0, &[(&"  ✓".into(), GOOD), (&took, DIM), (&"\n".into(), NORMAL)], out)
            }
            (Some(used), Some(error)) if width >= used + ERROR_COLUMNS.min(error.columns() + 5) => {
                let error = error.cut(width.saturating_sub(used + 5));
                self.write(0, &[(&"  ✗ ".into(), BAD), (&error, BAD), (&"\n".into(), NORMAL)], out)
            }
            (Some(_), Some(error)) => {
                let depth = call.depth + 1;
                let error = error.cut(width.saturating_sub(2 * depth + 3));
                self.line(Kind::Work, depth, &[(&"✗ ".into(), BAD), (&error, BAD)], out)
            }
            (None, None) => {
                let took = took.map(|took| printable!(" ({})", took)).unwrap_or_default();
                let parts = [(&"✓ ".into(), GOOD), (&call.label, BOLD), (&call.gist, NORMAL), (&took, DIM)];
                self.line(Kind::Work, call.depth, &parts, out)
            }
            (None, Some(error)) => {
                let gist = call.gist.cut(width / 3);
                let used = 2 * call.depth + 2 + call.label.columns() + gist.columns() + 2;
                let error = error.cut(width.saturating_sub(used + 1));
                let parts =
                    [(&"✗ ".into(), BAD), (&call.label, BOLD), (&gist, NORMAL), (&": ".into(), NORMAL), (&error, BAD)];
                self.line(Kind::Work, call.depth, &parts, out)
            }
        }
    }

    /// How deep what belongs to this call stands.
    pub(super) fn depth(&self, parent: Option<&ToolId>) -> usize {
        parent.map_or(0, |parent| self.calls.get(parent).map_or(1, |call| call.depth + 1))
    }

    /// Sees to it that the next line is read as a part of this call: where others work at the same time, indentation
    /// alone does not tell, and the call is named once more.
    pub(super) fn place_under(&mut self, parent: Option<&ToolId>, out: &mut dyn Write) -> io::Result<()> {
        let Some(parent) = parent else {
            self.trail.clear();
            return Ok(());
        };
        if let Some(at) = self.trail.iter().position(|place| place == parent) {
            self.trail.truncate(at + 1);
            return Ok(());
        }
        self.trail = vec![parent.clone()];
        let Some(call) = self.calls.get(parent) else { return Ok(()) };
        let (depth, name) = (call.depth, printable!("┄ {}{}", &call.label, &call.gist));
        self.line(Kind::Work, depth, &[(&name, DIM)], out)
    }
}

fn first_line(output: &str) -> Printable {
    output.lines().map(Printable::message).find(|line| !line.is_empty()).unwrap_or_else(|| "failed".into())
}
