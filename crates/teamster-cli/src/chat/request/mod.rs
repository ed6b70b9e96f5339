//! Formats the agent's permission requests, and parses the user's answers.
//!
//! Invariants: a call was shown completely, or can be, before it is allowed; only an explicit yes allows a call; "always"
//! adds exactly the rules that were shown.

mod changes;
mod fields;
mod location;
#[cfg(test)]
mod tests;
mod title;

use std::path::Path;

use anstyle::{AnsiColor, Style};
use teamster::event::{PermissionRequest, ToolKind};
use unicode_width::UnicodeWidthStr as _;

use self::changes::Changes;
use self::fields::Fields;
use self::location::Location;
use crate::printable::{GUTTER, Printable, folded, printable};
use crate::render::pretty::diff;

/// The smallest and the largest number of lines of a call that are shown at first.
const MIN_LINES: usize = 5;
const MAX_LINES: usize = 24;
/// The rows of a terminal for the title and the keys of a request, and for what is above and below it.
const OTHER_ROWS: usize = 12;

const TITLE: Style = AnsiColor::Yellow.on_default().bold();
const KEY: Style = AnsiColor::Cyan.on_default();

/// The agents' names for a command, a path, and the old and new text of a change.
const COMMAND: &[&str] = &["command", "cmd"];
const PATH: &[&str] = &["file_path", "filePath", "absolute_path", "notebook_path", "path", "filepath"];
/// The agents' names for the directory in which a command runs.
const DIRECTORY: &[&str] = &["cwd", "workdir", "dir_path", "directory", "working_directory", "workingDirectory"];
const OLD: &[&str] = &["old_string", "oldString"];
const NEW: &[&str] = &["new_string", "newString"];
const CONTENT: &[&str] = &["content"];
const PATCH: &[&str] = &["diff", "patch"];

/// A permission request that a person can judge.
#[derive(Debug)]
pub(super) struct Prompt<'a> {
    pub(super) agent: &'a str,
    pub(super) request: &'a PermissionRequest,
    /// The agent's working directory, if its files are on this machine.
    pub(super) directory: Option<&'a Path>,
    /// What "always" allows; `None` if only this call can be allowed.
    pub(super) always: Option<&'a Always>,
    /// Whether rules can be saved for later chats of the directory.
    pub(super) can_save: bool,
    /// Whether others can answer, so that the person can skip the request.
    pub(super) can_skip: bool,
    /// The number of rows of the terminal.
    pub(super) rows: usize,
}

/// What "always" allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Always {
    /// The calls of these rules.
    Rules(Vec<String>),
    /// Only this call can be allowed, for this reason.
    Never(Printable),
    /// What the agent's option with this name covers.
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "a gateway passes the agent's own options"))]
    Option(String),
}

/// How long an allowed rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// Until the session ends.
    Session,
    /// Also in later chats of the directory.
    Saved,
}

/// A formatted permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FormattedRequest {
    pub(super) text: Printable,
    /// The size of the part that is not shown.
    pub(super) hidden: Option<Printable>,
}

/// A parsed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Allow,
    /// Allows this call, and adds the rules.
    AllowAlways(Lasting),
    Deny {
        reason: Option<String>,
    },
    /// Leaves the request open.
    Skip,
    /// Shows the complete call, and asks again.
    ShowAll,
    /// The answer was invalid; shows this message, and asks again.
    Invalid(Printable),
}

