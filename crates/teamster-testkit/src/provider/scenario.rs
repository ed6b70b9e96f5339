//! The scenario language: who says what in which turn. It knows no vendor and does no I/O.
//!
//! A [`Script`] is a list of turns. The turn number of a request is the number of assistant messages after the prompt that
//! it answers, so a script is played again for each new prompt, however many conversations ask at once. A [`Scenario`] has one
//! script for prompts that carry no marker and any number of branches for those that do.

use std::collections::BTreeMap;

use super::failure::HttpError;
use super::record::{Message, Role};
use super::reply::{Reply, Turn};

/// What stands before the name of a branch in a prompt.
pub const MARKER: &str = "SCN:";

/// The name of the branch that answers prompts without a marker. The marker `SCN:default` leads back to it from another.
pub const DEFAULT_BRANCH: &str = "default";

/// The marker that sends a prompt to a branch: `SCN:<name>`.
pub fn marker(branch: &str) -> String {
    format!("{MARKER}{branch}")
}

/// All that a provider has to say.
///
/// The newest message of the user with a marker in its text chooses the branch, and turns are counted from there; a message
/// that the agent itself adds later, such as a nudge to go on, has no marker and so leaves the branch as it is. Where no
/// message has one, the default script answers, counted from the newest prompt.
///
/// ```
/// use serde_json::json;
/// use teamster_testkit::provider::{Reply, Scenario, Script};
///
/// let scenario = Scenario::new()
///     .reply(Reply::new().tool("Agent", json!({"prompt": "List the files. SCN:worker"})))
///     .reply(Reply::new().text("The worker is done."))
///     .branch(
///         "worker",
///         Script::new()
///             .reply(Reply::new().tool("Bash", json!({"command": "ls"})))
///             .reply(Reply::new().text("Two files.")),
///     );
/// ```
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    default: Script,
    branches: BTreeMap<String, Script>,
}

impl Scenario {
    /// A scenario that says nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn to the default script.
    #[must_use]
    pub fn reply(mut self, turn: impl Into<Turn>) -> Self {
        self.default = self.default.reply(turn);
        self
    }

    /// Fails every turn of the default script after its last one, instead of saying that one again.
    #[must_use]
    pub fn then_fail(mut self) -> Self {
        self.default = self.default.then_fail();
        self
    }

    /// Adds a branch for prompts with the marker `SCN:<name>`. A name has letters, digits, `_` and `-`.
    #[must_use]
    pub fn branch(mut self, name: impl Into<String>, script: impl Into<Script>) -> Self {
        self.branches.insert(name.into(), script.into());
        self
    }

    /// The first branch name that no marker could ever name.
    pub(crate) fn unreachable_branch(&self) -> Option<&str> {
        self.branches
            .keys()
            .map(String::as_str)
            .find(|name| name.is_empty() || !name.chars().all(is_name) || *name == DEFAULT_BRANCH)
    }

    /// Finds what answers a conversation.
    pub(crate) fn choose(&self, messages: &[Message]) -> Choice<'_> {
        let (branch, prompt) = find_prompt(messages);
        let turn = messages.iter().skip(prompt).filter(|message| message.role == Role::Assistant).count();
        let script = if branch == DEFAULT_BRANCH { Some(&self.default) } else { self.branches.get(branch) };
        let index = script.map_or(turn, |script| script.index(turn));
        let what = match script {
            None => Err(format!("the scenario has no branch `{branch}`")),
            Some(script) => script
                .turns
                .get(index)
                .ok_or_else(|| format!("the branch `{branch}` has no reply for turn {turn}, counted from 0")),
        };
        Choice { branch: branch.to_owned(), turn, index, what }
    }
}

impl<T: Into<Script>> From<T> for Scenario {
    fn from(script: T) -> Self {
        Self { default: script.into(), branches: BTreeMap::new() }
    }
}

/// The turns after one prompt, in order. The last one is said again and again.
#[derive(Debug, Clone, Default)]
pub struct Script {
    turns: Vec<Turn>,
    at_end: AtEnd,
}

