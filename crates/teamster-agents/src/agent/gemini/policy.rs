//! The rules that stand for a permission mode, as a policy file of Gemini CLI 0.61.0.
//!
//! A policy file is of the user's tier: it wins over the CLI's own rules, over those of the project and over `tools.allowed`
//! in settings. Between its rules the higher priority wins.

use super::unsupported;
use crate::agent::mcp::Names;
use teamster_types::request::{PermissionMode, Permissions, RequestError};

/// Without these a headless run goes into plan mode and out of it by itself, and is then in `yolo` (trap 2,
/// `plan_escalate_from_default`).
pub(super) const ESCALATION: &[&str] = &["enter_plan_mode", "exit_plan_mode"];

/// In a session it offers its model to ask the user, and takes no more than yes or no for an answer.
pub(super) const ESCALATION_AND_QUESTIONS: &[&str] = &["enter_plan_mode", "exit_plan_mode", "ask_user"];

/// What changes nothing but the agent's own notes.
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

/// Priorities. A rule of the settings (`tools.allowed`, a trusted MCP server) counts as less than 400.
mod priority {
    pub(super) const ESCALATION: u16 = 999;
    pub(super) const NEVER: u16 = 990;
    pub(super) const DENIED: u16 = 980;
    pub(super) const ALLOWED: u16 = 500;
    pub(super) const MODE: u16 = 420;
    pub(super) const ELSE: u16 = 410;
}

/// The rules of the permissions, and none for what no mode allows.
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
        // Headless, what would be asked for is denied.
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
    let wrong = |why: &str| Err(unsupported("this rule for tools", format!("{rule:?} {why}")));
    let (name, prefix) = match rule.split_once('(') {
        None => (rule, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(prefix) if !prefix.trim().is_empty() => (name, Some(prefix)),
            _ => return wrong("does not end with a command and ')'"),
        },
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:*".contains(c)) {
        return wrong("is no name of a tool, such as write_file, mcp__SERVER__TOOL or run_shell_command(git diff)");
    }
    if prefix.is_some() && name != "run_shell_command" {
        return wrong("names a command, which only run_shell_command has");
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

/// A string as TOML writes it: as JSON does, but for one more character.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody() -> Names {
        Names::new(&super::super::mcp::STYLE, &std::collections::BTreeMap::new()).unwrap()
    }

    #[test]
    fn every_mode_keeps_the_way_around_it_shut() {
        for mode in [PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full] {
            let text = document(&Permissions::new(mode), &nobody(), ESCALATION).unwrap();
            assert!(text.starts_with(
                "[[rule]]\ntoolName = [\"enter_plan_mode\", \"exit_plan_mode\"]\ndecision = \"deny\"\npriority = 999\n"
            ));
        }
    }

    #[test]
    fn rules_of_the_request_are_read_or_refused() {
        let permissions = |allow: &str| Permissions::default().with_allow([allow]);
        let text = document(&permissions("run_shell_command(git \"x\\)"), &nobody(), ESCALATION).unwrap();
        assert!(text.ends_with(
            "toolName = \"run_shell_command\"\ndecision = \"allow\"\npriority = 500\ncommandPrefix = \"git \\\"x\\\\\"\n"
        ));
        for wrong in ["", "a b", "x\"\n[[rule]]", "write_file(x)", "run_shell_command(", "run_shell_command()"] {
            assert!(document(&permissions(wrong), &nobody(), ESCALATION).is_err(), "{wrong}");
        }
    }
}
