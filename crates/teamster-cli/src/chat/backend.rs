//! Where the events of a chat come from, and where its input goes.

use teamster::Registry;
use teamster::event::{PermissionRequest, RequestId};
use teamster::request::Answer;

use super::command::{Command, Line};
use super::page::Page;
use super::request::{Always, Lasting, Prompt};
use super::state::{Chat, End};
use crate::printable::Printable;
use crate::signals::Signals;

/// What the agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// No turn runs.
    Idle,
    Working,
    /// The turn was asked to stop.
    Stopping,
}

/// Whether the chat waits for an answer of the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Usual,
    /// A request of the agent is shown.
    Asking,
}

/// What the line below the input box shows of the conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    pub(super) model: Option<Printable>,
    pub(super) permission: Option<Printable>,
    pub(super) directory: Option<Printable>,
}

/// What an exported conversation states about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// Its id.
    pub(super) id: Option<String>,
    /// Whether earlier turns are missing.
    pub(super) is_partial: bool,
}

/// The agent of a chat. It is a session of this process, or a conversation of a gateway.
pub(super) trait Backend: Sized {
    /// What arrives from the agent.
    type Arrival;

    /// Whether a gateway runs the agent: turns continue when the chat ends, others can answer requests, and the agent's files
    /// may be on another machine.
    const IS_SHARED: bool;

    /// The commands, in the order of the help.
    const COMMANDS: &'static [Command];

    /// What the keys that stop a turn do.
    const STOP_KEYS: &'static str;

    /// Waits for the next arrival, once the writer accepts an event. Cancel-safe.
    async fn next(&mut self, page: &Page, phase: Phase) -> Self::Arrival;

    fn receive(chat: &mut Chat<'_, Self>, arrival: Self::Arrival) -> Result<(), End>;

    /// Prints what a person should know at the start.
    fn introduce(chat: &mut Chat<'_, Self>);

    fn activity(&self) -> Activity;

    /// Whether a text that is submitted now is executed at once.
    fn is_ready(&self) -> bool;

    /// Starts what is next: a turn, or the first text that waits.
    async fn start_next(chat: &mut Chat<'_, Self>) -> Result<(), End>;

    /// Sends a prompt. If that fails, the prompt stays.
    fn send(chat: &mut Chat<'_, Self>, text: String);

    /// Sends a prompt into the running turn.
    fn send_now(chat: &mut Chat<'_, Self>, text: String);

    /// Stops the running turn. Returns false if no turn runs.
    fn stop(chat: &mut Chat<'_, Self>) -> bool;

    /// Notes that a signal ends the chat.
    fn terminate(&mut self);

    /// Executes a command that depends on the agent.
    async fn execute(chat: &mut Chat<'_, Self>, line: Line) -> Result<(), End>;

    /// Returns what "always" allows for a request; `None` if only this call can be allowed.
    fn always(&self, request: &PermissionRequest) -> Option<Always>;

    /// Whether what is allowed can be saved for later chats of the directory.
    fn can_save(&self) -> bool;

    /// Allows a call and later ones like it. Returns the answer for the agent.
    fn allow_always(chat: &mut Chat<'_, Self>, prompt: &Prompt<'_>, lasting: Lasting) -> Answer;

    async fn answer(chat: &mut Chat<'_, Self>, request: &RequestId, answer: Answer);

    /// Returns the agent's name.
    fn agent(&self) -> &str;

    /// Returns the agents that can be selected.
    fn agents(&self) -> Vec<String>;

    /// Returns the agents and the one whose models can be selected; `None` if its models are not known here.
    fn models(&self) -> Option<(Registry, String)> {
        None
    }

    fn status(chat: &Chat<'_, Self>) -> Status;

    fn origin(chat: &Chat<'_, Self>) -> Origin;

    /// Returns lines that stay above the status, such as the state of a connection.
    fn lines(&self, width: usize) -> Vec<Printable>;

    /// Prints how to return to the conversation.
    async fn leave(chat: &mut Chat<'_, Self>);

    /// Ends everything that must not outlive the chat. Returns the exit code of a chat that the person has left.
    async fn close(self, signals: &mut Signals) -> u8;
}