#[derive(Debug, Clone, Copy, Default)]
enum AtEnd {
    #[default]
    Repeat,
    Fail,
}

impl Script {
    /// A script that says nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn.
    #[must_use]
    pub fn reply(mut self, turn: impl Into<Turn>) -> Self {
        self.turns.push(turn.into());
        self
    }

    /// Answers with an error (400, which agents do not try again) once the script is at its end.
    #[must_use]
    pub fn then_fail(mut self) -> Self {
        self.at_end = AtEnd::Fail;
        self
    }

    fn index(&self, turn: usize) -> usize {
        match self.at_end {
            AtEnd::Repeat => turn.min(self.turns.len().saturating_sub(1)),
            AtEnd::Fail => turn,
        }
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::new().reply(reply)
    }
}

impl From<HttpError> for Script {
    fn from(error: HttpError) -> Self {
        Self::new().reply(error)
    }
}

impl From<Turn> for Script {
    fn from(turn: Turn) -> Self {
        Self::new().reply(turn)
    }
}

/// What answers a request, and by which count.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) branch: String,
    pub(crate) turn: usize,
    /// The place in the script, which differs from the turn once the last reply repeats.
    pub(crate) index: usize,
    /// The turn, or why there is none.
    pub(crate) what: Result<&'a Turn, String>,
}

/// The branch that a conversation is on, and the place of the prompt from which its turns count.
fn find_prompt(messages: &[Message]) -> (&str, usize) {
    let prompts = || messages.iter().enumerate().rev().filter(|(_, message)| message.is_prompt());
    prompts()
        .find_map(|(place, message)| {
            let branch = message.texts().rev().find_map(marked_branch)?;
            Some((branch, place))
        })
        .or_else(|| prompts().next().map(|(place, _)| (DEFAULT_BRANCH, place)))
        .unwrap_or((DEFAULT_BRANCH, 0))
}

/// The last branch that a text names.
fn marked_branch(text: &str) -> Option<&str> {
    text.rsplit(MARKER)
        .map(|after| after.split(|character| !is_name(character)).next())
        .take(text.matches(MARKER).count())
        .flatten()
        .find(|name| !name.is_empty())
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

#[cfg(test)]
mod tests {
    use super::super::record::{Message, Part, Role};
    use super::{Reply, Scenario, marked_branch};

    fn user(text: &str) -> Message {
        Message::new(Role::User, vec![Part::Text(text.to_owned())])
    }

    fn assistant() -> Message {
        Message::new(Role::Assistant, vec![Part::Text("said".to_owned())])
    }

    fn scenario() -> Scenario {
        Scenario::new()
            .reply(Reply::new().text("a"))
            .reply(Reply::new().text("b"))
            .branch("side", Reply::new().text("c"))
    }

    #[test]
    fn the_last_marker_of_a_text_counts() {
        assert_eq!(marked_branch("do SCN:one, then SCN:two_b."), Some("two_b"));
        assert_eq!(marked_branch("do SCN:one, then SCN: nothing"), Some("one"));
        assert_eq!(marked_branch("no marker"), None);
    }

    #[test]
    fn turns_are_counted_from_the_newest_prompt() {
        let scenario = scenario();
        let messages = [user("x"), assistant(), assistant(), user("y"), assistant()];
        let choice = scenario.choose(&messages);
        assert_eq!((choice.branch.as_str(), choice.turn, choice.index), ("default", 1, 1));
    }

    #[test]
    fn a_later_message_without_marker_stays_on_the_branch() {
        let scenario = scenario();
        let messages = [user("SCN:side"), assistant(), user("go on"), assistant()];
        let choice = scenario.choose(&messages);
        assert_eq!((choice.branch.as_str(), choice.turn, choice.index), ("side", 2, 0));
    }

    #[test]
    fn an_unknown_branch_and_an_ended_script_have_no_answer() {
        assert!(scenario().choose(&[user("SCN:nowhere")]).what.is_err());
        let ended = scenario().then_fail();
        assert!(ended.choose(&[user("x"), assistant()]).what.is_ok());
        assert!(ended.choose(&[user("x"), assistant(), assistant()]).what.is_err());
    }
}
