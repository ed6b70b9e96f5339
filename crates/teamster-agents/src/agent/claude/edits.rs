//! What the permission mode `edit` allows: calls of the CLI's edit tools, on files in the session's directories.
//!
//! The CLI's own mode `acceptEdits` is not used, because 2.1.197 then also runs `rm`, `mv`, `sed` and other commands without
//! permission. Instead, the CLI is started in the mode `default`, requests permission for every edit, and is answered here.
//!
//! Invariant: only a call that the CLI itself would allow in `acceptEdits`, that no rule denies, and that changes no settings
//! of an agent, an editor or Git is allowed.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::wire::ControlRequest;
use crate::rules::{TextOnly, ToolCall, ToolRules, Verdict};
use teamster_types::request::{PermissionMode, RunRequest};

/// Names that the path of a permitted edit must not contain, because such files decide what is run or allowed later.
const GUARDED: &[&str] =
    &[".git", ".claude", ".vscode", ".idea", ".husky", ".mcp.json", ".claude.json", ".gitconfig", ".gitmodules"];

/// The edit tools' names for the file.
const PATHS: &[&str] = &["file_path", "notebook_path"];

/// What the mode allows.
#[derive(Debug)]
pub(super) struct Edits {
    is_on: bool,
    /// The request's directory, and the CLI's name for it.
    cwds: Vec<PathBuf>,
    add_dirs: Vec<PathBuf>,
    /// `None` if a rule cannot be read: then nothing is allowed here.
    rules: Option<ToolRules>,
}

impl Edits {
    pub(super) fn new(request: &RunRequest) -> Self {
        Self {
            is_on: request.permissions.mode == PermissionMode::Edit,
            cwds: request.cwd.iter().cloned().collect(),
            add_dirs: request.add_dirs.clone(),
            rules: ToolRules::read(&request.permissions, request.cwd.as_deref()).ok(),
        }
    }

    /// Adds the directory that the CLI reports as its own.
    pub(super) fn add_cwd(&mut self, cwd: &str) {
        self.cwds.truncate(1);
        self.cwds.push(cwd.into());
    }

    /// Whether the mode allows the requested call.
    pub(super) fn allow(&self, request: &ControlRequest) -> bool {
        let Some(tool) = request.tool_name.as_deref().filter(|tool| self.is_on && is_edit(tool)) else { return false };
        let mut suggested = request.permission_suggestions.iter().filter_map(|suggestion| suggestion.get("type"));
        // The CLI resolves links. A file that lies outside would need another directory.
        let is_inside_for_cli =
            suggested.clone().any(|kind| kind == "setMode") && suggested.all(|kind| kind == "setMode");
        is_inside_for_cli
            && request.input.to_value().is_ok_and(|input| self.is_inside(&input) && self.is_not_denied(tool, &input))
    }

    fn is_inside(&self, input: &Value) -> bool {
        let mut paths = PATHS.iter().filter_map(|name| input.get(name));
        let (Some(Value::String(path)), None) = (paths.next(), paths.next()) else { return false };
        let Some(cwd) = self.cwds.first() else { return false };
        let path = cwd.join(path);
        let lies_in = |dir: &PathBuf| path.strip_prefix(cwd.join(dir)).is_ok_and(is_free);
        self.cwds.iter().chain(&self.add_dirs).any(lies_in)
    }

    fn is_not_denied(&self, tool: &str, input: &Value) -> bool {
        let Some(rules) = &self.rules else { return false };
        // The CLI has resolved links already (see `allow`).
        let verdict = rules.verdict(PermissionMode::Edit, &ToolCall::new(tool, input), &TextOnly);
        matches!(verdict, None | Some(Verdict::Allow))
    }
}

/// Whether a path below a directory may be edited without a request to the caller.
fn is_free(path: &Path) -> bool {
    let is_free = |part: Component<'_>| match part {
        Component::Normal(name) => {
            let name = name.to_string_lossy().to_ascii_lowercase();
            let is_shell_file = name.starts_with('.') && (name.ends_with("rc") || name.ends_with("profile"));
            !is_shell_file && !GUARDED.contains(&name.as_str())
        }
        _ => false,
    };
    path.components().next().is_some() && path.components().all(is_free)
}

/// Whether a tool does nothing but change files.
pub(super) fn is_edit(tool: &str) -> bool {
    matches!(tool, "Edit" | "MultiEdit" | "Write" | "NotebookEdit")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edits(deny: &[&str]) -> Edits {
        let mut request = RunRequest::default();
        request.permissions.mode = PermissionMode::Edit;
        request.permissions.deny = deny.iter().map(|&rule| rule.to_owned()).collect();
        request.cwd = Some("/p".into());
        request.add_dirs = vec!["/more".into()];
        Edits::new(&request)
    }

    fn edit_request(tool: &str, path: &str, suggested: &[&str]) -> ControlRequest {
        ControlRequest {
            tool_name: Some(tool.to_owned()),
            input: json!({"file_path": path, "content": "x"}).into(),
            permission_suggestions: suggested.iter().map(|kind| json!({"type": kind})).collect(),
            ..ControlRequest::default()
        }
    }

    #[test]
    fn an_edit_within_the_directories_is_allowed_and_nothing_else() {
        for (tool, path, suggested, allowed) in [
            ("Write", "/p/src/a", &["setMode"][..], true),
            ("Edit", "a", &["setMode"], true),
            ("Write", "/more/a", &["setMode"], true),
            ("Bash", "/p/a", &["setMode"], false),
            ("mcp__x__Write", "/p/a", &["setMode"], false),
            ("Write", "/p/../etc/passwd", &["setMode"], false),
            ("Write", "/etc/passwd", &["setMode"], false),
            ("Write", "/p/link/a", &["setMode", "addDirectories"], false),
            ("Write", "/p/a", &["addRules"], false),
            ("Write", "/p/a", &[], false),
            ("Write", "/p", &["setMode"], false),
            ("Write", "/p/.git/hooks/pre-commit", &["setMode"], false),
            ("Write", "/p/sub/.Claude/settings.json", &["setMode"], false),
            ("Write", "/p/.mcp.json", &["setMode"], false),
            ("Write", "/p/sub/../../p/a", &["setMode"], false),
            ("Write", "/p/.bashrc", &["setMode"], false),
            ("Write", "/p/secrets/key", &["setMode"], false),
        ] {
            let request = edit_request(tool, path, suggested);
            assert_eq!(edits(&["Write(secrets/**)"]).allow(&request), allowed, "{tool} {path} {suggested:?}");
        }
        let off = Edits { is_on: false, ..edits(&[]) };
        assert!(!off.allow(&edit_request("Write", "/p/a", &["setMode"])), "in another mode");
        let mut two = edit_request("Write", "/p/a", &["setMode"]);
        let mut input = two.input.to_value().unwrap();
        input["notebook_path"] = "/etc/passwd".into();
        two.input = input.into();
        assert!(!edits(&[]).allow(&two), "which of the two is meant?");
    }
}
