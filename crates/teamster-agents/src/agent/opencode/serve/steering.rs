//! What is said to the model within its turn.
//!
//! 1.18.33 takes a prompt while it works, writes it down, and lets the model hear it with its next call; a turn whose last call
//! is under way gets one more. What it takes when it has just ended its work begins work anew, which is still the turn's here:
//! a turn does not end before all that was taken is written down and answered. What stops the agent (an abort, an
//! error, structured output) leaves it unanswered in the conversation.

use super::stream::{Actions, State, Stream};
use super::turn::{Turn, Work};
use crate::bounded::Ids;
use crate::protocol::{Action, CallId, SessionAction};
use teamster_types::event::SteerId;
use teamster_types::request::Prompt;

/// Words that were said within a turn.
#[derive(Debug, Default)]
pub(super) struct Steering {
    said: Vec<Said>,
    /// Messages of the user's that began while words were on their way.
    begun: Ids,
}

#[derive(Debug)]
struct Said {
    id: SteerId,
    call: CallId,
    /// The message that they are, once they are written down.
    message: Option<String>,
}

impl Steering {
    /// Whether words are on their way.
    pub(super) fn is_unseen(&self) -> bool {
        self.said.iter().any(|said| said.message.is_none())
    }

    /// Whether the model still has to hear something.
    pub(super) fn is_unheard(&self) -> bool {
        !self.said.is_empty()
    }

    /// A message of the user's begins.
    pub(super) fn begin(&mut self, message: &str) {
        if self.is_unseen() {
            self.begun.add(message.to_owned());
        }
    }

    /// A message has words of the user's own: they are those that have been on their way for longest.
    pub(super) fn see(&mut self, message: &str) -> Option<SteerId> {
        self.begun.remove(message)?;
        let said = self.said.iter_mut().find(|said| said.message.is_none())?;
        said.message = Some(message.to_owned());
        Some(said.id.clone())
    }

    /// The model answers this message, and has heard all before it: ids ascend.
    pub(super) fn answer(&mut self, parent: &str) {
        self.said.retain(|said| said.message.as_deref().is_none_or(|message| message > parent));
    }

    /// Words that were not taken.
    fn refuse(&mut self, call: CallId) -> Option<SteerId> {
        let at = self.said.iter().position(|said| said.call == call && said.message.is_none())?;
        Some(self.said.remove(at).id)
    }

    /// Words of which nothing is known when the turn ends.
    pub(super) fn unseen(&mut self) -> impl Iterator<Item = SteerId> {
        let said = std::mem::take(&mut self.said).into_iter();
        said.filter(|said| said.message.is_none()).map(|said| said.id)
    }
}

impl Stream {
    /// The caller says more within the turn.
    pub(super) fn steer(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        let listens = |turn: &&mut Turn| turn.has_begun() && !turn.interrupted && turn.limit.is_none();
        let ready = matches!(self.state, State::Ready);
        let turn = self.turn.as_mut().filter(|turn| ready && listens(turn));
        let session = self.init.as_ref().map(|init| &init.session_id);
        let (Some(turn), Some(session), Ok(body)) =
            (turn, session, self.manner.body(&prompt.text, &prompt.attachments))
        else {
            // As a turn of its own it is heard, or says what is wrong.
            return actions.push(Action::Session(SessionAction::Steered { id: id.clone(), heard: false }));
        };
        let (call, action) = self.calls.steer(session, &body);
        turn.steering.said.push(Said { id: id.clone(), call, message: None });
        actions.push(action);
    }

    /// What was said within the turn was not taken.
    pub(super) fn not_taken(&mut self, call: CallId, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(id) = turn.steering.refuse(call) {
            actions.push(Action::Session(SessionAction::Steered { id, heard: false }));
        }
        self.on_its_way_no_more(actions);
    }

    /// What was said within the turn is written down.
    pub(super) fn written_down(&mut self, message: &str, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(id) = turn.steering.see(message) {
            actions.push(Action::Session(SessionAction::Steered { id, heard: true }));
            self.on_its_way_no_more(actions);
            if self.turn.is_none() {
                // What had stopped the agent ends the turn; and for these words it may begin work anew.
                actions.push(Action::Session(SessionAction::RestartProcess));
            }
        }
    }

    /// What waited for words that were on their way, goes on: an abort, or the end of the turn.
    fn on_its_way_no_more(&mut self, actions: &mut Actions) {
        self.abort_if_wanted(actions);
        if self.turn.as_ref().is_some_and(|turn| turn.work == Work::Idle) {
            self.settled(actions);
        }
    }
}
