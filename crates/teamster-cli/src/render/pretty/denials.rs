//! The calls that the permissions denied in a run, and the options that allow them.

use serde_json::Value;
use teamster::agent::rules::{TextOnly, ToolCall, ToolRules};
use teamster::event::{PermissionDenial, RunResult};

use super::call;
use crate::printable::{Printable, printable};

/// The arguments of a call that rules describe: a command, or the address of a page.
const COMMANDS: [&str; 2] = ["command", "cmd"];
const URL: &str = "url";

/// The tools that run commands, of Claude Code 2.1.197, OpenCode 1.18.33 and Gemini CLI 0.61.0.
const COMMAND_TOOLS: [&str; 3] = ["Bash", "bash", "run_shell_command"];

/// The tools that change files, of the same versions.
const EDIT_TOOLS: [&str; 9] =
    ["Edit", "MultiEdit", "NotebookEdit", "Write", "edit", "multiedit", "replace", "write", "write_file"];

/// What allows a denied call.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    /// These rules of `--allow-tool`.
    Rules(Vec<String>),
    /// No narrow rule exists for the command, for this reason.
    NoRule(String),
    /// The permission mode in which the agent edits files.
    Edit,
    /// A wider permission mode: the agent accepts no rule for the call.
    Mode,
    /// A chat: the call asks the user.
    Chat,
    /// It depends on the agent.
    Unknown,
}

/// Returns which tools were denied, and on further lines what allows them. `agent` is the agent of the run, if it is known.
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
fn options(remedies: &[Remedy]) -> Vec<Printable> {
    if remedies.contains(&Remedy::Unknown) {
        return vec!["see --permission and --allow-tool".into()];
    }
    let mut rules: Vec<&String> = Vec::new();
    for rule in remedies.iter().filter_map(|remedy| if let Remedy::Rules(rules) = remedy { Some(rules) } else { None })
    {
        rules.extend(rule.iter().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>());
    }
    let mut parts = Vec::new();
    if !rules.is_empty() {
        let rules = rules.into_iter().map(|rule| printable!("--allow-tool {}", Printable::shell_word(rule)));
        parts.push(printable!("to allow: {}", Printable::join(rules, " ")));
    }
    if remedies.contains(&Remedy::Edit) {
        parts.push("to allow edits: --permission edit; in another directory also --add-dir".into());
    }
    if remedies.contains(&Remedy::Mode) {
        parts.push("to allow: --permission edit or full, or approve it in teamster chat".into());
    }
    if remedies.contains(&Remedy::Chat) {
        parts.push("an agent can ask you in teamster chat".into());
    }
    let reason =
        remedies.iter().find_map(|remedy| if let Remedy::NoRule(reason) = remedy { Some(reason) } else { None });
    let no_rule = reason.map(|reason| {
        let which = if parts.is_empty() { "this command" } else { "another command" };
        let reason = Printable::message(reason);
        printable!("no narrow rule exists for {}: {}; teamster chat asks for each call", which, reason)
    });
    (!parts.is_empty()).then(|| Printable::join(parts, "; ")).into_iter().chain(no_rule).collect()
}

fn remedy(denial: &PermissionDenial, agent: Option<&str>) -> Remedy {
    let name = denial.tool_name.as_str();
    if call::is_question(name) {
        return Remedy::Chat;
    }
    match agent {
        _ if name.starts_with("mcp__") => Remedy::Rules(vec![name.to_owned()]),
        Some("claude" | "gemini" | "opencode") if EDIT_TOOLS.contains(&name) => Remedy::Edit,
        Some(agent @ ("claude" | "gemini" | "opencode")) => narrow(denial, agent),
        // Codex 0.169.0 has no rules for commands and patches.
        Some("codex") => Remedy::Mode,
        _ => Remedy::Unknown,
    }
}

/// Returns rules that allow the commands of a call, or the host of a page, and not all calls of the tool. A tool without commands
/// has one rule. Claude Code 2.1.197 does not accept the rules for paths that Teamster itself applies in a chat.
fn narrow(denial: &PermissionDenial, agent: &str) -> Remedy {
    let name = denial.tool_name.as_str();
    let input = denial.input.as_ref().and_then(|input| input.to_value().ok()).unwrap_or_default();
    let has = |field: &str| input.get(field).is_some_and(|value: &Value| !value.is_null());
    let is_command = COMMAND_TOOLS.contains(&name) || COMMANDS.iter().any(|field| has(field));
    if !(is_command || agent == "claude" && has(URL)) {
        return Remedy::Rules(vec![name.to_owned()]);
    }
    // Gemini CLI 0.61.0 asks for every command with a redirection, unless a rule allows all commands.
    let text = COMMANDS.iter().find_map(|field| input.get(field)?.as_str()).unwrap_or_default();
    if agent == "gemini" && text.contains(['>', '<']) {
        return Remedy::NoRule("a rule of this agent does not cover redirections".to_owned());
    }
    match ToolRules::default().suggest(&ToolCall::new(name, &input), &TextOnly) {
        Ok(rules) => match rules.iter().map(|rule| in_syntax_of(agent, rule)).collect() {
            Some(rules) => Remedy::Rules(rules),
            None => Remedy::NoRule("a rule of this agent also covers further arguments".to_owned()),
        },
        Err(reason) if is_command => Remedy::NoRule(reason.to_string()),
        Err(_) => Remedy::Rules(vec![name.to_owned()]),
    }
}

