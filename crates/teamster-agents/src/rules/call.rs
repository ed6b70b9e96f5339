//! A tool call and its subject: a command, a path or a URL.

use std::path::Path;

use serde_json::{Map, Value};

use super::path::{PathResolver, is_directory};

/// A tool call for which the agent requests permission.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    tool: &'a str,
    server: Option<&'a str>,
    input: &'a Value,
}

impl<'a> ToolCall<'a> {
    /// Creates a call of a tool, by the agent's name of the tool, with these arguments.
    pub fn new(tool: &'a str, input: &'a Value) -> Self {
        Self { tool, server: None, input }
    }

    /// Sets the MCP server of the tool. Then an allow rule matches `mcp__SERVER__TOOL` only. A deny rule also matches the bare
    /// name.
    pub fn of_server(self, server: Option<&'a str>) -> Self {
        Self { server, ..self }
    }

    /// Returns the full name of the tool.
    pub(super) fn name(&self) -> String {
        match self.server {
            // A server may name its own tool `mcp__other__tool`.
            Some(server) => format!("mcp__{server}__{}", self.bare_name()),
            None => self.tool.to_owned(),
        }
    }

    /// Returns the agent's name of the tool.
    pub(super) fn agents_name(&self) -> &'a str {
        self.tool
    }

    pub(super) fn server(&self) -> Option<&'a str> {
        self.server
    }

    /// Returns the name of the tool without its server.
    pub(super) fn bare_name(&self) -> &'a str {
        let rest = self.server.and_then(|server| {
            let rest = without_server(self.tool.strip_prefix("mcp__")?, server)?;
            rest.strip_prefix("__")
        });
        rest.unwrap_or(self.tool)
    }

    pub(super) fn input(&self) -> &'a Value {
        self.input
    }
}

/// Returns the part of a tool's name after the server's name. Agents write `_` for each character that is not allowed.
fn without_server<'a>(name: &'a str, server: &str) -> Option<&'a str> {
    let mut rest = name.chars();
    for wanted in server.chars() {
        let found = rest.next()?;
        let is_replaced = found == '_' && !(wanted.is_ascii_alphanumeric() || wanted == '-');
        if found != wanted && !is_replaced {
            return None;
        }
    }
    Some(rest.as_str())
}

/// The part of a call that is compared with the pattern of an allow rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject<'a> {
    /// A shell command.
    Command(&'a str),
    /// A program and its arguments.
    Words(Vec<&'a str>),
    Path(&'a str),
    Url(&'a str),
}

/// The agents' names for a shell command.
const COMMANDS: [&str; 2] = ["command", "cmd"];

/// The agents' names for the file that a tool reads or writes.
const PATHS: [&str; 7] = ["file_path", "filePath", "absolute_path", "notebook_path", "path", "dir_path", "filepath"];

/// The agents' names for the directory in which a command runs.
const DIRECTORIES: [&str; 6] = ["cwd", "workdir", "dir_path", "directory", "working_directory", "workingDirectory"];

/// Fields that change neither the command nor its directory. `timeout` and `description` are fields of Claude Code, Gemini CLI and
/// OpenCode; `reason` is a field of Codex.
const COMMAND_NOTES: [&str; 5] = ["description", "reason", "timeout", "timeout_ms", "title"];

/// Fields that are harmless if they are `false`.
const SWITCHES: [&str; 3] = ["run_in_background", "is_background", "dangerouslyDisableSandbox"];

/// Further fields of tools that have one path or one URL, such as the lines to read or the text to write.
const NOTES: [(&[&str], &[&str]); 5] = [
    (&["Read", "read", "read_file"], &["offset", "limit", "pages", "start_line", "end_line"]),
    (&["Write", "write", "write_file"], &["content"]),
    (
        &["Edit", "edit", "replace"],
        &[
            "old_string",
            "new_string",
            "replace_all",
            "oldString",
            "newString",
            "replaceAll",
            "instruction",
            "expected_replacements",
            "allow_multiple",
        ],
    ),
    (&["NotebookEdit"], &["new_source", "cell_id", "cell_type", "edit_mode"]),
    (&["WebFetch", "webfetch", "web_fetch"], &["prompt", "format", "timeout"]),
];

/// Fields that contain text instead of a command or a path. (The `title` of an ACP call may be its command.)
const TEXTS: [&str; 13] = [
    "content",
    "description",
    "instruction",
    "newString",
    "new_source",
    "new_string",
    "oldString",
    "old_string",
    "prompt",
    "reason",
    "todos",
    "diff",
    "plan",
];

impl<'a> Subject<'a> {
    /// Returns the subject of a call; `None` if the call has several subjects, or another field that could change its meaning.
    pub(super) fn of(call: &ToolCall<'a>, cwd: Option<&Path>, files: &dyn PathResolver) -> Option<Self> {
        let fields = call.input.as_object()?;
        let mut fields = fields.iter().filter(|(_, value)| !value.is_null());
        let is_command = fields.clone().any(|(name, _)| COMMANDS.contains(&name.as_str()));
        let notes = NOTES.iter().find(|(tools, _)| tools.contains(&call.tool)).map_or(&[][..], |(_, notes)| notes);
        let mut subject = None;
        let certain = fields.all(|(name, value)| {
            let name = name.as_str();
            let found = match name {
                _ if COMMANDS.contains(&name) => Self::command(value),
                _ if is_command => return is_harmless(name, value, cwd, files),
                "url" => value.as_str().map(Self::Url),
                _ if PATHS.contains(&name) => value.as_str().map(Self::Path),
                _ => return notes.contains(&name),
            };
            found.is_some() && subject.replace(found).is_none()
        });
        subject.flatten().filter(|_| certain)
    }

    /// Returns the first field that makes the subject of a call uncertain. `None`: the subject is certain.
    pub(super) fn obstacle(call: &ToolCall<'a>, cwd: Option<&Path>, files: &dyn PathResolver) -> Option<&'a str> {
        let fields = call.input.as_object()?;
        let fields = fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.as_str(), value));
        let is_command = fields.clone().any(|(name, _)| COMMANDS.contains(&name));
        let notes = NOTES.iter().find(|(tools, _)| tools.contains(&call.tool)).map_or(&[][..], |(_, notes)| notes);
        let mut fields = fields.filter(|(name, value)| match *name {
            name if COMMANDS.contains(&name) => false,
            name if is_command => !is_harmless(name, value, cwd, files),
            name => name != "url" && !PATHS.contains(&name) && !notes.contains(&name),
        });
        fields.next().map(|(name, _)| name)
    }

    fn command(value: &'a Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Command(text)),
            Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>().map(Self::Words),
            _ => None,
        }
    }
}

/// Whether a field next to a command does not change the effect of the command.
fn is_harmless(name: &str, value: &Value, cwd: Option<&Path>, files: &dyn PathResolver) -> bool {
    COMMAND_NOTES.contains(&name) && !value.is_object() && !value.is_array()
        || SWITCHES.contains(&name) && *value == Value::Bool(false)
        || DIRECTORIES.contains(&name) && value.as_str().is_some_and(|path| is_directory(path, cwd, files))
}

/// A text in the arguments of a call, at any depth.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// The top-level field that contains the text.
    field: Option<String>,
    pub(super) text: String,
}

