//! The calls that the permissions denied in a run, and the options that allow them.

use serde_json::Value;
use teamster::agent::rules::{TextOnly, ToolCall, ToolRules};
use teamster::event::{PermissionDenial, RunResult};

use super::call;
use crate::printable::{Printable, printable};

/// The argument of a call that is a command.
const COMMAND: &str = "command";

/// What allows a denied call.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    /// This rule of `--allow-tool`.
    Rule(String),
    /// A wider permission mode: the agent accepts no rule for the call.
    Mode,
    /// A chat: the call asks the user.
    Chat,
    /// It depends on the agent.
    Unknown,
}

/// Returns which tools were denied, and on a second line what allows them. `agent` is the agent of the run, if it is known.
pub(super) fn lines(result: &RunResult, agent: Option<&str>) -> Vec<Printable> {
    let mut names: Vec<Printable> = Vec::new();
    let mut remedies = Vec::new();
    for denial in &result.permission_denials {
        let (name, remedy) = (call::tool_name(&denial.tool_name), remedy(denial, agent));
        if !names.contains(&name) {
            names.push(name);
        }
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let names = printable!("denied by the permissions: {}", Printable::join(names, ", "));
    std::iter::once(names).chain(options(&remedies)).collect()
}

/// Formats what allows the calls.
fn options(remedies: &[Remedy]) -> Option<Printable> {
    if remedies.contains(&Remedy::Unknown) {
        return Some("see --permission and --allow-tool".into());
    }
    let rules = remedies.iter().filter_map(|remedy| match remedy {
        Remedy::Rule(rule) => Some(printable!("--allow-tool {}", Printable::shell_word(rule))),
        _ => None,
    });
    let rules: Vec<_> = rules.collect();
    let mut parts = Vec::new();
    if !rules.is_empty() {
        parts.push(printable!("to allow: {}", Printable::join(rules, " ")));
    }
    if remedies.contains(&Remedy::Mode) {
        parts.push("to allow: --permission edit or full, or approve it in teamster chat".into());
    }
    if remedies.contains(&Remedy::Chat) {
        parts.push("an agent can ask you in teamster chat".into());
    }
    (!parts.is_empty()).then(|| Printable::join(parts, "; "))
}

fn remedy(denial: &PermissionDenial, agent: Option<&str>) -> Remedy {
    let name = denial.tool_name.as_str();
    if call::is_question(name) {
        return Remedy::Chat;
    }
    match agent {
        _ if name.starts_with("mcp__") => Remedy::Rule(name.to_owned()),
        Some("claude") => Remedy::Rule(command_rule(denial).unwrap_or_else(|| name.to_owned())),
        Some("gemini" | "opencode") => Remedy::Rule(name.to_owned()),
        // Codex 0.169.0 has no rules for commands and patches.
        Some("codex") => Remedy::Mode,
        _ => Remedy::Unknown,
    }
}

/// Returns a rule that allows the command of a call, and not all commands. Claude Code 2.1.197 has this syntax. It does not
/// accept the rules for paths that Teamster itself applies in a chat.
fn command_rule(denial: &PermissionDenial) -> Option<String> {
    let input = denial.input.as_ref()?.to_value().ok()?;
    input.get(COMMAND).and_then(Value::as_str)?;
    ToolRules::default().suggest(&ToolCall::new(&denial.tool_name, &input), &TextOnly)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(agent: &str, denials: &[(&str, Value)]) -> String {
        let mut result = RunResult::default();
        let denial =
            |(name, input): &(&str, Value)| PermissionDenial::new(*name).with_input(Some(input.clone().into()));
        result.permission_denials = denials.iter().map(denial).collect();
        Printable::join(lines(&result, Some(agent)), "|").as_str().to_owned()
    }

    #[test]
    fn a_denied_call_names_the_option_that_allows_it() {
        let command = |command: &str| json!({ "command": command });
        let denied = |rest: &str| format!("denied by the permissions: {rest}");
        for (agent, name, input, expected) in [
            ("claude", "Bash", command("npm install x"), "Bash|to allow: --allow-tool 'Bash(npm install:*)'"),
            ("claude", "Bash", command("touch a && echo b"), "Bash|to allow: --allow-tool Bash"),
            ("claude", "Write", json!({"file_path": "/p/a"}), "Write|to allow: --allow-tool Write"),
            ("claude", "AskUserQuestion", json!({}), "AskUserQuestion|an agent can ask you in teamster chat"),
            ("gemini", "replace", json!({"file_path": "a"}), "replace|to allow: --allow-tool replace"),
            ("opencode", "bash", command("npm install x"), "bash|to allow: --allow-tool bash"),
            (
                "codex",
                "file_change",
                json!({"changes": []}),
                "file change|to allow: --permission edit or full, or approve it in teamster chat",
            ),
            ("codex", "mcp__calc__add", json!({}), "mcp__calc__add|to allow: --allow-tool mcp__calc__add"),
            ("goose", "shell", command("ls"), "shell|see --permission and --allow-tool"),
        ] {
            assert_eq!(shown(agent, &[(name, input)]), denied(expected), "{agent}");
        }
    }

    #[test]
    fn several_denied_calls_share_one_line_of_options() {
        let input = json!({"command": "npm install x"});
        let two = [("Bash", input.clone()), ("Bash", input), ("Write", json!({}))];
        assert_eq!(
            shown("claude", &two),
            "denied by the permissions: Bash, Write|to allow: --allow-tool 'Bash(npm install:*)' --allow-tool Write"
        );
    }
}
