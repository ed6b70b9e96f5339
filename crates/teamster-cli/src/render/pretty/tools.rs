//! Writes tool calls: one line per call, with the result on the same line or on a later one.

use std::io::{self, Write};
use std::time::Instant;

use teamster::event::{ToolId, ToolOutput, ToolResult, ToolUse};

use super::page::Kind;
use super::running::RunningOutput;
use super::state::{Call, OpenLine};
use super::style::{BAD, BOLD, BULLET, DIM, NORMAL, NOTICEABLE, indent};
use super::{Pretty, call, changes, closing, outcome};
use crate::printable::{Printable, printable};

/// The columns that are reserved on the line of a call for its result.
const OUTCOME_COLUMNS: usize = 14;
/// An error is written on the line of its call if this many columns are free.
const ERROR_COLUMNS: usize = 30;

impl Pretty {
    pub(super) fn call(&mut self, tool: &ToolUse, now: Instant, out: &mut dyn Write) -> io::Result<()> {
        let parent = tool.parent_tool_id.clone();
        let depth = self.depth(parent.as_ref());
        let label = call::label(tool);
        let before = 2 * depth + 2 + label.columns();
        let room = self.screen.width.saturating_sub(before + OUTCOME_COLUMNS);
        let summary = match call::summary(tool, self.cwd.as_deref()) {
            summary if summary.is_empty() => summary,
            summary => printable!(" {}", summary).cut(room),
        };
        let width = self.screen.width.saturating_sub(2 * depth + 1);
        let changes = changes::of_call(tool, self.tool_output, width);
        let (is_denied, is_hidden) = (false, call::is_shown_by_event(tool));
        let columns = before + summary.columns();
        let call = Call {
            label,
            summary,
            since: now,
            waited_before: self.waiting.total(now),
            depth,
            parent,
            is_denied,
            is_hidden,
            changes,
            running: RunningOutput::default(),
        };
        if !is_hidden {
            self.place_under(call.parent.as_ref(), out)?;
            self.page.begin(Kind::Work, out)?;
            self.write(depth, &[(&"● ".into(), BULLET), (&call.label, BOLD), (&call.summary, NORMAL)], out)?;
            self.open = OpenLine::Call { tool: tool.tool_id.clone(), columns };
            self.trail.push(tool.tool_id.clone());
        }
        self.calls.insert(tool.tool_id.clone(), call);
        Ok(())
    }

    pub(super) fn outcome(&mut self, result: &ToolResult, now: Instant, out: &mut dyn Write) -> io::Result<()> {
        let Some(call) = self.calls.remove(&result.tool_id) else { return Ok(()) };
        let waited = self.waiting.total(now).saturating_sub(call.waited_before);
        let worked = now.saturating_duration_since(call.since).saturating_sub(waited);
        let took = (worked + waited >= NOTICEABLE).then(|| closing::time(worked, waited));
        let error = if call.is_denied && result.is_error != Some(false) {
            Some("denied".into())
        } else {
            outcome::error(result)
        };
        if call.is_hidden && error.is_none() {
            return Ok(());
        }
        let (mark, style) = outcome::mark(result);
        let open = match &self.open {
            OpenLine::Call { tool, columns } if *tool == result.tool_id => Some(*columns),
            _ => None,
        };
        self.open = OpenLine::None;
        self.place_under(call.parent.as_ref(), out)?;
        // A pipe has no width.
        let has_width = self.screen.terminal || self.screen.styles;
        let width = if has_width { self.screen.width } else { usize::MAX };
        match (open, error) {
            (Some(_), None) => {
                let took = took.map(|took| printable!(" {}", took)).unwrap_or_default();
                self.write(0, &[(&printable!("  {}", mark), style), (&took, DIM), (&"\n".into(), NORMAL)], out)?;
            }
            (Some(used), Some(error)) if width >= used + ERROR_COLUMNS.min(error.columns() + 5) => {
                let error = error.cut(width.saturating_sub(used + 5));
                self.write(0, &[(&"  ✗ ".into(), BAD), (&error, BAD), (&"\n".into(), NORMAL)], out)?;
            }
            (Some(_), Some(error)) => {
                let depth = call.depth + 1;
                let error = error.cut(width.saturating_sub(2 * depth + 3));
                self.line(Kind::Work, depth, &[(&"✗ ".into(), BAD), (&error, BAD)], out)?;
            }
            (None, None) => self.own_line(result, &call, took.unwrap_or_default(), width, out)?,
            (None, Some(error)) => {
                let summary = call.summary.cut(width / 3);
                let used = 2 * call.depth + 2 + call.label.columns() + summary.columns() + 2;
                let error = error.cut(width.saturating_sub(used + 1));
                let parts = [
                    (&"✗ ".into(), BAD),
                    (&call.label, BOLD),
                    (&summary, NORMAL),
                    (&": ".into(), NORMAL),
                    (&error, BAD),
                ];
                self.line(Kind::Work, call.depth, &parts, out)?;
            }
        }
        self.output(result, &call, out)
    }

