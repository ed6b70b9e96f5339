//! Who has the floor, in a session whose agent may go on in the background (2.1.197).
//!
//! When something in the background has ended, the CLI begins a turn by itself, whose lines are like those of any other; only
//! its result says whose it was (`origin`). So when a turn begins while a prompt waits, the CLI is asked to give the prompt back
//! (`cancel_async_message`). If it does, the turn is its own, and the prompt is sent again after it; if not, it has taken the
//! prompt. What it says before it answers is kept until then. Prompts have the priority `later`, without which they could be
//! taken up amid a turn of the CLI's own.
//!
//! Invariants: a line belongs to one turn; a prompt is taken once; no turn is lost.

use super::super::control;
use super::super::wire::FloorLine;
use super::{Actions, Stream};
use crate::bounded::{self, Ids};
use crate::protocol::{Action, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{ErrorCode, Event, Failure, SteerId};

/// How many notices wait for the next turn.
const MAX_NOTICES: usize = 1000;

/// What the CLI says before it has told whether it took a prompt is no more than this.
const MOST_KEPT_BYTES: usize = 16 << 20;

/// What a session with background tasks has beside others.
#[derive(Debug, Default)]
pub(super) struct Background {
    floor: Floor,
    /// Said when the next turn begins.
    notices: Actions,
    /// How many bytes of tool arguments they have.
    notice_bytes: usize,
    /// Turns of the CLI's own that came before the prompt's, but were known too late: they follow it.
    later: Vec<Vec<u8>>,
    /// Calls of subagents that have no result yet: these do not work in the background.
    subagents: Ids,
}

#[derive(Debug, Default)]
enum Floor {
    /// Nobody has it, and no prompt waits: who begins is the CLI itself.
    #[default]
    Free,
    /// A prompt waits.
    Offered(SteerId),
    /// A turn has begun while the prompt waited, and the CLI is asked for it. These lines came since.
    Claimed { id: SteerId, lines: Vec<Vec<u8>>, bytes: usize },
    /// The CLI has taken the prompt, and its turn is the next that begins.
    Awaited,
    /// A turn runs.
    Taken,
}

impl Background {
    /// A prompt was written.
    pub(super) fn offer(&mut self, id: &SteerId) {
        self.floor = Floor::Offered(id.clone());
    }

    /// A call of a subagent begins.
    pub(super) fn subagent(&mut self, id: &str) {
        self.subagents.add(id.to_owned());
    }

    /// Whether this subagent works in the background: what it says belongs to no turn.
    pub(super) fn is_behind(&self, parent: &str) -> bool {
        !self.subagents.contains(parent)
    }

    pub(super) fn is_between_turns(&self) -> bool {
        !matches!(self.floor, Floor::Taken)
    }

    /// Says something within the running turn, or else when the next one begins.
    pub(super) fn note(&mut self, notice: Action, actions: &mut Actions) {
        if !self.is_between_turns() {
            return actions.push(notice);
        }
        let bytes = self.notice_bytes.saturating_add(argument_bytes(&notice));
        if bytes <= MOST_KEPT_BYTES {
            self.notice_bytes = bytes;
            bounded::push(&mut self.notices, [notice], MAX_NOTICES);
        }
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

impl Stream {
    /// Sees whose turn a line belongs to. Whether it is to be read now.
    pub(super) fn is_due(&mut self, line: &[u8], actions: &mut Actions) -> bool {
        let Some(background) = self.background() else { return true };
        if matches!(background.floor, Floor::Taken) {
            return true;
        }
        let read = FloorLine::of(line);
        match &mut background.floor {
            Floor::Claimed { id, lines, bytes } => {
                if let Some(answer) = read.response.filter(|answer| answer.request_id == control::claim_id(id)) {
                    let given_back = answer.response.is_some_and(|response| response.cancelled);
                    self.claimed(given_back, actions);
                    return false;
                }
                *bytes += size_of::<Vec<u8>>() + line.len();
                lines.push(line.to_vec());
                if *bytes > MOST_KEPT_BYTES {
                    self.unclear(actions);
                }
                false
            }
            Floor::Free if read.begins_turn() => {
                self.begin(true, actions);
                true
            }
            Floor::Offered(id) if read.begins_turn() => {
                let id = id.clone();
                actions.extend([Action::Process(ProcessAction::Write(control::claim(&id))), Action::Alive]);
                background.floor = Floor::Claimed { id, lines: vec![line.to_vec()], bytes: line.len() };
                false
            }
            Floor::Awaited if read.begins_turn() => {
                self.begin(false, actions);
                true
            }
            // It has dropped the prompt: it was asked for it in the moment in which it took it.
            Floor::Awaited if read.is_idle() => {
                actions.push(Action::Session(SessionAction::PromptNotAccepted));
                self.free_the_floor(actions);
                true
            }
            // Speech without a turn is of no turn.
            _ if read.is_speech() => {
                actions.push(Action::Alive);
                false
            }
            _ => true,
        }
    }

    /// The CLI has told whether it gives the prompt back.
    fn claimed(&mut self, given_back: bool, actions: &mut Actions) {
        let Some(background) = self.background() else { return };
        let Floor::Claimed { lines, .. } = std::mem::take(&mut background.floor) else { return };
        if given_back {
            actions.push(Action::Session(SessionAction::PromptNotAccepted));
            return self.lines(lines, actions);
        }
        // Its turn is the first that is not the CLI's own; one that has not ended is not, since the prompt was not taken within one.
        let mut rest = lines;
        while let Some(end) = rest.iter().position(|line| FloorLine::of(line).is_end()) {
            if !rest.get(end).is_some_and(|line| FloorLine::of(line).is_own()) {
                break;
            }
            let next = rest.split_off(end + 1);
            background.later.append(&mut rest);
            rest = next;
        }
        background.floor = Floor::Awaited;
        // That it was idle before it took the prompt says nothing.
        rest.retain(|line| !FloorLine::of(line).is_idle());
        self.lines(rest, actions);
    }

    fn lines(&mut self, lines: Vec<Vec<u8>>, actions: &mut Actions) {
        for line in lines {
            if self.is_due(&line, actions) {
                self.line(&line, actions);
            }
        }
    }

    fn begin(&mut self, own: bool, actions: &mut Actions) {
        let Some(background) = self.background() else { return };
        background.floor = Floor::Taken;
        background.subagents.take();
        if own {
            actions.push(Action::Session(SessionAction::AgentTurnStarted));
        }
        actions.append(&mut background.notices);
        background.notice_bytes = 0;
        if own {
            self.next_turn();
        }
    }

    /// A turn has had its outcome.
    pub(super) fn free_the_floor(&mut self, actions: &mut Actions) {
        let Some(background) = self.background() else { return };
        background.floor = Floor::Free;
        let later = std::mem::take(&mut background.later);
        self.lines(later, actions);
    }

    /// A subagent whose call has its result, and which works on, does so in the background.
    pub(super) fn note_results(&mut self, said: &[Action]) {
        let Some(background) = self.background() else { return };
        for action in said {
            if let Action::Emit(Event::ToolResult(result)) = action {
                background.subagents.remove(result.tool_id.as_str());
            }
        }
    }

    /// The CLI does not tell whose turn it is.
    fn unclear(&mut self, actions: &mut Actions) {
        if let Some(background) = self.background() {
            background.floor = Floor::Free;
        }
        let message = "the CLI does not tell whether it has taken the prompt, or goes on by itself";
        let failure = Some(Failure::new(ErrorCode::Protocol, message));
        actions.push(Action::Outcome(Box::new(Outcome { failure, ..Outcome::default() })));
        actions.push(Action::Process(ProcessAction::Stop));
    }

    pub(super) fn background(&mut self) -> Option<&mut Background> {
        self.session.as_mut()?.background.as_mut()
    }
}
