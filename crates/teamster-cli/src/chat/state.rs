//! The state of a chat.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use teamster::event::Event;
use teamster::{Control, Run, SendError, Sent, Session};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::Interval;

use super::history::HistoryFile;
use super::page::Page;
use super::record::Record;
use super::terminal_signals::{TerminalSignal, TerminalSignals};
use super::usage_totals::UsageTotals;
use crate::input::{Action, CompletionRequest, Input};
use crate::plan::SessionPlan;
use crate::printable::Printable;
use crate::signals::{Signal, Signals};
use crate::terminal::Terminal;
use crate::terminal::{KeyReader, TerminalInput};
use crate::usage::Journal;

/// The reason for the end of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The user quit.
    Quit,
    /// A signal arrived.
    Stopped,
    /// The terminal was closed.
    NoTerminal,
}

/// A chat.
pub(super) struct Chat<'a> {
    /// The agent's working directory.
    pub(super) directory: PathBuf,
    pub(super) terminal: &'a Terminal,
    pub(super) signals: &'a mut Signals,
    pub(super) terminal_signals: TerminalSignals,
    /// Reads keys; `None` while others use the terminal.
    pub(super) keys: Option<KeyReader>,
    pub(super) ticks: Interval,
    pub(super) page: Page,
    /// The agent and the settings of all turns.
    pub(super) plan: SessionPlan,
    pub(super) session: Arc<Session>,
    pub(super) input: Input,
    pub(super) history_file: HistoryFile,
    pub(super) record: Record,
    pub(super) totals: UsageTotals,
    pub(super) journal: Journal,
    /// The model that the agent reported.
    pub(super) model: Option<Printable>,
    /// The running turn.
    pub(super) turn: Option<Turn>,
    /// Turns that follow it: prompts that could not be sent into it.
    pub(super) next_turns: VecDeque<(Option<String>, Run)>,
    /// Actions of the input box that are not executed yet.
    pub(super) actions: VecDeque<Action>,
    /// Tasks whose results precede the next prompt.
    pub(super) tasks: JoinSet<TaskResult>,
    pub(super) completions: JoinSet<(CompletionRequest, Vec<String>)>,
    /// A message in the live area until the next key.
    pub(super) notice: Option<Printable>,
    /// The time of the last key.
    pub(super) last_key: Option<Instant>,
    /// Whether the prompt of a terminal without a live area is shown.
    pub(super) prompt_is_shown: bool,
    /// Whether the next Ctrl-C quits.
    pub(super) quit_is_announced: bool,
}

/// The running turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) prompt: Option<String>,
    pub(super) run: Run,
    pub(super) control: Control,
    /// Whether it was stopped.
    pub(super) is_interrupted: bool,
    /// Whether it emitted an event.
    pub(super) has_started: bool,
    /// Whether it emitted its last event.
    pub(super) has_ended: bool,
}

/// An event of the turn, with the permit to write it. `None` is the end of the turn.
#[derive(Debug)]
pub(super) struct TurnItem(pub(super) Option<(Event, OwnedSemaphorePermit)>);

/// The result of a task.
#[derive(Debug)]
pub(super) enum TaskResult {
    /// A prompt was sent into the running turn.
    Sent(String, Result<Sent, SendError>),
    /// A command printed this.
    Message(Printable),
    /// The task panicked.
    Failed(std::io::Error),
}

/// What the loop waits for.
pub(super) enum Occurrence {
    Input(Instant, TerminalInput),
    /// Enter or Tab was not followed by text.
    Settled,
    Signal(Signal),
    Terminal(TerminalSignal),
    Turn(TurnItem),
    /// The agent starts a turn by itself.
    AgentTurn(Run),
    Task(TaskResult),
    Completed(CompletionRequest, Vec<String>),
    Tick,
    /// The terminal cannot be written.
    Closed,
}
