//! Rules for tools, as an answer to what an agent asks: the request's `permissions.allow` and `permissions.deny`.
//!
//! An agent that has rules of its own gets them at its start and asks no more. What an agent asks all the same is held against
//! them here, in one language: `TOOL`, `TOOL(PREFIX:*)`, `TOOL(PATTERN)`, `mcp__SERVER` and `mcp__SERVER__TOOL`, with the
//! agent's own names of tools.
//!
//! Invariants: an allow rule matches only what it certainly means. A deny rule matches whatever it may mean, and wins. A call of
//! which neither is certain is asked.

mod call;
mod path;
mod pattern;
mod rule;
mod shell;
mod url;

use std::path::{Path, PathBuf};

use self::call::Subject;
pub use self::call::ToolCall;
pub use self::path::{PathResolver, TextOnly};
use self::rule::Rule;
use self::shell::{Match, plain};
use teamster_types::json::RawJson;
use teamster_types::request::{Answer, PermissionMode, Permissions, RequestError};

/// The rules of a session, read and ready to answer.
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

/// What the rules say of a call. What they say nothing of is asked.
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
    /// Its input cannot be read, so that no rule can be applied to it. It is to be denied.
    Unreadable,
    /// A person must decide, in every permission mode. Where nobody can be asked, it is to be denied.
    Ask {
        /// Why the rules cannot decide, as a sentence.
        why: String,
    },
}

impl Verdict {
    /// Returns the answer that the verdict gives; `None` if a person must give it.
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

/// Keys by which an agent asks for more than the call that it names.
const MORE: [&str; 4] = ["additionalPermissions", "grantRoot", "network", "permissions"];

impl ToolRules {
    /// Reads the rules. Relative paths in them count from `cwd`, where the agent works.
    ///
    /// # Errors
    /// When one of them is no rule.
    pub fn read(permissions: &Permissions, cwd: Option<&Path>) -> Result<Self, RequestError> {
        let read = |rules: &[String]| rules.iter().map(|rule| Rule::read(rule)).collect::<Result<_, _>>();
        Ok(Self { allow: read(&permissions.allow)?, deny: read(&permissions.deny)?, cwd: cwd.map(Path::to_owned) })
    }

    /// Decides a call whose arguments are as the agent wrote them, in this mode; `None` if no rule is about it.
    ///
    /// `server` is the MCP server of the tool, where it is known. `files` resolves paths at this moment: a verdict is for the call
    /// that waits, and not for a later one.
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

    /// Like [`Self::verdict_on`], for arguments that have been read.
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
        // Nothing that is allowed by name changes what may only be read.
        let asks_more = !call.name().starts_with("mcp__") && MORE.iter().any(|key| call.input().get(key).is_some());
        if mode == PermissionMode::ReadOnly || asks_more {
            return None;
        }
        self.allows(call, files).then_some(Verdict::Allow)
    }

    /// Whether allow rules mean this call for certain.
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
