//! A rule: its syntax, and the calls that it covers.

use std::path::Path;

use super::call::{Subject, Text, ToolCall};
use super::path::PathResolver;
use super::path_rule;
use super::pattern::{Glob, Star};
use super::shell::Match;
use super::shell::plain::Plain;
use super::shell::possible::CommandPattern;
use super::url;
use teamster_types::request::RequestError;

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    tool: String,
    scope: Scope,
}

/// The calls of the tool that a rule covers.
#[derive(Clone, Debug)]
enum Scope {
    All,
    /// Commands that start with these words.
    Prefix(String, CommandPattern),
    /// `domain:HOST`.
    Host(Glob),
    Pattern {
        text: String,
        glob: Glob,
        command: CommandPattern,
    },
}

impl Rule {
    /// Parses a rule.
    pub(super) fn read(text: &str) -> Result<Self, RequestError> {
        let wrong = |why| RequestError::Rule { rule: text.to_owned(), why };
        let rule = text.trim();
        let (tool, scope) = match rule.split_once('(') {
            None => (rule, Scope::All),
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| wrong("the closing bracket is missing"))?;
                let scope = match inner.strip_suffix(":*") {
                    _ if inner.trim().is_empty() => return Err(wrong("its brackets are empty")),
                    Some(prefix) if prefix.trim().is_empty() => return Err(wrong("the prefix before :* is empty")),
                    Some(prefix) => Scope::Prefix(prefix.trim().to_owned(), CommandPattern::new(prefix)),
                    None if inner == "*" => Scope::All,
                    None => match inner.strip_prefix("domain:") {
                        Some(host) => Scope::Host(Glob::lowercase(host)),
                        None => Scope::Pattern {
                            text: inner.to_owned(),
                            glob: Glob::new(inner),
                            command: CommandPattern::new(inner),
                        },
                    },
                };
                (tool.trim(), scope)
            }
        };
        if tool.is_empty() {
            return Err(wrong("it names no tool"));
        }
        if tool.contains(|c: char| c.is_whitespace() || c.is_control() || "()\"'`,;".contains(c)) {
            return Err(wrong("the tool's name contains a space, a bracket, a quote or a comma"));
        }
        Ok(Self { text: rule.to_owned(), tool: tool.to_owned(), scope })
    }

    /// Whether it allows all calls of this tool.
    pub(super) fn allows_all(&self, call: &ToolCall<'_>) -> bool {
        matches!(self.scope, Scope::All) && self.certainly_names(call)
    }

    /// Whether it allows this command, one of the commands that a call runs.
    pub(super) fn allows_command(&self, call: &ToolCall<'_>, command: &Plain) -> bool {
        self.certainly_names(call)
            && match &self.scope {
                Scope::Prefix(prefix, _) => command.starts_with(prefix),
                Scope::Pattern { glob, .. } => glob.matches(&command.line(), Star::Everything),
                Scope::All | Scope::Host(_) => false,
            }
    }

    /// Whether it allows a call with this subject as a whole.
    pub(super) fn allows(
        &self,
        call: &ToolCall<'_>,
        subject: &Subject<'_>,
        cwd: Option<&Path>,
        files: &dyn PathResolver,
    ) -> bool {
        self.certainly_names(call)
            && match (&self.scope, subject) {
                // A pattern without a wildcard matches only the same command.
                (Scope::Pattern { glob, .. }, Subject::Command(command)) => {
                    glob.is_exactly(command.trim_matches([' ', '\t', '\n']))
                }
                (Scope::Pattern { text, .. }, Subject::Path(path)) => path_rule::allows(text, path, cwd, files),
                (Scope::Pattern { glob, .. }, Subject::Url(url)) => {
                    url::host(url).is_some() && glob.matches(url, Star::WithinName)
                }
                (Scope::Host(glob), Subject::Url(url)) => {
                    url::host(url).is_some_and(|host| glob.matches(&host, Star::Everything))
                }
                _ => false,
            }
    }

    /// Whether it may cover this call.
    pub(super) fn denies(
        &self,
        call: &ToolCall<'_>,
        texts: &[Text],
        cwd: Option<&Path>,
        files: &dyn PathResolver,
    ) -> Match {
        let names = [call.name(), call.bare_name().to_owned(), call.agents_name().to_owned()];
        if !names.iter().any(|name| self.names_in_any_case(name)) {
            return Match::No;
        }
        match &self.scope {
            Scope::All => Match::Yes,
            Scope::Prefix(_, command) => commands(command, texts, !texts.iter().any(Text::is_command)),
            Scope::Host(glob) => {
                let is_covered = |host: &String| glob.matches(host, Star::Everything);
                let covers = texts.iter().any(|text| url::hosts(&text.text).iter().any(is_covered));
                let may_be = |text: &Text| !text.is_prose() && url::has_unusual_host(&text.text);
                match covers {
                    true => Match::Yes,
                    false if texts.iter().any(may_be) => Match::Maybe,
                    false => Match::No,
                }
            }
            Scope::Pattern { text, glob, command } => {
                let (lines, others): (Vec<Text>, Vec<Text>) = texts.iter().cloned().partition(Text::is_command);
                let is_covered = |line: &Text| {
                    let plain = line.text.replace(['\'', '"', '\\'], "");
                    [line.text.trim(), plain.trim()].iter().any(|text| glob.matches(text, Star::Everything))
                };
                if lines.iter().any(is_covered) {
                    return Match::Yes;
                }
                path_rule::denies(text, &others, cwd, files).max(commands(command, texts, false))
            }
        }
    }

    /// Whether it certainly names this tool. `mcp__a__b` names the tool `b` of the server `a`. It names neither the tool `b__c` of
    /// that server, nor all tools of a server `a__b`, unless the server of the call is known.
    fn certainly_names(&self, call: &ToolCall<'_>) -> bool {
        let name = call.name();
        let (Some(rule), Some(_)) = (self.tool.strip_prefix("mcp__"), name.strip_prefix("mcp__")) else {
            return Glob::new(&self.tool).matches(&name, Star::Everything);
        };
        if self.tool == name {
            return true;
        }
        let literal = rule.split(['*', '?']).next().unwrap_or_default();
        let is_wild = literal.len() < rule.len();
        match call.server() {
            Some(server) if !is_wild => rule == server,
            Some(server) if literal.contains("__") && !literal.starts_with(&format!("{server}__")) => false,
            None if !is_wild => !rule.contains("__") && self.names(&name),
            _ => Glob::new(&self.tool).matches(&name, Star::Everything),
        }
    }

    /// Whether it names this tool or the server of the tool.
    fn names(&self, tool: &str) -> bool {
        names(&self.tool, tool)
    }

    fn names_in_any_case(&self, tool: &str) -> bool {
        self.names(tool) || names(&self.tool.to_lowercase(), &tool.to_lowercase())
    }
}

fn names(rule: &str, tool: &str) -> bool {
    let of_server = || {
        let rest = rule.strip_prefix("mcp__").and(tool.strip_prefix(rule));
        rest.is_some_and(|rest| rest.starts_with("__"))
    };
    Glob::new(rule).matches(tool, Star::Everything) || of_server()
}

/// Whether any of these texts may be a command that matches the pattern. An undecided text counts only if it is in a field for
/// commands, or, if `any`, in any field that is not for prose.
fn commands(command: &CommandPattern, texts: &[Text], any: bool) -> Match {
    let of_text = |text: &Text| match command.is_run_by(&text.text) {
        Match::Maybe if !(text.is_command() || any && !text.is_prose()) => Match::No,
        found => found,
    };
    texts.iter().map(of_text).max().unwrap_or(Match::No)
}
