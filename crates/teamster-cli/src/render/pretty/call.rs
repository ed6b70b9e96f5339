//! Describes a tool call in words: a verb, and what it is applied to.

use std::path::Path;

use serde_json::{Map, Value};
use teamster::event::{ToolKind, ToolUse};

use crate::printable::{Printable, printable};

/// The agents' names of arguments, by their meaning.
const COMMAND: &[&str] = &["command", "cmd"];
const PATH: &[&str] =
    &["file_path", "filePath", "absolute_path", "notebook_path", "path", "dir_path", "filepath", "paths"];
const SEARCHED: &[&str] = &["pattern", "query", "glob"];
const ADDRESS: &[&str] = &["url", "prompt"];
const TASK: &[&str] = &["description", "subject", "name", "prompt", "skill"];
/// What the client of an agent that speaks ACP knows of a call without arguments.
const TITLE: &[&str] = &["title"];

/// Tools that start a subagent. Codex has others, which wait for one or send it a message.
const STARTS_AGENT: [&str; 3] = ["Agent", "Task", "task"];
/// Tools that write a whole file.
const WRITES: [&str; 3] = ["Write", "write", "write_file"];
/// Tools that change the plan, which is shown by itself.
const PLANS: [&str; 5] = ["TodoWrite", "todowrite", "write_todos", "update_plan", "todo_list"];

/// Returns the name of a tool for people. Codex's names of its own work are not names of tools.
pub(crate) fn tool_name(name: &str) -> Printable {
    match name {
        "command_execution" => "command".into(),
        "file_change" => "file change".into(),
        other => Printable::exact(other),
    }
}

/// Tools that ask the user. The question is shown by itself.
const QUESTIONS: [&str; 3] = ["AskUserQuestion", "ask_user", "question"];
/// Tools that change the plan on agents that report each change of it.
const REPORTED_PLANS: [&str; 4] = ["todowrite", "write_todos", "update_plan", "todo_list"];

/// Whether a tool asks the user.
pub(super) fn is_question(name: &str) -> bool {
    QUESTIONS.contains(&name)
}

/// Whether a call is not shown, because an event shows its effect.
pub(super) fn is_shown_by_event(tool: &ToolUse) -> bool {
    tool.server.is_none() && REPORTED_PLANS.contains(&tool.tool_name.as_str())
}

/// Returns the verb of a call, or the server and the name of the tool for a tool of an MCP server.
pub(crate) fn label(tool: &ToolUse) -> Printable {
    if let Some(server) = &tool.server {
        return printable!("{}: {}", server, &tool.tool_name);
    }
    let name = tool.tool_name.as_str();
    match &tool.kind {
        ToolKind::Execute => "Run".into(),
        ToolKind::Edit if WRITES.contains(&name) => "Write".into(),
        ToolKind::Edit => "Edit".into(),
        ToolKind::Read => "Read".into(),
        ToolKind::Search => "Search".into(),
        ToolKind::Fetch => "Fetch".into(),
        ToolKind::Agent if STARTS_AGENT.contains(&name) => "Agent".into(),
        _ if PLANS.contains(&name) => "Update the plan".into(),
        _ if QUESTIONS.contains(&name) => "Question".into(),
        _ => Printable::exact(&in_words(name)),
    }
}

