//! Rules for tools, as an answer to what an agent asks: the request's `permissions.allow` and `permissions.deny`.
//!
//! An agent that has rules of its own gets them at its start and asks no more. What an agent asks all the same is held against
//! them here, in one language: `TOOL`, `TOOL(PREFIX:*)`, `TOOL(PATTERN)`, `mcp__SERVER` and `mcp__SERVER__TOOL`, with the
//! agent's own names of tools.
//!
//! Invariant: in doubt nothing is allowed. An allow rule is read narrowly, so that it means no call that its author did not
//! think of; a deny rule is read widely; and a deny rule wins.

mod pattern;
mod subject;

use std::path::{Path, PathBuf};

use serde_json::Value;

use self::pattern::{Glob, Star};
use self::subject::Subject;
use super::{Answer, PermissionMode, Permissions, RequestError};
use crate::json::RawJson;

/// The rules of a session, read and ready to answer.
///
/// ```
/// use serde_json::json;
/// use teamster_protocol::request::{Permissions, ToolRules, Verdict};
///
/// let mut permissions = Permissions::default();
/// permissions.allow = vec!["Bash(git diff:*)".into()];
/// permissions.deny = vec!["Bash(git push:*)".into()];
/// let rules = ToolRules::read(&permissions, None)?;
///
/// let mode = permissions.mode;
/// assert_eq!(rules.verdict(mode, "Bash", &json!({"command": "git diff HEAD"})), Some(Verdict::Allow));
/// assert_eq!(rules.verdict(mode, "Bash", &json!({"command": "git diff; rm -r ."})), None);
/// let pushed = rules.verdict(mode, "Bash", &json!({"command": "cd x && git push"}));
/// assert!(matches!(pushed, Some(Verdict::Deny { rule }) if rule == "Bash(git push:*)"));
/// # Ok::<(), teamster_protocol::request::RequestError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolRules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    cwd: Option<PathBuf>,
}

/// What the rules say of a call. What they say nothing of is asked for.
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
}

impl Verdict {
    /// Returns the answer that the verdict gives.
    pub fn answer(self) -> Answer {
        let message = match self {
            Self::Allow => return Answer::Allow { input: None },
            Self::Deny { rule } => format!("It is denied by the rule {rule}."),
            Self::Unreadable => "Its input cannot be read.".to_owned(),
        };
        Answer::Deny { message: Some(message) }
    }
}

/// Keys by which an agent asks for more than the call that it names.
const MORE: [&str; 4] = ["additionalPermissions", "grantRoot", "network", "permissions"];

#[derive(Clone, Debug)]
struct Rule {
    text: String,
    tool: String,
    what: What,
}

/// Which calls of the tool are meant.
#[derive(Clone, Debug)]
enum What {
    All,
    /// Commands that begin with these words.
    Prefix(String),
    /// `domain:HOST`.
    Host(Glob),
    Pattern(Glob),
}

impl ToolRules {
    /// Reads the rules. Relative paths in them count from `cwd`, where the agent works.
    ///
    /// # Errors
    /// When one of them is no rule.
    pub fn read(permissions: &Permissions, cwd: Option<&Path>) -> Result<Self, RequestError> {
        let read = |rules: &[String]| rules.iter().map(|rule| Rule::read(rule)).collect::<Result<_, _>>();
        Ok(Self { allow: read(&permissions.allow)?, deny: read(&permissions.deny)?, cwd: cwd.map(Path::to_owned) })
    }

    /// Returns what the rules say of a call with this input, in this mode; `None` if they say nothing.
    pub fn verdict_on(&self, mode: PermissionMode, tool: &str, input: &RawJson) -> Option<Verdict> {
        match input.to_value() {
            Ok(input) => self.verdict(mode, tool, &input),
            Err(_) => Some(Verdict::Unreadable),
        }
    }

    /// What they say of a call that the agent asks leave for, in this mode; `None` where nothing.
    pub fn verdict(&self, mode: PermissionMode, tool: &str, input: &Value) -> Option<Verdict> {
        let subject = Subject::of(input);
        let strings = subject::strings(input);
        if let Some(rule) = self.deny.iter().find(|rule| rule.denies(tool, &strings, self.cwd.as_deref())) {
            return Some(Verdict::Deny { rule: rule.text.clone() });
        }
        // Nothing that is allowed by name changes what may only be read.
        let asks_more = !tool.starts_with("mcp__") && MORE.iter().any(|key| input.get(key).is_some());
        if mode == PermissionMode::ReadOnly || asks_more {
            return None;
        }
        let allows = |rule: &Rule| rule.allows(tool, subject.as_ref(), self.cwd.as_deref());
        self.allow.iter().any(allows).then_some(Verdict::Allow)
    }
}