impl Text {
    /// Whether the field contains a command, judging by its name.
    pub(super) fn is_command(&self) -> bool {
        self.field.as_deref().is_some_and(|field| COMMANDS.contains(&field) || ["script", "commands"].contains(&field))
    }

    /// Whether the field contains prose or file contents, judging by its name, and no path or command.
    pub(super) fn is_prose(&self) -> bool {
        self.field.as_deref().is_some_and(|field| TEXTS.contains(&field))
    }

    /// Whether the field may contain a directory to which the paths of other fields are relative.
    pub(super) fn is_directory(&self) -> bool {
        self.field.as_deref().is_some_and(|field| {
            DIRECTORIES.contains(&field) || PATHS.contains(&field) || ["root", "base", "folder", "dir"].contains(&field)
        })
    }
}

/// Returns all texts of the arguments, at any depth. A list of words is also returned as one text.
pub(super) fn texts(input: &Value) -> Vec<Text> {
    let empty = Map::new();
    let fields = input.as_object().unwrap_or(&empty).iter().map(|(name, value)| (Some(name.as_str()), value));
    let top = (!input.is_object()).then_some((None, input));
    let (mut found, mut waiting): (Vec<Text>, Vec<_>) = (Vec::new(), fields.chain(top).collect());
    while let Some((field, value)) = waiting.pop() {
        let mut add = |text: String| found.push(Text { field: field.map(str::to_owned), text });
        match value {
            Value::String(text) => {
                add(text.clone());
                found.extend(patched(text).map(|path| Text { field: Some("path".to_owned()), text: path.to_owned() }));
            }
            Value::Array(values) => {
                let words: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
                if let Some(words) = words.filter(|words| !words.is_empty()) {
                    add(words.join(" "));
                }
                waiting.extend(values.iter().map(|value| (field, value)));
            }
            Value::Object(fields) => {
                // Nested fields may have any meaning, so only a command retains the name of its top-level field. The names of
                // nested fields may be paths: `{"changes": {"a.rs": ...}}`.
                let field = field.filter(|field| COMMANDS.contains(field));
                found.extend(fields.keys().map(|name| Text { field: field.map(str::to_owned), text: name.clone() }));
                waiting.extend(fields.values().map(|value| (field, value)));
            }
            _ => {}
        }
    }
    found
}

/// Returns the files that a patch in this text changes. It reads the formats of `apply_patch`, `diff -u` and `git diff`.
fn patched(text: &str) -> impl Iterator<Item = &str> {
    const LINES: [&str; 9] = [
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
        "+++ ",
        "--- ",
        "rename to ",
        "rename from ",
        "copy to ",
    ];
    let lines = text.lines().filter(|_| text.contains('\n')).map(str::trim);
    let paths = lines.filter_map(|line| LINES.iter().find_map(|begin| line.strip_prefix(begin)));
    let path = |path: &str| path.split('\t').next().unwrap_or_default().trim().len();
    paths.filter_map(move |line| line.get(..path(line))).flat_map(|path| {
        let stripped = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
        [Some(path), stripped].into_iter().flatten()
    })
}