/// Returns what a call is applied to, on one line without truncation. Paths below `cwd` are relative.
pub(crate) fn summary(tool: &ToolUse, cwd: Option<&Path>) -> Printable {
    let input = tool.input.to_value().unwrap_or_else(|_| Value::String(tool.input.as_str().to_owned()));
    // A model can send arguments that are no JSON.
    let Value::Object(fields) = &input else { return "(invalid arguments)".into() };
    let text =
        |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).map(in_short).filter(|it| !it.is_empty());
    let found = match &tool.kind {
        // A tool of an MCP server may use these names differently.
        _ if tool.server.is_some() => None,
        ToolKind::Execute => text(COMMAND).or_else(|| text(TITLE)).map(|command| script(&command)),
        ToolKind::Edit | ToolKind::Read => text(PATH).or_else(|| changes(fields, cwd)).or_else(|| text(TITLE)),
        ToolKind::Search => match (text(SEARCHED), text(PATH)) {
            (Some(searched), Some(path)) => Some(format!("{searched} in {}", relative(&path, cwd))),
            (searched, path) => searched.or_else(|| text(TITLE)).or(path),
        },
        ToolKind::Fetch => text(ADDRESS).or_else(|| text(TITLE)),
        // The ids of agents have no meaning for a person.
        ToolKind::Agent => Some(text(TASK).or_else(|| text(TITLE)).unwrap_or_default()),
        _ if PLANS.contains(&tool.tool_name.as_str()) => return Printable::default(),
        _ if QUESTIONS.contains(&tool.tool_name.as_str()) => return Printable::default(),
        _ => text(COMMAND)
            .or_else(|| text(PATH))
            .or_else(|| text(SEARCHED))
            .or_else(|| text(&["url"]))
            .or_else(|| text(TASK))
            .or_else(|| question(fields)),
    };
    Printable::exact(&on_one_line(&relative(&found.unwrap_or_else(|| pairs(fields)), cwd)))
}

/// Returns a text with `↵` for each line end inside it, and a space for each tab. A permission prompt shows the call exactly.
fn on_one_line(text: &str) -> String {
    text.trim_end().lines().map(|line| line.trim().replace('\t', " ")).collect::<Vec<_>>().join(" ↵ ")
}

/// Returns the first question of a call that asks the user: `{"questions": [{"question": ...}]}`.
fn question(fields: &Map<String, Value>) -> Option<String> {
    Some(fields.get("questions")?.get(0)?.get("question")?.as_str()?.to_owned())
}

/// Returns the files of a change that Codex makes: `{"changes": [{"path": ..., "kind": ...}]}`.
fn changes(fields: &Map<String, Value>, cwd: Option<&Path>) -> Option<String> {
    let each = |change: &Value| {
        let path = relative(change.get("path")?.as_str()?, cwd);
        Some(match change.get("kind").and_then(|kind| kind.as_str().or_else(|| kind.get("type")?.as_str())) {
            Some("add") => format!("{path} (new)"),
            Some("delete") => format!("{path} (deleted)"),
            _ => path,
        })
    };
    let files: Vec<_> = fields.get("changes")?.as_array()?.iter().filter_map(each).collect();
    (!files.is_empty()).then(|| files.join(", "))
}

/// Returns the script of a command that only runs a script in a shell, as Codex writes commands: `/bin/bash -lc '...'`.
fn script(command: &str) -> String {
    match shlex::split(command).as_deref() {
        Some([shell, flag, script]) if matches!(flag.as_str(), "-c" | "-lc") && is_shell(shell) => script.clone(),
        _ => command.to_owned(),
    }
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("bash" | "sh" | "zsh"))
}

/// Returns all arguments as `name=value`.
fn pairs(fields: &Map<String, Value>) -> String {
    let pairs = fields.iter().filter(|(_, value)| !value.is_null());
    pairs.map(|(name, value)| format!("{name}={}", in_short(value))).collect::<Vec<_>>().join(" ")
}

/// Returns a value for people: text without quotes, lists of simple values, and `…` for the inside of other values.
fn in_short(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) if !values.iter().any(|value| value.is_object() || value.is_array()) => {
            values.iter().map(in_short).collect::<Vec<_>>().join(" ")
        }
        Value::Array(values) => format!("[{} items]", values.len()),
        Value::Object(_) => "{…}".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the name of a tool in words: `enter_plan_mode` is `Enter plan mode`.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        let starts_word = character.is_uppercase() && words.ends_with(|last: char| last.is_lowercase());
        if starts_word || matches!(character, '_' | '-') {
            words.push(' ');
        }
        match character {
            '_' | '-' => {}
            _ if words.is_empty() => words.extend(character.to_uppercase()),
            _ if starts_word => words.extend(character.to_lowercase()),
            _ => words.push(character),
        }
    }
    words
}

