//! Summarizes a tool call by its name and its most informative argument.

use std::path::Path;

use serde_json::Value;
use teamster::event::ToolUse;

use crate::printable::{Printable, printable};

/// The names of informative arguments, in the order of preference. The agents define these names.
const SUMMARY_ARGUMENTS: [&str; 11] = [
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "path",
    "description",
    "skill",
    "subject",
    "prompt",
];

/// Returns the tool's name, with the server for a tool of an MCP server.
pub(crate) fn label(tool: &ToolUse) -> Printable {
    match &tool.server {
        Some(server) => printable!("{}:{}", server, &tool.tool_name),
        None => Printable::exact(&tool.tool_name),
    }
}

/// Returns the arguments on one line, without truncation. Paths below `cwd` are relative.
pub(crate) fn summary(tool: &ToolUse, cwd: Option<&Path>) -> Printable {
    let input = tool.input.to_value().unwrap_or_else(|_| Value::String(tool.input.as_str().to_owned()));
    let fields = match &input {
        // A tool of an MCP server may use these names differently, so all of its arguments are shown.
        Value::Object(fields) if tool.server.is_none() => {
            SUMMARY_ARGUMENTS.iter().find_map(|name| fields.get(*name)).map(argument).filter(|text| !text.is_empty())
        }
        _ => None,
    };
    let text = fields.unwrap_or_else(|| match &input {
        Value::Object(fields) => {
            let pairs: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={}", argument(value))).collect();
            pairs.join(" ")
        }
        other => argument(other),
    });
    Printable::exact(strip_directory(&text, cwd))
}

fn argument(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        // A command line given as a list of words.
        Value::Array(words) if !words.is_empty() && words.iter().all(Value::is_string) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

fn strip_directory<'a>(text: &'a str, cwd: Option<&Path>) -> &'a str {
    let relative = cwd.and_then(|cwd| Path::new(text).strip_prefix(cwd).ok()).and_then(Path::to_str);
    relative.filter(|path| !path.is_empty()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster::event::ToolKind;

    use super::*;

    fn call(server: Option<&str>, input: Value) -> String {
        let tool = ToolUse::new("t", "Tool", input.into(), ToolKind::Unclassified).with_server(server.map(Into::into));
        format!("{} {}", label(&tool), summary(&tool, Some(Path::new("/project"))))
    }

    #[test]
    fn a_call_is_summarized_by_its_most_informative_argument() {
        let cases = [
            (json!({"command": "echo hi", "description": "Greets"}), "Tool echo hi"),
            (json!({"command": ["bash", "-lc", "ls  -l"]}), "Tool bash -lc ls  -l"),
            (json!({"file_path": "/project/src/lib.rs", "content": "..."}), "Tool src/lib.rs"),
            (json!({"file_path": "/elsewhere/lib.rs"}), "Tool /elsewhere/lib.rs"),
            (json!({"path": "/project"}), "Tool /project"),
            (json!({"pattern": "fn main", "path": "/project/src"}), "Tool fn main"),
            (json!({"command": "cat <<X\n\tone\nX"}), "Tool cat <<X⟦LF⟧⟦TAB⟧one⟦LF⟧X"),
            (json!({"command": "echo \u{1b}[31m\u{202e}red"}), "Tool echo ⟦ESC⟧[31m⟦U+202E⟧red"),
            (json!({"name": "Ada", "depth": 2, "deep": {"a": [1]}}), "Tool deep={\"a\":[1]} depth=2 name=Ada"),
            (json!({}), "Tool "),
            (json!("{\"command\": \"unfinished"), "Tool {\"command\": \"unfinished"),
        ];
        for (input, expected) in cases {
            assert_eq!(call(None, input), expected);
        }
    }

    #[test]
    fn a_tool_of_an_mcp_server_is_shown_with_its_server_and_all_arguments() {
        assert_eq!(call(Some("calc"), json!({"a": 1, "name": "b"})), "calc:Tool a=1 name=b");
    }
}