impl Prompt<'_> {
    /// Formats the request: a title, the call as the agent wrote it, and the keys. Every character is shown literally or as
    /// an escape. Unless `show_all` is set, only the lines that fit the terminal are shown, and the others are counted.
    pub(super) fn format(&self, show_all: bool, width: usize) -> FormattedRequest {
        let mut lines = self.details(width);
        let count = lines.len();
        let most = self.rows.saturating_sub(OTHER_ROWS).clamp(MIN_LINES, MAX_LINES);
        let rest = if show_all { Vec::new() } else { lines.split_off(count.min(most)) };
        let hidden = (!rest.is_empty()).then(|| {
            let characters = |line: &Printable| line.without_styles().as_str().trim_start().chars().count();
            printable!("{} more lines, {} characters", rest.len(), rest.iter().map(characters).sum::<usize>())
        });
        let title = title::title(self.agent, self.request, self.directory.unwrap_or(Path::new("")), &self.location());
        let title = wrapped(&title, width).into_iter().map(|line| line.styled(TITLE));
        let note =
            hidden.as_ref().map(|hidden| printable!("    ... NOT SHOWN: {}; v shows them", hidden).styled(TITLE));
        let keys = self.keys(hidden.as_ref()).into_iter().flat_map(|line| wrapped(&line, width));
        let lines = title.chain(lines).chain(note).chain(keys);
        FormattedRequest { text: Printable::join(lines, "\n"), hidden }
    }

    /// Returns where the call has its effect, as far as its fields show.
    fn location(&self) -> Location {
        let Some(mut fields) = Fields::of(self.request.input.as_str()) else { return Location::Unknown };
        let Some(directory) = self.directory else { return Location::Unknown };
        let is_command = matches!(self.request.kind, Some(ToolKind::Execute));
        let names = if is_command { DIRECTORY } else { PATH };
        match (is_command, fields.take_text(names)) {
            (true, Some(path)) => location::of_directory(&path, directory),
            (true, None) if fields.has(DIRECTORY) => Location::Unknown,
            (true, None) => Location::Inside,
            (false, Some(path)) => location::of_path(&path, directory).0,
            (false, None) => {
                Changes::take(&mut fields).map_or(Location::Unknown, |changes| changes.location(directory))
            }
        }
    }

    /// Returns the lines of the call: the command, or the path and the change, and then all other fields.
    fn details(&self, width: usize) -> Vec<Printable> {
        let input = self.request.input.as_str();
        let mut lines = Vec::new();
        let Some(mut fields) = Fields::of(input) else {
            lines.extend(fields::of_json(input, width));
            lines.extend(self.origin(width));
            return lines;
        };
        if let Some(command) = fields.take_text(COMMAND) {
            lines.extend(folded("    $ ".into(), &command, width));
            // It belongs to the command, however long the other fields are.
            lines.extend(fields.take(DIRECTORY).lines(width));
        }
        if let Some(path) = fields.take_text(PATH) {
            lines.extend(changes::file_lines("    file: ".into(), &path, self.directory, width));
            lines.extend(change(&mut fields, width));
        }
        if let Some(changes) = Changes::take(&mut fields) {
            lines.extend(changes.lines(self.directory, width));
        }
        if let Some(patch) = fields.take_text(PATCH) {
            lines.extend(diff::of_patch(&patch, width));
        }
        lines.extend(fields.lines(width));
        lines.extend(self.origin(width));
        lines
    }

    /// Returns what the title does not name: the tool, and the targets that the agent reports.
    fn origin(&self, width: usize) -> Vec<Printable> {
        let mut lines = folded("    tool: ".into(), self.request.tool_name.as_str(), width);
        let input = self.request.input.as_str();
        for target in &self.request.targets {
            let quoted = serde_json::Value::from(target.as_str()).to_string();
            if !input.contains(&quoted) {
                lines.extend(folded("    covers: ".into(), target.as_str(), width));
            }
        }
        lines
    }

    /// Returns the lines that explain the keys.
    fn keys(&self, hidden: Option<&Printable>) -> Vec<Printable> {
        let key =
            |name: &'static str, effect: Printable| printable!("  {} {}", Printable::from(name).styled(KEY), effect);
        let mut keys = vec![key("[y]", "yes, this time".into())];
        match self.always {
            Some(Always::Rules(rules)) => {
                keys.push(key("[a]", printable!("always allow {} in this session", self.scopes(rules))));
                if self.can_save {
                    keys.push(key("[p]", "the same, saved for later chats in this directory".into()));
                }
            }
            Some(Always::Never(why)) => {
                keys.push(printable!("      always is not offered: {}", why));
            }
            Some(Always::Option(name)) => {
                keys.push(key("[a]", printable!("the agent's option {}, for its session", quoted(name))));
            }
            None => {}
        }
        keys.push(key("[n]", "no; n WHY also tells the agent why".into()));
        if self.can_skip {
            keys.push(key("[s]", "skip: leave it to others".into()));
        }
        keys.extend(hidden.map(|hidden| key("[v]", printable!("show {}", hidden))));
        keys
    }

    /// Returns what rules cover, for people.
    pub(super) fn scopes(&self, rules: &[String]) -> Printable {
        Printable::join(rules.iter().map(|rule| self.scope(rule)), " and ")
    }

    /// Returns what a rule covers, for people: `npm install *` for `Bash(npm install:*)`.
    fn scope(&self, rule: &str) -> Printable {
        let Some((tool, scope)) = rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)))
        else {
            return printable!("every call of {}", Printable::exact(rule));
        };
        let is_command = Fields::of(self.request.input.as_str()).is_some_and(|fields| fields.has(COMMAND));
        match (scope.strip_suffix(":*"), scope.strip_prefix("domain:")) {
            (Some(prefix), _) => printable!("`{} *`", Printable::exact(prefix)),
            (_, Some(host)) => printable!("every address of {}", Printable::exact(host)),
            _ if is_command => printable!("exactly `{}`", Printable::exact(scope)),
            // The rule covers other contents too.
            _ => printable!("every {} of `{}`", Printable::exact(tool), Printable::exact(scope)),
        }
    }

    /// Parses an answer.
    pub(super) fn answer(&self, line: &str) -> Reply {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let reason = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        match (word.to_lowercase().as_str(), reason) {
            ("y" | "yes", None) => Reply::Allow,
            ("a" | "always", None) if self.has_always() => Reply::AllowAlways(Lasting::Session),
            ("p", None) if self.has_always() && self.can_save => Reply::AllowAlways(Lasting::Saved),
            ("n" | "no", reason) => Reply::Deny { reason },
            ("v", None) => Reply::ShowAll,
            ("s" | "skip", None) if self.can_skip => Reply::Skip,
            ("a" | "always" | "p", None) => Reply::Invalid(match self.always {
                Some(Always::Never(why)) => printable!("it can be allowed only this time, y or n: {}", why),
                _ => "no rule covers only calls like this one, so it can be allowed only this time: y or n".into(),
            }),
            ("", _) => Reply::Invalid(self.choices()),
            _ => Reply::Invalid(printable!("{} is no answer: {}", quoted(line), self.choices())),
        }
    }

    fn has_always(&self) -> bool {
        matches!(self.always, Some(Always::Rules(_) | Always::Option(_)))
    }

    /// Names the possible answers.
    fn choices(&self) -> Printable {
        let always = if self.has_always() { "a to allow calls like it, " } else { "" };
        printable!("type y to allow this call, {}n to deny it", always)
    }
}

/// Formats the change of a file: the difference of two texts, or a new content.
fn change(fields: &mut Fields, width: usize) -> Vec<Printable> {
    if let Some(content) = fields.take_text(CONTENT) {
        return diff::of_new_text(&content, width);
    }
    let Some(old) = fields.take_text(OLD) else { return Vec::new() };
    let new = fields.take_text(NEW).unwrap_or_default();
    diff::of_texts(&old, &new, width)
}

/// Wraps a line. The rows after the first start with a prefix, so that none can look like another line.
fn wrapped(line: &Printable, width: usize) -> Vec<Printable> {
    if line.columns_without_styles() <= width {
        return vec![line.clone()];
    }
    let rows = line.rows(width.saturating_sub(GUTTER.width()).max(1));
    (0..).zip(rows).map(|(row, text)| if row == 0 { text } else { printable!("{}{}", GUTTER, text) }).collect()
}

/// Returns a short quotation of what was typed.
fn quoted(line: &str) -> Printable {
    Printable::exact(&serde_json::Value::from(line).to_string()).cut(40)
}
