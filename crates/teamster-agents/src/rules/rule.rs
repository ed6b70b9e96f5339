//! One rule.

use std::path::Path;

use super::call::{Subject, Text, ToolCall};
use super::path::{self, PathResolver};
use super::pattern::{Glob, Star};
use super::shell::Match;
use super::shell::plain::Plain;
use super::shell::wide::Wanted;
use super::url;
use teamster_types::request::RequestError;

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    tool: String,
    what: What,
}

/// Which calls of the tool are meant.
#[derive(Clone, Debug)]
enum What {
    All,
    /// Commands that begin with these words.
    Prefix(String, Wanted),
    /// `domain:HOST`.
    Host(Glob),
    Pattern {
        text: String,
        glob: Glob,
        wanted: Wanted,
    },
}

impl Rule {
    pub(super) fn read(text: &str) -> Result<Self, RequestError> {
        let wrong = |why| RequestError::Rule { rule: text.to_owned(), why };
        let rule = text.trim();
        let (tool, what) = match rule.split_once('(') {
            None => (rule, What::All),
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| wrong("its bracket does not close"))?;
                let what = match inner.strip_suffix(":*") {
                    _ if inner.trim().is_empty() => return Err(wrong("nothing stands in its brackets")),
                    Some(prefix) if prefix.trim().is_empty() => return Err(wrong("no words stand before :*")),
                    Some(prefix) => What::Prefix(prefix.trim().to_owned(), Wanted::new(prefix)),
                    None if inner == "*" => What::All,
                    None => match inner.strip_prefix("domain:") {
                        Some(host) => What::Host(Glob::lowercase(host)),
                        None => {
                            What::Pattern { text: inner.to_owned(), glob: Glob::new(inner), wanted: Wanted::new(inner) }
                        }
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

    /// Whether it allows all calls of this tool.
    pub(super) fn allows_all(&self, call: &ToolCall<'_>) -> bool {
        matches!(self.what, What::All) && self.certainly_names(call)
    }

    /// Whether it allows this command, which is one of those that a call runs.
    pub(super) fn allows_command(&self, call: &ToolCall<'_>, command: &Plain) -> bool {
        self.certainly_names(call)
            && match &self.what {
                What::Prefix(prefix, _) => command.begins_with(prefix),
                What::Pattern { glob, .. } => glob.matches(&command.line(), Star::Everything),
                What::All | What::Host(_) => false,
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
            && match (&self.what, subject) {
                // What is written out without a wildcard is meant as it is.
                (What::Pattern { glob, .. }, Subject::Command(command)) => {
                    glob.is_exactly(command.trim_matches([' ', '\t', '\n']))
                }
                (What::Pattern { text, .. }, Subject::Path(path)) => path::allows(text, path, cwd, files),
                (What::Pattern { glob, .. }, Subject::Url(url)) => {
                    url::host(url).is_some() && glob.matches(url, Star::WithinName)
                }
                (What::Host(glob), Subject::Url(url)) => {
                    url::host(url).is_some_and(|host| glob.matches(&host, Star::Everything))
                }
                _ => false,
            }
    }

    /// Whether it may mean this call, whatever its texts are for.
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
        match &self.what {
            What::All => Match::Yes,
            What::Prefix(_, wanted) => commands(wanted, texts, !texts.iter().any(Text::is_command)),
            What::Host(glob) => {
                let is_meant = |host: &String| glob.matches(host, Star::Everything);
                let meant = texts.iter().any(|text| url::hosts(&text.text).iter().any(is_meant));
                let may_be = |text: &Text| !text.is_prose() && url::has_unusual_host(&text.text);
                match meant {
                    true => Match::Yes,
                    false if texts.iter().any(may_be) => Match::Maybe,
                    false => Match::No,
                }
            }
            What::Pattern { text, glob, wanted } => {
                let (lines, others): (Vec<Text>, Vec<Text>) = texts.iter().cloned().partition(Text::is_command);
                let is_meant = |line: &Text| {
                    let plain = line.text.replace(['\'', '"', '\\'], "");
                    [line.text.trim(), plain.trim()].iter().any(|text| glob.matches(text, Star::Everything))
                };
                if lines.iter().any(is_meant) {
                    return Match::Yes;
                }
                path::denies(text, &others, cwd, files).max(commands(wanted, texts, false))
            }
        }
    }

    /// Whether it is for this tool and no other: `mcp__a__b` is the tool `b` of the server `a`, and neither its tool `b__c` nor all
    /// tools of a server `a__b`, unless the call is known to be of that server.
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

    /// Whether it is for this tool, or for the server that the tool belongs to.
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

/// Whether any of these texts may be a command that is wanted. What cannot be decided counts for commands only, or, if `any`, for
/// everything but words.
fn commands(wanted: &Wanted, texts: &[Text], any: bool) -> Match {
    let of_text = |text: &Text| match wanted.is_run_by(&text.text) {
        Match::Maybe if !(text.is_command() || any && !text.is_prose()) => Match::No,
        found => found,
    };
    texts.iter().map(of_text).max().unwrap_or(Match::No)
}
