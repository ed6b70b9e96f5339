//! Turns.

use super::message::Message;
use super::usage::Usage;
use crate::ids::{ConversationId, Json, Seq, Timestamp, TurnId};

/// The agent's work on one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its message.
    pub message: Message,
    /// Its state.
    pub state: TurnState,
    /// The number of attempts that were started.
    pub attempts: u32,
    /// What the last attempt has done.
    pub progress: Progress,
    /// An attempt has called a tool since the turn was queued by a caller.
    pub ran_tools: bool,
    /// The running turn into which its message is sent.
    pub joined: Option<TurnId>,
    /// The agent has its message, so that it ends together with the turn that it has joined.
    pub taken: bool,
    /// It does not start before this time.
    pub not_before: Timestamp,
    /// A caller has requested its abort.
    pub abort_requested: bool,
    /// The result, if it has ended.
    pub result: Option<Json>,
    /// The error code, if it has failed.
    pub error_code: Option<String>,
    /// What all attempts have used.
    pub usage: Usage,
    /// The number of its event `turn_queued`.
    pub queued_seq: Seq,
    /// When its first attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TurnState {
    /// It waits.
    Queued,
    /// A worker holds it.
    Running,
    /// It has ended with an answer.
    Done,
    /// It has failed. A caller may queue it again.
    Failed,
    /// A caller has aborted it.
    Aborted,
}

/// How a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// With an answer.
    Done,
    /// With an error.
    Failed,
    /// By an abort.
    Aborted,
}

/// What an attempt has done. It never decreases within an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// Nothing that is visible outside.
    #[default]
    Nothing,
    /// It has emitted text.
    Text,
    /// It has called a tool.
    Tools,
}

/// Which turns an abort ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelScope {
    /// One that waits or runs.
    Open,
    /// Only one that waits.
    Waiting,
}

/// The outcome of an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The turn waited and is aborted now.
    Aborted,
    /// The turn runs. Its worker gets the request with the next renewal.
    Requested,
    /// The turn is in this state, which the abort does not change.
    Unchanged(TurnState),
}

impl TurnState {
    /// Returns its name in errors.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
        }
    }
}

impl EndState {
    /// Returns the state of a turn that has ended so.
    pub(crate) const fn turn_state(self) -> TurnState {
        match self {
            Self::Done => TurnState::Done,
            Self::Failed => TurnState::Failed,
            Self::Aborted => TurnState::Aborted,
        }
    }
}