impl Rule {
    fn read(text: &str) -> Result<Self, RequestError> {
        let wrong = |why| RequestError::Rule { rule: text.to_owned(), why };
        let rule = text.trim();
        let (tool, what) = match rule.split_once('(') {
            None => (rule, What::All),
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| wrong("its bracket does not close"))?;
                let what = match inner.strip_suffix(":*") {
                    _ if inner.trim().is_empty() => return Err(wrong("nothing stands in its brackets")),
                    Some(prefix) if prefix.trim().is_empty() => return Err(wrong("no words stand before :*")),
                    Some(prefix) => What::Prefix(prefix.trim().to_owned()),
                    None if inner == "*" => What::All,
                    None => match inner.strip_prefix("domain:") {
                        Some(host) => What::Host(Glob::new(&host.to_ascii_lowercase())),
                        None => What::Pattern(Glob::new(inner)),
                    },
                };
                (tool.trim(), what)
            }
        };
        if tool.is_empty() {
            return Err(wrong("it names no tool"));
        }
        Ok(Self { text: rule.to_owned(), tool: tool.to_owned(), what })
    }

    /// Whether it allows this call: certainly, or not at all.
    fn allows(&self, tool: &str, subject: Option<&Subject>, cwd: Option<&Path>) -> bool {
        if !self.names(tool) {
            return false;
        }
        match (&self.what, subject) {
            (What::All, _) => true,
            (What::Prefix(prefix), Some(Subject::Command(command))) => {
                command.is_simple() && begins_with(command.text(), prefix)
            }
            (What::Pattern(glob), Some(Subject::Command(command))) => {
                // What is written out without a wildcard is meant as it is.
                glob.is_exactly(command.text()) || command.is_simple() && glob.matches(command.text(), Star::Everything)
            }
            (What::Pattern(glob), Some(Subject::Path(path))) => {
                subject::is_plain_path(path)
                    && (glob.matches(path, Star::WithinName)
                        || relative(path, cwd).is_some_and(|path| glob.matches(path, Star::WithinName)))
            }
            (What::Pattern(glob), Some(Subject::Url(url))) => {
                subject::host(url).is_some() && glob.matches(url, Star::WithinName)
            }
            (What::Host(glob), Some(Subject::Url(url))) => {
                subject::host(url).is_some_and(|host| glob.matches(&host, Star::Everything))
            }
            (What::Prefix(_) | What::Host(_), Some(_)) | (_, None) => false,
        }
    }

    /// Whether it may mean this call, whatever its texts are for.
    fn denies(&self, tool: &str, strings: &[String], cwd: Option<&Path>) -> bool {
        if !self.names(tool) && !self.names(&tool.to_lowercase()) && !self.lower().names(&tool.to_lowercase()) {
            return false;
        }
        let glob = match &self.what {
            What::All => return true,
            What::Prefix(prefix) => {
                return strings.iter().any(|text| {
                    begins_with(text.trim_start(), prefix)
                        || subject::commands(text).iter().any(|command| begins_with(command, prefix))
                });
            }
            What::Host(glob) => {
                return strings
                    .iter()
                    .any(|text| subject::hosts(text).iter().any(|host| glob.matches(host, Star::Everything)));
            }
            What::Pattern(glob) => glob,
        };
        let matches = |text: &str| glob.matches(text, Star::Everything);
        strings.iter().any(|text| {
            matches(text)
                || matches(text.rsplit('/').next().unwrap_or_default())
                || relative(text, cwd).is_some_and(matches)
                || subject::commands(text).iter().any(|command| matches(command))
        })
    }

    /// Whether it is for this tool, or for the server that the tool belongs to.
    fn names(&self, tool: &str) -> bool {
        let of_server = || {
            let rest = self.tool.strip_prefix("mcp__").and(tool.strip_prefix(self.tool.as_str()));
            rest.is_some_and(|rest| rest.starts_with("__"))
        };
        Glob::new(&self.tool).matches(tool, Star::Everything) || of_server()
    }

    fn lower(&self) -> Self {
        Self { tool: self.tool.to_lowercase(), ..self.clone() }
    }
}

/// Whether a command begins with these words.
fn begins_with(command: &str, words: &str) -> bool {
    command.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// A path as it is seen from the directory, where it lies in it.
fn relative<'a>(path: &'a str, cwd: Option<&Path>) -> Option<&'a str> {
    Path::new(path).strip_prefix(cwd?).ok()?.to_str().filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests;
