//! The changes of files that a tool call makes, line by line.

use serde_json::Value;
use teamster::event::{ToolKind, ToolUse};

use super::{diff, outcome};
use crate::args::ToolOutput;
use crate::printable::{Printable, printable};

/// The agents' names for the old and the new text, for a whole content, and for a patch.
const OLD: [&str; 2] = ["old_string", "oldString"];
const NEW: [&str; 2] = ["new_string", "newString"];
const CONTENT: [&str; 1] = ["content"];
const PATCH: [&str; 2] = ["diff", "patch"];

/// The number of lines that `--tool-output short` shows.
const SHORT_LINES: usize = 10;

/// Returns the changes that a call makes, as far as the option permits; `None` for a call that edits no file. Other lines are
/// counted.
pub(super) fn of_call(tool: &ToolUse, shown: ToolOutput, width: usize) -> Option<Vec<Printable>> {
    let most = match shown {
        _ if tool.kind != ToolKind::Edit => return None,
        ToolOutput::None => return Some(Vec::new()),
        ToolOutput::Short => SHORT_LINES,
        ToolOutput::Full => usize::MAX,
    };
    let mut lines = lines(&tool.input.to_value().unwrap_or_default(), width);
    let hidden = lines.len().saturating_sub(most);
    lines.truncate(most);
    lines.extend((hidden > 0).then(|| printable!("    {}", outcome::more_lines(hidden))));
    Some(lines)
}

fn lines(input: &Value, width: usize) -> Vec<Printable> {
    let text =
        |value: &Value, names: &[&str]| names.iter().find_map(|name| value.get(*name)?.as_str()).map(str::to_owned);
    if let Some(old) = text(input, &OLD) {
        return diff::of_texts(&old, &text(input, &NEW).unwrap_or_default(), width);
    }
    if let Some(content) = text(input, &CONTENT) {
        return diff::of_new_text(&content, width);
    }
    // Codex: `{"changes": [{"path": ..., "diff": ...}]}`.
    let changes = input.get("changes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let patches = std::iter::once(input).chain(changes).filter_map(|change| text(change, &PATCH));
    patches.flat_map(|patch| diff::of_patch(&patch, width)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(kind: ToolKind, input: Value, shown: ToolOutput) -> Vec<String> {
        let tool = ToolUse::new("t", "Edit", input.into(), kind);
        let lines = of_call(&tool, shown, 80).unwrap_or_default();
        lines.iter().map(|line| line.without_styles().as_str().to_owned()).collect()
    }

    #[test]
    fn the_changes_of_every_agent_are_shown_line_by_line() {
        for (input, expected) in [
            (json!({"file_path": "a", "old_string": "x\n", "new_string": "y\n"}), &["    - x", "    + y"][..]),
            (json!({"filePath": "a", "oldString": "x\n", "newString": "y\n"}), &["    - x", "    + y"]),
            (json!({"file_path": "a", "content": "one\n\ttwo"}), &["    + one", "    + →   two"]),
            (
                json!({"changes": [{"path": "a", "diff": "@@ -1 +1 @@\n-x\n+y\n"}]}),
                &["    @@ -1 +1 @@", "    - x", "    + y"],
            ),
            (json!({"changes": [{"path": "a", "kind": "add"}]}), &[]),
        ] {
            assert_eq!(shown(ToolKind::Edit, input, ToolOutput::Full), expected);
        }
        let content = json!({"content": "line\n".repeat(12)});
        let folded = shown(ToolKind::Edit, content.clone(), ToolOutput::Short);
        assert_eq!((folded.len(), folded.last().unwrap().as_str()), (11, "    … 2 more lines"));
        assert!(shown(ToolKind::Edit, content.clone(), ToolOutput::None).is_empty());
        assert!(shown(ToolKind::Read, content, ToolOutput::Full).is_empty());
    }
}
