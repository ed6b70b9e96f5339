//! A finished call with its whole change or output, for `/tools` of a chat.

use std::path::Path;

use teamster::event::{ToolResult, ToolUse};

use super::style::{BAD, BOLD, BULLET, DIM};
use super::{call, changes, outcome};
use crate::args::ToolOutput;
use crate::printable::{Printable, printable};

/// The indentation of further rows of a call, and of its output.
const INDENT: usize = 2;

/// Formats a call as a run shows it, and its whole change or output below it.
pub(crate) fn lines(
    tool: &ToolUse,
    result: Option<&ToolResult>,
    is_denied: bool,
    directory: &Path,
    width: usize,
) -> Vec<Printable> {
    let summary = match call::summary(tool, Some(directory)) {
        summary if summary.is_empty() => summary,
        summary => printable!(" {}", summary),
    };
    let outcome = match (result, result.and_then(outcome::error)) {
        _ if is_denied => Printable::from("✗ denied").styled(BAD),
        (_, Some(error)) => printable!("✗ {}", error).styled(BAD),
        (Some(result), None) => {
            let (mark, style) = outcome::mark(result);
            mark.styled(style)
        }
        (None, None) => Printable::from("no result").styled(DIM),
    };
    let head = printable!(
        "{}{}{}  {}",
        Printable::from("● ").styled(BULLET),
        call::label(tool).styled(BOLD),
        summary,
        outcome
    );
    let mut lines = vec![head.wrapped(width, INDENT)];
    if is_denied {
        return lines;
    }
    let is_failed = result.is_some_and(|result| result.is_error == Some(true));
    if let Some(changes) = changes::of_call(tool, ToolOutput::Full, width).filter(|_| !is_failed) {
        lines.extend(changes);
    } else {
        let width = width.saturating_sub(INDENT).max(1);
        let output = result.map(|result| outcome::output(result, ToolOutput::Full, width)).unwrap_or_default();
        let rows = output.iter().flat_map(|line| line.rows(width));
        lines.extend(rows.map(|row| printable!("  {}", row.styled(DIM))));
    }
    lines
}
