//! Allow and deny rules for tools (`permissions.allow` and `permissions.deny`), applied to an agent's permission requests.
//!
//! An agent that supports rules receives them at its start, and requests no permission for calls that they decide. The rules
//! are applied here to all other permission requests. The syntax is the same for all agents: `TOOL`, `TOOL(PREFIX:*)`,
//! `TOOL(PATTERN)`, `mcp__SERVER` and `mcp__SERVER__TOOL`, with the agent's names of tools.
//!
//! Invariants: an allow rule matches a call only if it certainly covers the call. A deny rule matches a call if it may cover the
//! call, and has priority. If neither is certain, the caller must answer.

mod call;
mod no_rule;
mod path;
mod path_rule;
mod pattern;
mod rule;
mod shell;
mod suggestion;
mod url;

use std::path::{Path, PathBuf};

use self::call::Subject;
pub use self::call::ToolCall;
pub use self::no_rule::NoRule;
pub use self::path::{PathResolver, TextOnly};
use self::rule::Rule;
use self::shell::{Match, plain};
use teamster_types::json::RawJson;
use teamster_types::request::{Answer, PermissionMode, Permissions, RequestError};

/// The parsed rules of a session.
///
/// ```
/// use serde_json::json;
/// use teamster_agents::rules::{TextOnly, ToolCall, ToolRules, Verdict};
/// use teamster_types::request::Permissions;
///
/// let permissions = Permissions::default().with_allow(["Bash(git diff:*)"]).with_deny(["Bash(git push:*)"]);
/// let rules = ToolRules::read(&permissions, None)?;
///
/// let verdict = |command| {
///     let input = json!({ "command": command });
///     rules.verdict(permissions.mode, &ToolCall::new("Bash", &input), &TextOnly)
/// };
/// assert_eq!(verdict("git diff HEAD"), Some(Verdict::Allow));
/// assert_eq!(verdict("git diff > file"), None);
/// let pushed = verdict("cd x && git -C . push");
/// assert!(matches!(pushed, Some(Verdict::Deny { rule }) if rule == "Bash(git push:*)"));
/// assert!(matches!(verdict("$program"), Some(Verdict::Ask { .. })));
/// # Ok::<(), teamster_types::request::RequestError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolRules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    cwd: Option<PathBuf>,
}

/// The decision of the rules about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is allowed.
    Allow,
    /// It is denied.
    Deny {
        /// The rule that denies it.
        rule: String,
    },
    /// Its input cannot be read, so no rule can be applied. The call must be denied.
    Unreadable,
    /// A person must decide, in every permission mode. If no person is available, the call must be denied.
    Ask {
        /// The reason why the rules cannot decide, as a sentence.
        why: String,
    },
}

impl Verdict {
    /// Returns the answer to the permission request; `None` if a person must answer.
    pub fn answer(self) -> Option<Answer> {
        let message = match self {
            Self::Allow => return Some(Answer::Allow { input: None }),
            Self::Ask { .. } => return None,
            Self::Deny { rule } => format!("It is denied by the rule {rule}."),
            Self::Unreadable => "Its input cannot be read.".to_owned(),
        };
        Some(Answer::Deny { message: Some(message) })
    }
}

/// Fields with which an agent requests further permissions besides the call.
const FURTHER_PERMISSIONS: [&str; 4] = ["additionalPermissions", "grantRoot", "network", "permissions"];

impl ToolRules {
    /// Parses the rules. Relative paths in them are relative to `cwd`, the agent's working directory.
    ///
    /// # Errors
    /// If a rule is invalid.
    pub fn read(permissions: &Permissions, cwd: Option<&Path>) -> Result<Self, RequestError> {
        let read = |rules: &[String]| rules.iter().map(|rule| Rule::read(rule)).collect::<Result<_, _>>();
        Ok(Self { allow: read(&permissions.allow)?, deny: read(&permissions.deny)?, cwd: cwd.map(Path::to_owned) })
    }

    /// Decides a call in this mode; `None` if no rule covers it. The arguments are the agent's JSON.
    ///
    /// `server` is the MCP server of the tool, if it is known. `files` resolves paths now, so the verdict is valid only for the
    /// call that waits, not for later ones.
    pub fn verdict_on(
        &self,
        mode: PermissionMode,
        tool: &str,
        server: Option<&str>,
        input: &RawJson,
        files: &dyn PathResolver,
    ) -> Option<Verdict> {
        match input.to_value() {
            Ok(input) => self.verdict(mode, &ToolCall::new(tool, &input).of_server(server), files),
            Err(_) => Some(Verdict::Unreadable),
        }
    }

    /// Like [`Self::verdict_on`], for parsed arguments.
    pub fn verdict(&self, mode: PermissionMode, call: &ToolCall<'_>, files: &dyn PathResolver) -> Option<Verdict> {
        let texts = call::texts(call.input());
        let mut undecided = None;
        for rule in &self.deny {
            match rule.denies(call, &texts, self.cwd.as_deref(), files) {
                Match::Yes => return Some(Verdict::Deny { rule: rule.text.clone() }),
                Match::Maybe => undecided = undecided.or(Some(rule)),
                Match::No => {}
            }
        }
        if let Some(rule) = undecided {
            let why = format!("It cannot be decided whether the rule {} denies it.", rule.text);
            return Some(Verdict::Ask { why });
        }
        // In read-only mode, no rule allows a call.
        let requests_more =
            !call.name().starts_with("mcp__") && FURTHER_PERMISSIONS.iter().any(|key| call.input().get(key).is_some());
        if mode == PermissionMode::ReadOnly || requests_more {
            return None;
        }
        self.allows(call, files).then_some(Verdict::Allow)
    }

    /// Whether allow rules certainly cover this call.
    fn allows(&self, call: &ToolCall<'_>, files: &dyn PathResolver) -> bool {
        if self.allow.iter().any(|rule| rule.allows_all(call)) {
            return true;
        }
        let cwd = self.cwd.as_deref();
        let Some(subject) = Subject::of(call, cwd, files) else { return false };
        if self.allow.iter().any(|rule| rule.allows(call, &subject, cwd, files)) {
            return true;
        }
        if let Subject::Command(text) = &subject
            && let Some(script) = plain::script_of(text)
            && self.allow.iter().any(|rule| rule.allows(call, &Subject::Command(&script), cwd, files))
        {
            return true;
        }
        let commands = match &subject {
            Subject::Command(text) => plain::commands(text),
            Subject::Words(words) => plain::commands_of_words(words),
            Subject::Path(_) | Subject::Url(_) => None,
        };
        let Some(commands) = commands.filter(|commands| !commands.is_empty()) else { return false };
        commands.iter().all(|command| self.allow.iter().any(|rule| rule.allows_command(call, command)))
    }
}

#[cfg(test)]
mod tests;