    /// Writes a call that has succeeded on a line of its own, since others followed its line.
    fn own_line(
        &mut self,
        result: &ToolResult,
        call: &Call,
        took: Printable,
        width: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (mark, style) = outcome::mark(result);
        // A word is no mark for the start of a line.
        let (start, start_style, end) = match result.is_error {
            Some(_) => (printable!("{} ", mark), style, Printable::default()),
            None => ("● ".into(), BULLET, printable!("  {}", mark)),
        };
        let space = if took.is_empty() { "" } else { "  " };
        let took = printable!("{}{}", Printable::from(space), took);
        let used = 2 * call.depth + start.columns() + call.label.columns() + end.columns() + took.columns() + 1;
        let summary = call.summary.cut(width.saturating_sub(used));
        let parts = [(&start, start_style), (&call.label, BOLD), (&summary, NORMAL), (&end, style), (&took, DIM)];
        self.line(Kind::Work, call.depth, &parts, out)
    }

    /// Notes a part of the output of a running call.
    pub(super) fn running_output(&mut self, output: &ToolOutput) {
        if let Some(call) = self.calls.get_mut(&output.tool_id) {
            call.running.push(&output.text);
            self.last_output = Some(output.tool_id.clone());
        }
    }

    /// Returns the last lines of the output of the call that printed last, while it runs.
    pub(super) fn running_lines(&self) -> Vec<Printable> {
        let Some((id, call)) = self.last_output.as_ref().and_then(|id| self.calls.get_key_value(id)) else {
            return Vec::new();
        };
        let inner = indent(call.depth + 1);
        let width = self.screen.width.saturating_sub(2 * call.depth + 5);
        let lines = call.running.lines(self.tool_output, width).into_iter();
        let lines = lines.map(|line| printable!("{}{}", &inner, line.styled(DIM)));
        // The line of another call is above.
        let is_below = matches!(&self.open, OpenLine::Call { tool, .. } if tool == id);
        let name = (!is_below).then(|| printable!("{}┄ {}{}", indent(call.depth), &call.label, &call.summary));
        name.map(|name| name.styled(DIM)).into_iter().chain(lines).collect()
    }

    /// Writes the changes or the output of a call under it, as far as the option permits.
    fn output(&mut self, result: &ToolResult, call: &Call, out: &mut dyn Write) -> io::Result<()> {
        let depth = call.depth;
        if call.is_denied {
            return Ok(());
        }
        if let Some(changes) = call.changes.as_ref().filter(|_| result.is_error != Some(true)) {
            return changes.iter().try_for_each(|line| self.line(Kind::Work, depth, &[(line, NORMAL)], out));
        }
        let width = self.screen.width.saturating_sub(2 * depth + 5);
        for line in outcome::output(result, self.tool_output, width) {
            self.line(Kind::Work, depth + 1, &[(&line, DIM)], out)?;
        }
        Ok(())
    }

    /// Returns the nesting depth of lines that belong to this call.
    pub(super) fn depth(&self, parent: Option<&ToolId>) -> usize {
        parent.map_or(0, |parent| self.calls.get(parent).map_or(1, |call| call.depth + 1))
    }

    /// Ensures that the next line appears under this call. If calls run concurrently, indentation is ambiguous, so a line
    /// repeats the call's name.
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
        let (depth, name) = (call.depth, printable!("┄ {}{}", &call.label, &call.summary));
        self.line(Kind::Work, depth, &[(&name, DIM)], out)
    }
}
