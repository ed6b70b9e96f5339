//! The state of a chat.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;

use teamster::event::{PermissionRequest, Question, RequestId};
use tokio::task::JoinSet;
use tokio::time::Interval;

use super::history::HistoryFile;
use super::page::Page;
use super::record::Record;
use super::terminal_signals::{TerminalSignal, TerminalSignals};
use super::usage_totals::UsageTotals;
use crate::input::{Action, Candidate, CompletionRequest, Input};
use crate::printable::Printable;
use crate::signals::{Signal, Signals};
use crate::terminal::Terminal;
use crate::terminal::{KeyReader, TerminalInput};

/// The reason for the end of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The user quit, or the conversation cannot be continued.
    Quit,
    /// A signal arrived.
    Stopped,
    /// The terminal was closed.
    NoTerminal,
}

/// A chat.
pub(super) struct Chat<'a, B> {
    /// Where the events come from, and where the input goes.
    pub(super) backend: B,
    /// The agent's working directory. Empty if it is not known.
    pub(super) directory: PathBuf,
    /// The directory of the paths in commands.
    pub(super) files: PathBuf,
    pub(super) terminal: &'a Terminal,
    pub(super) signals: &'a mut Signals,
    pub(super) terminal_signals: TerminalSignals,
    /// Reads keys; `None` while others use the terminal.
    pub(super) keys: Option<KeyReader>,
    pub(super) ticks: Interval,
    pub(super) page: Page,
    pub(super) input: Input,
    pub(super) history_file: HistoryFile,
    pub(super) record: Record,
    pub(super) totals: UsageTotals,
    /// The model that the agent reported.
    pub(super) model: Option<Printable>,
    /// Requests of the agent that are not shown yet.
    pub(super) requests: VecDeque<Request>,
    /// The request that is shown.
    pub(super) asking: Option<Asking>,
    /// Actions of the input box that are not executed yet.
    pub(super) actions: VecDeque<Action>,
    /// Tasks whose results precede the next prompt.
    pub(super) tasks: JoinSet<TaskResult>,
    pub(super) completions: JoinSet<(CompletionRequest, Vec<Candidate>)>,
    /// A message in the live area until the next key.
    pub(super) notice: Option<Printable>,
    /// The time of the last key.
    pub(super) last_key: Option<Instant>,
    /// The last text that was submitted while the agent worked.
    pub(super) submitted: Option<(Instant, String)>,
    /// Whether the prompt of a terminal without a live area is shown.
    pub(super) prompt_is_shown: bool,
    /// Whether the next Ctrl-C quits.
    pub(super) quit_is_announced: bool,
}

/// A request of the agent.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Permission(Box<PermissionRequest>),
    Question(Box<Question>),
}

impl Request {
    pub(super) fn id(&self) -> &RequestId {
        match self {
            Self::Permission(request) => &request.request_id,
            Self::Question(question) => &question.request_id,
        }
    }
}

/// A request that is shown.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) id: RequestId,
    /// Whether it needs no answer any more.
    pub(super) is_closed: bool,
}

/// The result of a task.
#[derive(Debug)]
pub(super) enum TaskResult {
    /// A command printed this.
    Message(Printable),
    /// The task panicked.
    Failed(std::io::Error),
}

/// What the loop waits for.
pub(super) enum Occurrence<A> {
    Input(Instant, TerminalInput),
    /// Enter or Tab was not followed by text.
    Settled,
    Signal(Signal),
    Terminal(TerminalSignal),
    /// Something arrives from the agent.
    Arrival(A),
    Task(TaskResult),
    Completed(CompletionRequest, Vec<Candidate>),
    Tick,
    /// The terminal cannot be written.
    Closed,
}
