//! A finished call with its whole change or output, for `/tools` of a chat.

use std::path::Path;

use teamster::event::{ToolResult, ToolUse};

use super::style::{BAD, BOLD, BULLET, DIM};
use super::{call, changes, outcome};
use crate::args::ToolOutput;
use crate::printable::{Printable, printable};

/// The width at which lines of an export are folded: wider than usual lines.
const EXPORT_WIDTH: usize = 400;

/// What a call changed or printed, without styles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The language of the block in Markdown.
    pub(crate) language: &'static str,
    pub(crate) lines: Vec<String>,
}

/// Returns the change that a call made, or what it printed; `None` if it did neither.
pub(crate) fn content(tool: &ToolUse, result: Option<&ToolResult>, is_denied: bool) -> Option<Content> {
    if is_denied {
        return None;
    }
    let is_failed = result.is_some_and(|result| result.is_error == Some(true));
    let plain = |line: &Printable| line.without_styles().as_str().to_owned();
    let changes =
        changes::of_call(tool, ToolOutput::Full, EXPORT_WIDTH).filter(|lines| !(is_failed || lines.is_empty()));
    let (language, lines): (_, Vec<String>) = if let Some(changes) = changes {
        let line = |line: &Printable| plain(line).strip_prefix("    ").map_or_else(|| plain(line), str::to_owned);
        ("diff", changes.iter().map(line).collect())
    } else {
        let output = result.map(|result| outcome::output(result, ToolOutput::Full, EXPORT_WIDTH));
        ("text", output.unwrap_or_default().iter().map(plain).collect())
    };
    (!lines.is_empty()).then_some(Content { language, lines })
}

/// Returns why a call failed; `None` if it did not, or if that is unknown.
pub(crate) fn failure(result: &ToolResult) -> Option<String> {
    outcome::error(result).map(|error| error.as_str().to_owned())
}

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