fn relative(text: &str, cwd: Option<&Path>) -> String {
    let relative = cwd.and_then(|cwd| Path::new(text).strip_prefix(cwd).ok()).and_then(Path::to_str);
    relative.filter(|path| !path.is_empty()).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(kind: ToolKind, name: &str, input: Value) -> String {
        let tool = ToolUse::new("t", name, input.into(), kind);
        format!("{} {}", label(&tool), summary(&tool, Some(Path::new("/project")))).trim_end().to_owned()
    }

    #[test]
    fn a_call_is_a_verb_and_what_it_is_applied_to_on_every_agent() {
        for (kind, name, input, expected) in [
            (ToolKind::Execute, "Bash", json!({"command": "echo hi", "description": "Greets"}), "Run echo hi"),
            (ToolKind::Execute, "command_execution", json!({"command": "/bin/bash -lc 'ls  -l'"}), "Run ls  -l"),
            (ToolKind::Execute, "shell", json!({"command": ["bash", "-lc", "ls"]}), "Run ls"),
            (ToolKind::Execute, "Bash", json!({"command": "cat <<X\n\tone\nX"}), "Run cat <<X ↵ one ↵ X"),
            (
                ToolKind::Execute,
                "bash",
                json!({"command": "echo \u{1b}[31m\u{202e}red"}),
                "Run echo ⟦ESC⟧[31m⟦U+202E⟧red",
            ),
            (ToolKind::Edit, "Edit", json!({"file_path": "/project/src/lib.rs", "old_string": "a"}), "Edit src/lib.rs"),
            (ToolKind::Edit, "write_file", json!({"file_path": "a.txt", "content": "..."}), "Write a.txt"),
            (
                ToolKind::Edit,
                "file_change",
                json!({"changes": [{"path": "/project/a", "kind": "add"}, {"path": "b", "kind": {"type": "update"}}]}),
                "Edit a (new), b",
            ),
            (ToolKind::Read, "read", json!({"filePath": "/elsewhere/lib.rs"}), "Read /elsewhere/lib.rs"),
            (ToolKind::Search, "Grep", json!({"pattern": "fn main", "path": "/project/src"}), "Search fn main in src"),
            (ToolKind::Search, "list_directory", json!({"dir_path": "/project/src"}), "Search src"),
            (ToolKind::Execute, "execute", json!({"title": "echo a; pwd"}), "Run echo a; pwd"),
            (ToolKind::Edit, "edit", json!({"title": "a.txt: x", "paths": ["/project/a.txt"]}), "Edit a.txt"),
            (ToolKind::Unclassified, "AskUserQuestion", json!({"questions": [{"question": "Why?"}]}), "Question"),
            (ToolKind::Fetch, "WebFetch", json!({"url": "https://docs.rs", "prompt": "p"}), "Fetch https://docs.rs"),
            (ToolKind::Agent, "Task", json!({"description": "Worker A", "prompt": "..."}), "Agent Worker A"),
            (ToolKind::Agent, "spawn_agent", json!({"prompt": "Look"}), "Spawn agent Look"),
            (ToolKind::Agent, "wait", json!({"receiverThreadIds": ["01a2"]}), "Wait"),
            (ToolKind::Unclassified, "TodoWrite", json!({"todos": [{"content": "x"}]}), "Update the plan"),
            (ToolKind::Unclassified, "enter_plan_mode", json!({}), "Enter plan mode"),
            (ToolKind::Unclassified, "ExitPlanMode", json!({"plan": "x"}), "Exit plan mode plan=x"),
            (ToolKind::Unclassified, "lookup", json!({"depth": 2, "deep": {"a": [1]}}), "Lookup deep={…} depth=2"),
            (ToolKind::Unclassified, "lookup", json!("{\"command\": \"unfinished"), "Lookup (invalid arguments)"),
        ] {
            assert_eq!(call(kind, name, input), expected);
        }
    }

    #[test]
    fn a_tool_of_an_mcp_server_is_shown_with_its_server_and_all_arguments() {
        let tool = ToolUse::new("t", "add", json!({"a": 1, "command": "b"}).into(), ToolKind::Mcp);
        let tool = tool.with_server(Some("calc".into()));
        assert_eq!(format!("{} {}", label(&tool), summary(&tool, None)), "calc: add a=1 command=b");
    }
}
