//! The outcome of a tool call: its mark, its error in one line, and its output.

use anstyle::Style;
use teamster::event::ToolResult;

use super::style::{DIM, GOOD};
use crate::args::ToolOutput;
use crate::printable::{Printable, printable};

/// The number of lines of an output that `--tool-output short` shows.
const SHORT_LINES: usize = 4;

/// What an agent writes for its model if a command has no output (Claude Code 2.1.197, OpenCode 1.18.33).
const NO_OUTPUT: [&str; 2] = ["(Bash completed with no output)", "(no output)"];

/// Returns the mark of a call that did not fail. An agent may not know whether a command failed (Gemini CLI 0.61.0).
pub(super) fn mark(result: &ToolResult) -> (Printable, Style) {
    match result.is_error {
        Some(_) => ("✓".into(), GOOD),
        None => ("done".into(), DIM),
    }
}

/// Returns why a call failed; `None` if it did not, or if that is unknown. It contains no line that [`output`] returns.
pub(super) fn error(result: &ToolResult, shown: ToolOutput) -> Option<Printable> {
    if result.is_error != Some(true) {
        return None;
    }
    let text = text(result);
    let first = text.lines().map(Printable::message).find(|line| !line.is_empty());
    Some(match (result.exit_code, first) {
        (Some(code), Some(first)) if shown_lines(result, &text, shown).is_empty() => {
            printable!("exit code {}: {}", code, first)
        }
        (Some(code), _) => printable!("exit code {}", code),
        (None, Some(first)) => first,
        (None, None) => "failed".into(),
    })
}

/// Returns the output of a tool, as far as the option permits. Other lines are counted.
pub(super) fn output(result: &ToolResult, shown: ToolOutput, width: usize) -> Vec<Printable> {
    let most = if shown == ToolOutput::Short { SHORT_LINES } else { usize::MAX };
    let text = text(result);
    let lines = shown_lines(result, &text, shown);
    let hidden = lines.len().saturating_sub(most);
    // The end of an output is more informative than its start.
    let each = |line: &&str| {
        let line = Printable::prose(&line.replace('\t', "    "));
        if shown == ToolOutput::Full { line } else { line.cut(width) }
    };
    let count = (hidden > 0).then(|| printable!("… {} more lines", hidden));
    count.into_iter().chain(lines.iter().skip(hidden).map(each)).collect()
}

/// Returns the lines of an output that are shown below the call. The line of the call has the only line of an error, and the
/// first one if there is no exit code.
fn shown_lines<'a>(result: &ToolResult, text: &'a str, shown: ToolOutput) -> Vec<&'a str> {
    if shown == ToolOutput::None {
        return Vec::new();
    }
    let mut lines: Vec<&str> = text.trim_matches('\n').lines().collect();
    if shown == ToolOutput::Short && result.is_error == Some(true) {
        let is_only = lines.len() == 1;
        if is_only || result.exit_code.is_none() {
            lines = lines.into_iter().skip(1).collect();
        }
    }
    lines
}

/// Returns the output without what an agent adds for its model: tags, and a line with the exit code.
fn text(result: &ToolResult) -> String {
    let text = result.output.as_str();
    let text = text.trim().strip_prefix("<tool_use_error>").unwrap_or(text);
    let text = text.trim_end().strip_suffix("</tool_use_error>").unwrap_or(text);
    if NO_OUTPUT.contains(&text.trim()) {
        return String::new();
    }
    let exit = result.exit_code.map(|code| (format!("Exit code {code}"), format!("exit code {code}")));
    let first = text.lines().next().unwrap_or_default();
    match exit {
        Some((long, short)) if first == long || first == short => {
            text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned())
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(output: &str, is_error: Option<bool>, exit_code: Option<i32>) -> ToolResult {
        ToolResult::new("t", output, is_error).with_exit_code(exit_code)
    }

    #[test]
    fn a_failed_command_shows_its_exit_code_in_the_same_way_on_every_agent() {
        for (output, code, expected) in [
            ("Exit code 3\nboom", Some(3), "exit code 3: boom"),
            ("boom\n", Some(3), "exit code 3: boom"),
            ("exit code 3", Some(3), "exit code 3"),
            ("<tool_use_error>File does not exist.</tool_use_error>", None, "File does not exist."),
            ("", None, "failed"),
        ] {
            let error = error(&result(output, Some(true), code), ToolOutput::Short).unwrap();
            assert_eq!(error.as_str(), expected);
        }
        assert_eq!(error(&result("x", Some(false), Some(0)), ToolOutput::Short), None);
        assert_eq!(mark(&result("x", None, None)).0.as_str(), "done");
    }

    #[test]
    fn no_line_of_an_error_is_shown_twice() {
        for (output_text, code, shown, expected) in [
            ("boom", Some(3), ToolOutput::Short, "exit code 3: boom"),
            ("one\ntwo", Some(3), ToolOutput::Short, "exit code 3|one|two"),
            ("one\ntwo", Some(3), ToolOutput::None, "exit code 3: one"),
            ("one\ntwo", None, ToolOutput::Short, "one|two"),
            ("boom", Some(3), ToolOutput::Full, "exit code 3|boom"),
        ] {
            let result = result(output_text, Some(true), code);
            let lines = error(&result, shown).into_iter().chain(output(&result, shown, 40));
            assert_eq!(Printable::join(lines, "|").as_str(), expected);
        }
    }

    #[test]
    fn a_long_output_is_folded() {
        let shown = |shown| {
            let lines = output(&result("1\n2\n3\n4\n5\n\u{1b}[31m6\n", Some(false), None), shown, 40);
            Printable::join(lines, "|").as_str().to_owned()
        };
        assert_eq!(shown(ToolOutput::None), "");
        for nothing in NO_OUTPUT {
            assert!(output(&result(nothing, Some(false), None), ToolOutput::Full, 40).is_empty());
        }
        assert_eq!(shown(ToolOutput::Short), "… 2 more lines|3|4|5|⟦ESC⟧[31m6");
        assert_eq!(shown(ToolOutput::Full), "1|2|3|4|5|⟦ESC⟧[31m6");
    }
}
