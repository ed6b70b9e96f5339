//! Waits until the agent is quiet.
//!
//! ACP v1 has no turn ids, and agents write text after the response to a prompt, or replay a conversation after the response that
//! loads it. Only silence shows that what belongs to an earlier step is complete. Text that is still written between turns belongs
//! to no turn that is known, and is reported in a warning.

use super::quiet::{Owner, Pause, Wait};
use super::{Actions, Client, Phase, warning};
use crate::protocol::Action;
use teamster_types::event::{Warning, WarningCode};
use teamster_types::request::Conversation;

/// The maximum size of the text in a warning, in bytes.
const MAX_LATE_BYTES: usize = 64 << 10;

impl Client {
    /// Waits until the agent is quiet. Replaces an earlier wait.
    pub(super) fn wait(&mut self, wait: Wait, actions: &mut Actions) {
        self.quiet.wait = Some(wait);
        actions.push(Action::SetTimer(wait.duration()));
    }

    pub(super) fn stop_waiting(&mut self, actions: &mut Actions) {
        if self.quiet.wait.take().is_some() {
            actions.push(Action::ClearTimer);
        }
    }

    /// Ends the waits that are part of a turn.
    pub(super) fn stop_waiting_in_turn(&mut self, actions: &mut Actions) {
        if matches!(self.quiet.wait, Some(Wait::TurnEnd | Wait::ReplayEnd | Wait::Request)) {
            self.stop_waiting(actions);
        }
        self.report_skipped(actions);
    }

    pub(super) fn timer_elapsed(&mut self, actions: &mut Actions) {
        match self.quiet.wait.take() {
            Some(Wait::TurnEnd) => self.finish_turn(actions),
            Some(Wait::ReplayEnd) => self.report_skipped(actions),
            Some(Wait::Request) => self.stop_unrequested_call(actions),
            Some(Wait::NextPrompt) => {
                self.quiet.pause = if self.quiet.pause == Pause::Always { Pause::Always } else { Pause::Never };
                self.report_late_text(actions);
                self.advance(actions);
            }
            Some(Wait::History) => self.advance(actions),
            None => {}
        }
    }

    /// Returns whether a prompt must wait.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self.quiet.wait, Some(Wait::History | Wait::NextPrompt))
    }

    /// Waits after a turn, unless the agent is known to write nothing then.
    pub(super) fn settle(&mut self, actions: &mut Actions) {
        if self.quiet.pause != Pause::Never && !self.dialect.answers_in_order() {
            self.wait(Wait::NextPrompt, actions);
        }
    }

    /// Returns what an update of a session belongs to.
    pub(super) fn owner(&self, session_id: &str) -> Owner {
        let Phase::Open(session) = &self.phase else { return Owner::History };
        let is_old = self.options.conversation != Conversation::New;
        match &self.turn {
            _ if session.wire_id != session_id => Owner::Other,
            Some(turn) if turn.prompt.is_none() && self.quiet.wait == Some(Wait::ReplayEnd) => Owner::History,
            Some(turn) if turn.prompt.is_none() => Owner::Turn,
            _ if is_old && !self.quiet.has_sent_prompt => Owner::History,
            _ => Owner::Late,
        }
    }

    /// Notes an update that is a part of the turn. After the response to the prompt, the wait for silence starts again.
    pub(super) fn note_progress(&mut self, actions: &mut Actions) {
        let Some(turn) = &self.turn else { return };
        if let Some(outcome) = &turn.reported {
            // The run has ended, and its process writes until it exits.
            actions.push(Action::Outcome(outcome.clone()));
        } else if turn.response.is_some() {
            self.wait(Wait::TurnEnd, actions);
        }
    }

    /// Notes an update that is a part of the replayed history.
    pub(super) fn note_history(&mut self, actions: &mut Actions) {
        if let Some(wait @ (Wait::History | Wait::ReplayEnd)) = self.quiet.wait {
            self.quiet.skipped += u64::from(wait == Wait::ReplayEnd);
            self.wait(wait, actions);
        }
    }

    /// Notes text that belongs to no turn. It is reported when the agent is quiet.
    pub(super) fn note_late(&mut self, text: &str, actions: &mut Actions) {
        let room = MAX_LATE_BYTES.saturating_sub(self.quiet.late.len());
        let end = text.floor_char_boundary(room);
        self.quiet.late.push_str(text.get(..end).unwrap_or_default());
        self.quiet.missing = self.quiet.missing.saturating_add(text.len() - end);
        // Text before the first prompt is not late.
        if self.quiet.has_sent_prompt {
            self.quiet.pause = Pause::Always;
            self.wait(Wait::NextPrompt, actions);
        }
    }

    pub(super) fn report_late_text(&mut self, actions: &mut Actions) {
        let text = std::mem::take(&mut self.quiet.late);
        let missing = std::mem::take(&mut self.quiet.missing);
        if text.is_empty() {
            return;
        }
        let message = format!("the agent wrote text while no turn was running, so it is part of no answer: {text}");
        let warning = Warning::new(WarningCode::Notice, message).with("text", text);
        let warning = if missing > 0 { warning.with("missingBytes", missing) } else { warning };
        actions.push(Action::Emit(warning.into()));
    }

    /// Handles a message of the user that the agent reports. In a session that was loaded it may be the start of a replayed turn, or
    /// the prompt itself.
    pub(super) fn user_chunk(&mut self, text: &str, actions: &mut Actions) {
        let Some(prompt) = &self.quiet.first_prompt else { return };
        let text = text.trim();
        let is_prompt = !text.is_empty() && (prompt.contains(text) || text.contains(prompt.trim()));
        match self.quiet.wait {
            Some(Wait::ReplayEnd) if is_prompt => {
                self.stop_waiting(actions);
                self.report_skipped(actions);
            }
            None if !is_prompt => self.wait(Wait::ReplayEnd, actions),
            _ => {}
        }
    }

    pub(super) fn report_skipped(&mut self, actions: &mut Actions) {
        let skipped = std::mem::take(&mut self.quiet.skipped);
        if skipped > 0 {
            let text =
                format!("the agent replayed the old conversation after the prompt; {skipped} updates were skipped");
            actions.push(warning(WarningCode::Notice, text));
        }
    }
}
