//! The state of a session in which the agent can work in the background: which turn owns the prompt, and what waits for a turn.

use super::control;
use super::wire::TurnLine;
use crate::bounded::{self, Ids};
use crate::protocol::{Action, ProcessAction};
use teamster_types::event::{Event, SteerId};

/// The maximum number of notices that wait for the next turn.
const MAX_NOTICES: usize = 1000;

/// The maximum size of lines, and of tool arguments in notices, that wait.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The additional state of a session with background tasks.
#[derive(Debug, Default)]
pub(super) struct Background {
    pub(super) ownership: PromptOwnership,
    /// Emitted when the next turn starts.
    notices: Vec<Action>,
    /// The size of the tool arguments in `notices`.
    notice_bytes: usize,
    /// Turns that the CLI started by itself before it accepted the prompt. Their lines are read after the turn of the prompt.
    pub(super) later: Vec<Vec<u8>>,
    /// Calls of subagents without a result. These subagents work in the foreground.
    pub(super) subagents: Ids,
}

/// Whether a turn runs, and which side has the prompt.
#[derive(Debug, Default)]
pub(super) enum PromptOwnership {
    /// No turn runs, and no prompt waits. The next turn is one that the CLI starts by itself.
    #[default]
    NoPrompt,
    /// The CLI has the prompt in its queue.
    Queued(SteerId),
    /// A turn started while the prompt was queued, and the CLI was requested to remove the prompt. These lines arrived since.
    Canceling { id: SteerId, lines: Vec<Vec<u8>>, bytes: usize },
    /// The CLI has accepted the prompt. The next turn is that of the prompt.
    Accepted,
    /// A turn runs.
    InTurn,
}

/// How to continue with a line between turns.
#[derive(Debug)]
pub(super) enum NextStep {
    /// Read the line now.
    Read,
    /// Do not read the line, or read it later.
    Hold,
    /// The line starts a turn: of the agent itself, or of the prompt.
    StartTurn { by_agent: bool },
    /// The CLI answered the request to remove the prompt.
    CancelAnswered { is_removed: bool },
    /// The CLI is idle although it has accepted the prompt: it has dropped it.
    PromptDropped,
    /// Too many lines arrived without an answer.
    Overflow,
}

impl Background {
    /// Records a prompt that was written.
    pub(super) fn queue_prompt(&mut self, id: &SteerId) {
        self.ownership = PromptOwnership::Queued(id.clone());
    }

    /// Records the start of a subagent.
    pub(super) fn add_subagent(&mut self, id: &str) {
        self.subagents.add(id.to_owned());
    }

    /// Whether this subagent works in the background. Its output belongs to no turn.
    pub(super) fn is_in_background(&self, parent: &str) -> bool {
        !self.subagents.contains(parent)
    }

    pub(super) fn is_between_turns(&self) -> bool {
        !matches!(self.ownership, PromptOwnership::InTurn)
    }

    /// Emits a notice in the running turn, or else when the next one starts.
    pub(super) fn note(&mut self, notice: Action, actions: &mut Vec<Action>) {
        if !self.is_between_turns() {
            return actions.push(notice);
        }
        let bytes = self.notice_bytes.saturating_add(argument_bytes(&notice));
        if bytes <= MAX_WAITING_BYTES {
            self.notice_bytes = bytes;
            bounded::push(&mut self.notices, [notice], MAX_NOTICES);
        }
    }

    /// Starts a turn: emits the notices that waited for it.
    pub(super) fn start_turn(&mut self, actions: &mut Vec<Action>) {
        self.subagents.take();
        actions.append(&mut self.notices);
        self.notice_bytes = 0;
    }

    /// Decides how to continue with a line. Writes the request to remove the prompt, if a turn starts while it is queued.
    pub(super) fn next_step(&mut self, line: &[u8], actions: &mut Vec<Action>) -> NextStep {
        if matches!(self.ownership, PromptOwnership::InTurn) {
            return NextStep::Read;
        }
        let read = TurnLine::of(line);
        match &mut self.ownership {
            PromptOwnership::Canceling { id, lines, bytes } => {
                if let Some(answer) = read.response.filter(|answer| answer.request_id == control::cancel_id(id)) {
                    let is_removed = answer.response.is_some_and(|response| response.cancelled);
                    return NextStep::CancelAnswered { is_removed };
                }
                *bytes += size_of::<Vec<u8>>() + line.len();
                lines.push(line.to_vec());
                if *bytes > MAX_WAITING_BYTES { NextStep::Overflow } else { NextStep::Hold }
            }
            PromptOwnership::NoPrompt if read.starts_turn() => NextStep::StartTurn { by_agent: true },
            PromptOwnership::Queued(id) if read.starts_turn() => {
                let id = id.clone();
                actions.extend([Action::Process(ProcessAction::Write(control::cancel_prompt(&id))), Action::Alive]);
                self.ownership = PromptOwnership::Canceling { id, lines: vec![line.to_vec()], bytes: line.len() };
                NextStep::Hold
            }
            PromptOwnership::Accepted if read.starts_turn() => NextStep::StartTurn { by_agent: false },
            PromptOwnership::Accepted if read.is_idle() => NextStep::PromptDropped,
            // Output of the model between turns belongs to no turn.
            _ if read.is_output() => {
                actions.push(Action::Alive);
                NextStep::Hold
            }
            _ => NextStep::Read,
        }
    }

    /// Continues with the turn of the prompt, which the CLI has accepted. Returns the lines to read now.
    ///
    /// The turn of the prompt is the first one that the CLI did not start by itself. A turn that has not ended is such a turn,
    /// since the CLI accepts no prompt of this priority within a turn.
    pub(super) fn accept(&mut self, lines: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut rest = lines;
        while let Some(end) = rest.iter().position(|line| TurnLine::of(line).is_result()) {
            if !rest.get(end).is_some_and(|line| TurnLine::of(line).is_of_agent()) {
                break;
            }
            let next = rest.split_off(end + 1);
            self.later.append(&mut rest);
            rest = next;
        }
        self.ownership = PromptOwnership::Accepted;
        // An idle state that was reported before the CLI accepted the prompt means nothing.
        rest.retain(|line| !TurnLine::of(line).is_idle());
        rest
    }
}

/// Returns the size of the tool arguments in a notice.
fn argument_bytes(notice: &Action) -> usize {
    match notice {
        Action::Emit(Event::PermissionAnswered(answered)) => {
            answered.request.as_ref().map_or(0, |request| request.input.as_str().len())
        }
        _ => 0,
    }
}
