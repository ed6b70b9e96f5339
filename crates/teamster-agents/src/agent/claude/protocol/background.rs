//! Assigns lines to turns in a session with background tasks (2.1.197).
//!
//! When a background task ends, the CLI starts a turn by itself. Its lines are like those of any other turn; only its result
//! names its origin. So when a turn starts while a prompt is queued, the CLI is requested to remove the prompt from its queue
//! (`cancel_async_message`). If it does, the turn is the agent's own, and the prompt is sent again after it. If it does not, it
//! has accepted the prompt. Lines that arrive before its answer are held. Prompts have the priority `later`; otherwise the CLI
//! could insert them into a turn that it started by itself.
//!
//! Invariants: each line belongs to one turn; a prompt is consumed once; no turn is lost.

use super::{Actions, StreamJson};
use crate::agent::claude::background::{Background, NextStep, PromptOwnership};
use crate::protocol::{Action, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{ErrorCode, Event, Failure};

impl StreamJson {
    /// Assigns a line to a turn. Returns whether the line is to be read now.
    pub(super) fn is_due(&mut self, line: &[u8], actions: &mut Actions) -> bool {
        let Some(background) = self.background() else { return true };
        match background.next_step(line, actions) {
            NextStep::Read => true,
            NextStep::Hold => false,
            NextStep::StartTurn { by_agent } => {
                self.start_turn(by_agent, actions);
                true
            }
            NextStep::CancelAnswered { is_removed } => {
                self.cancel_answered(is_removed, actions);
                false
            }
            NextStep::PromptDropped => {
                actions.push(Action::Session(SessionAction::PromptNotAccepted));
                self.end_turn(actions);
                true
            }
            NextStep::Overflow => {
                self.fail_unassigned(actions);
                false
            }
        }
    }

    /// Continues after the CLI has answered whether it removed the prompt from its queue.
    fn cancel_answered(&mut self, is_removed: bool, actions: &mut Actions) {
        let Some(background) = self.background() else { return };
        let PromptOwnership::Canceling { lines, .. } = std::mem::take(&mut background.ownership) else { return };
        let lines = if is_removed {
            actions.push(Action::Session(SessionAction::PromptNotAccepted));
            lines
        } else {
            background.accept(lines)
        };
        self.read_held(lines, actions);
    }

    fn read_held(&mut self, lines: Vec<Vec<u8>>, actions: &mut Actions) {
        for line in lines {
            if self.is_due(&line, actions) {
                self.line(&line, actions);
            }
        }
    }

    fn start_turn(&mut self, by_agent: bool, actions: &mut Actions) {
        let Some(background) = self.background() else { return };
        background.ownership = PromptOwnership::InTurn;
        if by_agent {
            actions.push(Action::Session(SessionAction::AgentTurnStarted));
        }
        background.start_turn(actions);
        if by_agent {
            self.reset_turn();
        }
    }

    /// Ends a turn that has its outcome.
    pub(super) fn end_turn(&mut self, actions: &mut Actions) {
        let Some(background) = self.background() else { return };
        background.ownership = PromptOwnership::NoPrompt;
        let later = std::mem::take(&mut background.later);
        self.read_held(later, actions);
    }

    /// Records the results of calls. A subagent or a command that continues after its result works in the background.
    pub(super) fn note_results(&mut self, emitted: &[Action]) {
        for action in emitted {
            let Action::Emit(Event::ToolResult(result)) = action else { continue };
            self.tasks.call_ended(&result.tool_id);
            if let Some(background) = self.background() {
                background.subagents.remove(result.tool_id.as_str());
            }
        }
    }

    /// Fails the turn, because the CLI did not report to which turn its lines belong.
    fn fail_unassigned(&mut self, actions: &mut Actions) {
        if let Some(background) = self.background() {
            background.ownership = PromptOwnership::NoPrompt;
        }
        let message = "the CLI does not report whether it accepted the prompt or started a turn by itself";
        let failure = Some(Failure::new(ErrorCode::Protocol, message));
        actions.push(Action::Outcome(Box::new(Outcome { failure, ..Outcome::default() })));
        actions.push(Action::Process(ProcessAction::Stop));
    }

    pub(super) fn background(&mut self) -> Option<&mut Background> {
        self.session.as_mut()?.background.as_mut()
    }
}
