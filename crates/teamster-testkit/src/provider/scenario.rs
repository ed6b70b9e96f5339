//! The model's replies, by turn and branch. The code is independent of the vendor and does no I/O.
//!
//! A [`Script`] is a list of turns. The turn number of a request is the number of assistant
//! messages after the prompt, so a script starts again for each new prompt, also when several
//! conversations run at the same time. A [`Scenario`] has one script for prompts without a marker,
//! and any number of branches for prompts with one.

use std::collections::BTreeMap;

use super::failure::HttpError;
use super::record::{Message, Role};
use super::reply::{Reply, Turn};

/// The prefix of a branch name in a prompt.
pub const MARKER: &str = "SCN:";

/// The name of the branch for prompts without a marker. The marker `SCN:default` returns to it from
/// another branch.
pub const DEFAULT_BRANCH: &str = "default";

/// Returns the marker that selects a branch: `SCN:<name>`.
pub fn marker(branch: &str) -> String {
    format!("{MARKER}{branch}")
}

/// The replies of a provider.
///
/// The latest user message with a marker in its text selects the branch, and turns are counted from
/// that message. A message that the agent adds later has no marker, so the branch stays the same.
/// If no message has a marker, the default script responds, and turns are counted from the latest
/// prompt.
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
    /// Creates a scenario without replies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn to the default script.
    #[must_use]
    pub fn reply(mut self, turn: impl Into<Turn>) -> Self {
        self.default = self.default.reply(turn);
        self
    }

    /// Fails every turn after the last one of the default script, instead of repeating the last
    /// reply.
    #[must_use]
    pub fn then_fail(mut self) -> Self {
        self.default = self.default.then_fail();
        self
    }

    /// Adds a branch for prompts with the marker `SCN:<name>`. A name consists of letters, digits,
    /// `_` and `-`.
    #[must_use]
    pub fn branch(mut self, name: impl Into<String>, script: impl Into<Script>) -> Self {
        self.branches.insert(name.into(), script.into());
        self
    }

    /// Returns the first branch name that no marker can contain.
    pub(crate) fn invalid_branch_name(&self) -> Option<&str> {
        self.branches
            .keys()
            .map(String::as_str)
            .find(|name| name.is_empty() || !name.chars().all(is_name) || *name == DEFAULT_BRANCH)
    }

    /// Selects the response to a conversation.
    pub(crate) fn choose(&self, messages: &[Message]) -> Choice<'_> {
        let (branch, prompt) = find_prompt(messages);
        let turn = messages.iter().skip(prompt).filter(|message| message.role == Role::Assistant).count();
        let script = if branch == DEFAULT_BRANCH { Some(&self.default) } else { self.branches.get(branch) };
        let index = script.map_or(turn, |script| script.index(turn));
        let result = match script {
            None => Err(format!("the scenario has no branch `{branch}`")),
            Some(script) => script
                .turns
                .get(index)
                .ok_or_else(|| format!("the branch `{branch}` has no reply for turn {turn}, counted from 0")),
        };
        Choice { branch: branch.to_owned(), turn, index, result }
    }
}

impl<T: Into<Script>> From<T> for Scenario {
    fn from(script: T) -> Self {
        Self { default: script.into(), branches: BTreeMap::new() }
    }
}

/// The turns after one prompt, in order. The last one is repeated.
#[derive(Debug, Clone, Default)]
pub struct Script {
    turns: Vec<Turn>,
    after_last: AfterLast,
}

#[derive(Debug, Clone, Copy, Default)]
enum AfterLast {
    #[default]
    Repeat,
    Fail,
}

impl Script {
    /// Creates a script without turns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn.
    #[must_use]
    pub fn reply(mut self, turn: impl Into<Turn>) -> Self {
        self.turns.push(turn.into());
        self
    }

    /// Responds with an error (400, which agents do not retry) after the last turn.
    #[must_use]
    pub fn then_fail(mut self) -> Self {
        self.after_last = AfterLast::Fail;
        self
    }

    fn index(&self, turn: usize) -> usize {
        match self.after_last {
            AfterLast::Repeat => turn.min(self.turns.len().saturating_sub(1)),
            AfterLast::Fail => turn,
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

/// The selected response to a request, and its position.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) branch: String,
    pub(crate) turn: usize,
    /// The index in the script. It differs from the turn once the last reply repeats.
    pub(crate) index: usize,
    /// The response, or the reason why there is none.
    pub(crate) result: Result<&'a Turn, String>,
}

/// Returns the branch of a conversation, and the index of the prompt from which its turns are
/// counted.
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

/// Returns the last branch that a text names.
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
        Message::new(Role::Assistant, vec![Part::Text("a reply".to_owned())])
    }

    fn scenario() -> Scenario {
        Scenario::new()
            .reply(Reply::new().text("a"))
            .reply(Reply::new().text("b"))
            .branch("side", Reply::new().text("c"))
    }

    #[test]
    fn the_last_marker_of_a_text_selects_the_branch() {
        assert_eq!(marked_branch("do SCN:one, then SCN:two_b."), Some("two_b"));
        assert_eq!(marked_branch("do SCN:one, then SCN: nothing"), Some("one"));
        assert_eq!(marked_branch("no marker"), None);
    }

    #[test]
    fn turns_are_counted_from_the_latest_prompt() {
        let scenario = scenario();
        let messages = [user("x"), assistant(), assistant(), user("y"), assistant()];
        let choice = scenario.choose(&messages);
        assert_eq!((choice.branch.as_str(), choice.turn, choice.index), ("default", 1, 1));
    }

    #[test]
    fn a_later_message_without_a_marker_stays_on_the_branch() {
        let scenario = scenario();
        let messages = [user("SCN:side"), assistant(), user("continue"), assistant()];
        let choice = scenario.choose(&messages);
        assert_eq!((choice.branch.as_str(), choice.turn, choice.index), ("side", 2, 0));
    }

    #[test]
    fn an_unknown_branch_and_an_ended_script_have_no_reply() {
        assert!(scenario().choose(&[user("SCN:nowhere")]).result.is_err());
        let ended = scenario().then_fail();
        assert!(ended.choose(&[user("x"), assistant()]).result.is_ok());
        assert!(ended.choose(&[user("x"), assistant(), assistant()]).result.is_err());
    }
}
