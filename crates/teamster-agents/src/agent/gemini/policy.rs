//! The policy file of a run: the rules of Gemini CLI 0.61.0 for the permission mode and the tool rules of a request.
//!
//! A policy file has the user's tier. It overrides the CLI's own rules, those of the project and `tools.allowed` in the settings.
//! Among its rules, the one with the highest priority applies.

use super::error::unsupported;
use crate::agent::mcp::Names;
use teamster_types::request::{PermissionMode, Permissions, RequestError};

/// Tools that no run may use. Otherwise a headless run enters and leaves plan mode by itself, and is then in mode `yolo`
/// (`plan_escalate_from_default`).
pub(super) const ESCALATION: &[&str] = &["enter_plan_mode", "exit_plan_mode"];

/// Tools that no session may use. The answers to the CLI's own questions could only be yes or no.
pub(super) const ESCALATION_AND_QUESTIONS: &[&str] = &["enter_plan_mode", "exit_plan_mode", "ask_user"];

/// Tools that change nothing except the agent's notes.
const READ: &[&str] = &[
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "google_web_search",
    "get_internal_docs",
    "update_topic",
    "write_todos",
    "complete_task",
    "read_mcp_resource",
    "list_mcp_resources",
];

const EDIT: &[&str] = &["replace", "write_file"];

/// Priorities. Rules of the settings (`tools.allowed`, a trusted MCP server) have less than 400.
mod priority {
    pub(super) const ESCALATION: u16 = 999;
    pub(super) const NEVER: u16 = 990;
    pub(super) const DENIED: u16 = 980;
    pub(super) const ALLOWED: u16 = 500;
    pub(super) const MODE: u16 = 420;
    pub(super) const ELSE: u16 = 410;
}

/// Returns the policy file for these permissions. No mode allows the `withheld` tools.
pub(super) fn document(permissions: &Permissions, names: &Names, withheld: &[&str]) -> Result<String, RequestError> {
    let mut text = String::new();
    let mut add = |names: &[&str], decision, priority| rule(&mut text, &list(names), None, decision, priority);
    add(withheld, "deny", priority::ESCALATION);
    match permissions.mode {
        PermissionMode::ReadOnly => {
            add(EDIT, "deny", priority::NEVER);
            add(READ, "allow", priority::MODE);
            add(&["*"], "deny", priority::ELSE);
        }
        // A headless run denies every call that needs approval.
        PermissionMode::Ask => {}
        PermissionMode::Edit => add(EDIT, "allow", priority::MODE),
        PermissionMode::Full => add(&["*"], "allow", priority::MODE),
    }
    for denied in &permissions.deny {
        let translated = names.translated(denied);
        let (name, prefix) = read(translated.as_deref().unwrap_or(denied))?;
        rule(&mut text, &quoted(name), prefix, "deny", priority::DENIED);
    }
    for allowed in &permissions.allow {
        let translated = names.translated(allowed);
        let (name, prefix) = read(translated.as_deref().unwrap_or(allowed))?;
        rule(&mut text, &quoted(name), prefix, "allow", priority::ALLOWED);
    }
    Ok(text)
}

fn rule(text: &mut String, names: &str, prefix: Option<&str>, decision: &str, priority: u16) {
    text.push_str("[[rule]]\n");
    let mut line = |key: &str, value: &str| text.extend([key, " = ", value, "\n"]);
    line("toolName", names);
    line("decision", &quoted(decision));
    line("priority", &priority.to_string());
    if let Some(prefix) = prefix {
        line("commandPrefix", &quoted(prefix));
    } else if decision == "allow" {
        line("allowRedirection", "true");
    }
}

/// `NAME` or `run_shell_command(PREFIX)`.
fn read(rule: &str) -> Result<(&str, Option<&str>), RequestError> {
    let rule = rule.trim();
    let invalid = |why: &str| Err(unsupported("this rule for tools", format!("{rule:?} {why}")));
    let (name, prefix) = match rule.split_once('(') {
        None => (rule, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(prefix) if !prefix.trim().is_empty() => (name, Some(prefix)),
            _ => return invalid("does not end with a command and ')'"),
        },
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:*".contains(c)) {
        return invalid(
            "is not the name of a tool, such as write_file, mcp__SERVER__TOOL or run_shell_command(git diff)",
        );
    }
    if prefix.is_some() && name != "run_shell_command" {
        return invalid("contains a command, which only run_shell_command has");
    }
    Ok((name, prefix))
}

fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    match &names[..] {
        [only] => only.clone(),
        names => format!("[{}]", names.join(", ")),
    }
}

/// Returns a TOML string. JSON writes the same, except one character.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_servers() -> Names {
        Names::new(&super::super::mcp::STYLE, &std::collections::BTreeMap::new()).unwrap()
    }

    #[test]
    fn no_mode_allows_tools_that_change_the_mode() {
        for mode in [PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full] {
            let text = document(&Permissions::new(mode), &no_servers(), ESCALATION).unwrap();
            assert!(text.starts_with(
                "[[rule]]\ntoolName = [\"enter_plan_mode\", \"exit_plan_mode\"]\ndecision = \"deny\"\npriority = 999\n"
            ));
        }
    }

    #[test]
    fn tool_rules_are_translated_or_rejected() {
        let permissions = |allow: &str| Permissions::default().with_allow([allow]);
        let text = document(&permissions("run_shell_command(git \"x\\)"), &no_servers(), ESCALATION).unwrap();
        assert!(text.ends_with(
            "toolName = \"run_shell_command\"\ndecision = \"allow\"\npriority = 500\ncommandPrefix = \"git \\\"x\\\\\"\n"
        ));
        for wrong in ["", "a b", "x\"\n[[rule]]", "write_file(x)", "run_shell_command(", "run_shell_command()"] {
            assert!(document(&permissions(wrong), &no_servers(), ESCALATION).is_err(), "{wrong}");
        }
    }
}
