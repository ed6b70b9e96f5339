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

/// Returns why a call failed; `None` if it did not, or if that is unknown.
pub(super) fn error(result: &ToolResult) -> Option<Printable> {
    if result.is_error != Some(true) {
        return None;
    }
    let first = reason(&text(result)).map(Printable::message);
    Some(match (result.exit_code, first) {
        (Some(code), Some(first)) => printable!("exit code {}: {}", code, first),
        (Some(code), None) => printable!("exit code {}", code),
        (None, Some(first)) => first,
        (None, None) => "failed".into(),
    })
}

/// Returns the line of a failed call's output with the reason: the first one with words.
fn reason(text: &str) -> Option<&str> {
    let has_words = |line: &&str| line.contains(char::is_alphanumeric);
    text.lines().find(has_words).or_else(|| text.lines().find(|line| !line.trim().is_empty()))
}

/// Returns the output of a tool, as far as the option permits. Other lines are counted. The reason of a failure is not
/// repeated, unless the option permits all lines and the reason was truncated.
pub(super) fn output(result: &ToolResult, shown: ToolOutput, width: usize) -> Vec<Printable> {
    let most = match shown {
        ToolOutput::None => return Vec::new(),
        ToolOutput::Short => SHORT_LINES,
        ToolOutput::Full => usize::MAX,
    };
    let text = text(result);
    let mut lines: Vec<&str> = text.lines().collect();
    if error(result).is_some_and(|error| shown != ToolOutput::Full || error.columns() < width / 2)
        && let Some(at) = reason(&text).and_then(|reason| lines.iter().position(|line| *line == reason))
    {
        lines.remove(at);
    }
    let is_blank = |line: Option<&&str>| line.is_some_and(|line| line.trim().is_empty());
    while is_blank(lines.last()) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    lines.drain(..blank);
    let hidden = lines.len().saturating_sub(most);
    // The end of an output is more informative than its start.
    let each = |line: &&str| {
        let line = Printable::prose(&line.replace('\t', "    "));
        if shown == ToolOutput::Full { line } else { line.cut(width) }
    };
    let count = (hidden > 0).then(|| more_lines(hidden));
    count.into_iter().chain(lines.iter().skip(hidden).map(each)).collect()
}

/// Returns the mark of lines that are not shown.
pub(super) fn more_lines(count: usize) -> Printable {
    printable!("… {} more {}", count, if count == 1 { "line" } else { "lines" })
}

/// The tags that agents write around parts of an output: Claude Code 2.1.197 the first two, OpenCode 1.18.33 the others.
const TAGS: [&str; 7] =
    ["tool_use_error", "persisted-output", "task", "task_result", "shell_metadata", "path", "content"];

/// Returns the output without what an agent adds for its model: tags, and a line with the exit code.
fn text(result: &ToolResult) -> String {
    let text = result.output.as_str();
    let text = text.trim().strip_prefix("<tool_use_error>").unwrap_or(text);
    let text = text.trim_end().strip_suffix("</tool_use_error>").unwrap_or(text);
    if NO_OUTPUT.contains(&text.trim()) {
        return String::new();
    }
    let text = match text.split_once("\nagentId: ") {
        Some((answer, rest)) if rest.ends_with("</usage>") => answer,
        _ => text,
    };
    let text = text.lines().filter(|line| !is_tag(line)).collect::<Vec<_>>().join("\n");
    let exit = result.exit_code.map(|code| (format!("Exit code {code}"), format!("exit code {code}")));
    let first = text.lines().next().unwrap_or_default();
    match exit {
        Some((long, short)) if first == long || first == short => {
            text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned())
        }
        _ => text,
    }
}

/// Whether a line is only a tag of an agent.
fn is_tag(line: &str) -> bool {
    let tag = line.trim().strip_prefix('<').and_then(|line| line.strip_suffix('>')).unwrap_or_default();
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    TAGS.contains(&tag) || tag.starts_with("task id=") || tag == "type>file</type" || tag.starts_with("path>")
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
            let error = error(&result(output, Some(true), code)).unwrap();
            assert_eq!(error.as_str(), expected);
        }
        assert_eq!(error(&result("x", Some(false), Some(0))), None);
        assert_eq!(mark(&result("x", None, None)).0.as_str(), "done");
    }

    #[test]
    fn a_long_output_is_folded() {
        let shown = |shown| {
            let lines = output(&result("1\n2\n3\n4\n5\n\u{1b}[31m6\n", Some(false), None), shown, 40);
            Printable::join(lines, "|").as_str().to_owned()
        };
        assert_eq!(shown(ToolOutput::None), "");
        assert_eq!(shown(ToolOutput::Short), "… 2 more lines|3|4|5|⟦ESC⟧[31m6");
        assert_eq!(shown(ToolOutput::Full), "1|2|3|4|5|⟦ESC⟧[31m6");
        assert_eq!(more_lines(1).as_str(), "… 1 more line");
    }

    #[test]
    fn the_reason_of_a_failure_is_shown_once() {
        let shown = |text: &str, shown| {
            let result = result(text, Some(true), None);
            let lines = output(&result, shown, 20);
            (error(&result).unwrap().as_str().to_owned(), Printable::join(lines, "|").as_str().to_owned())
        };
        let both = |reason: &str, output: &str| (reason.to_owned(), output.to_owned());
        assert_eq!(shown("no file", ToolOutput::Short), both("no file", ""));
        assert_eq!(shown("no file", ToolOutput::Full), both("no file", ""));
        assert_eq!(shown("\nout\n\nboom\n", ToolOutput::Short), both("out", "boom"));
        assert_eq!(shown("[\n  no file\n]", ToolOutput::Short), both("no file", "[|]"));
        let long = "a reason that is long";
        assert_eq!(shown(long, ToolOutput::Full), both(long, long));
    }

    #[test]
    fn tags_for_the_model_are_not_shown() {
        for (text, expected) in [
            ("<task id=\"s\" state=\"completed\">\n<task_result>\nDone.\n</task_result>\n</task>", "Done."),
            ("<path>/a</path>\n<type>file</type>\n<content>\n1: a\n</content>", "1: a"),
            ("<persisted-output>\nOutput too large.\n\n1\n2\n...\n</persisted-output>", "… 1 more line||1|2|..."),
            ("<html>\n<b>\n", "<html>|<b>"),
            ("Done.\nagentId: a (use it)\n<usage>tokens: 1\n</usage>", "Done."),
        ] {
            let lines = output(&result(text, Some(false), None), ToolOutput::Short, 80);
            assert_eq!(Printable::join(lines, "|").as_str(), expected);
        }
    }
}