/// Returns a rule in the agent's own syntax. OpenCode 1.18.33 has wildcards. Gemini CLI 0.61.0 has prefixes only, so it has no
/// rule for exactly one command.
fn in_syntax_of(agent: &str, rule: &str) -> Option<String> {
    match (agent, rule.strip_suffix(":*)")) {
        ("gemini", start) => start.map(|start| format!("{start})")),
        ("opencode", Some(start)) => Some(format!("{start} *)")),
        _ => Some(rule.to_owned()),
    }
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

    const EDITS_OF_WRITE: &str = "Write|to allow edits: --permission edit; in another directory also --add-dir";

    fn command(command: &str) -> Value {
        json!({ "command": command })
    }

    fn check<const N: usize>(cases: [(&str, &str, Value, &str); N]) {
        for (agent, name, input, expected) in cases {
            assert_eq!(shown(agent, &[(name, input)]), format!("denied by the permissions: {expected}"), "{agent}");
        }
    }

    #[test]
    fn a_denied_call_of_claude_names_the_option_that_allows_it() {
        check([
            ("claude", "Bash", command("npm install x"), "Bash|to allow: --allow-tool 'Bash(npm install:*)'"),
            (
                "claude",
                "Bash",
                command("touch a && echo b"),
                "Bash|to allow: --allow-tool 'Bash(touch a)' --allow-tool 'Bash(echo b)'",
            ),
            (
                "claude",
                "Bash",
                command("python3 -m pytest -q 2>&1 | tail -3"),
                "Bash|to allow: --allow-tool 'Bash(python3 -m pytest:*)' --allow-tool 'Bash(tail:*)'",
            ),
            (
                "claude",
                "Bash",
                command("echo a > out"),
                "Bash|no narrow rule exists for this command: the command writes to a file; teamster chat asks for each call",
            ),
            ("claude", "Write", json!({"file_path": "/p/a"}), EDITS_OF_WRITE),
            (
                "claude",
                "WebFetch",
                json!({"url": "https://docs.rs/x"}),
                "WebFetch|to allow: --allow-tool 'WebFetch(domain:docs.rs)'",
            ),
            ("claude", "WebSearch", json!({"query": "x"}), "WebSearch|to allow: --allow-tool WebSearch"),
            ("claude", "AskUserQuestion", json!({}), "AskUserQuestion|an agent can ask you in teamster chat"),
        ]);
    }

    #[test]
    fn a_denied_call_of_another_agent_names_the_option_that_allows_it() {
        check([
            (
                "gemini",
                "run_shell_command",
                command("npm install x && tail -3 log"),
                "run_shell_command|to allow: --allow-tool 'run_shell_command(npm install)' \
                 --allow-tool 'run_shell_command(tail)'",
            ),
            (
                "gemini",
                "run_shell_command",
                command("npm test 2>&1 | tail -3"),
                "run_shell_command|no narrow rule exists for this command: a rule of this agent does not cover \
                 redirections; teamster chat asks for each call",
            ),
            (
                "gemini",
                "run_shell_command",
                command("rm -rf build"),
                "run_shell_command|no narrow rule exists for this command: a rule of this agent also covers further \
                 arguments; teamster chat asks for each call",
            ),
            ("opencode", "bash", command("npm install x"), "bash|to allow: --allow-tool 'bash(npm install *)'"),
            (
                "codex",
                "file_change",
                json!({"changes": []}),
                "file change|to allow: --permission edit or full, or approve it in teamster chat",
            ),
            ("codex", "mcp__calc__add", json!({}), "mcp__calc__add|to allow: --allow-tool mcp__calc__add"),
            ("goose", "shell", command("ls"), "shell|see --permission and --allow-tool"),
        ]);
    }

    #[test]
    fn several_denied_calls_share_one_line_of_options() {
        let input = json!({"command": "npm install x"});
        let two = [("Bash", input.clone()), ("Bash", input.clone()), ("WebSearch", json!({}))];
        assert_eq!(
            shown("claude", &two),
            "denied by the permissions: Bash, WebSearch|to allow: --allow-tool 'Bash(npm install:*)' --allow-tool WebSearch"
        );
        // A broad rule would include the narrow one.
        let two = [("Bash", input), ("Bash", json!({"command": "npm test > log"}))];
        assert_eq!(
            shown("claude", &two),
            "denied by the permissions: Bash|to allow: --allow-tool 'Bash(npm install:*)'|no narrow rule exists for \
             another command: the command writes to a file; teamster chat asks for each call"
        );
    }

    #[test]
    fn no_rule_for_all_commands_is_ever_suggested() {
        for agent in ["claude", "gemini", "opencode"] {
            for tool in COMMAND_TOOLS {
                for input in [json!({}), json!({"command": "a; b & c"}), json!({"command": ["ls", "$x"]}), json!(null)]
                {
                    let shown = shown(agent, &[(tool, input)]);
                    assert!(!shown.contains("--allow-tool"), "{shown}");
                }
            }
        }
    }
}
