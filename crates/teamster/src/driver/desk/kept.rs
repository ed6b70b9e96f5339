//! What an agent says between the turns of a session.

use std::panic::{AssertUnwindSafe, catch_unwind};

use teamster_agents::protocol::{Action, Input, Protocol};
use teamster_types::event::{AnsweredBy, Event, Warning, WarningCode};
use teamster_types::request::Answer;

use super::answers::Given;
use super::request_of;
use crate::agent_server::ServerEvent;
use crate::driver::link::Link;
use crate::events::size;

/// Events between turns that are kept for the next one; more would be an agent that speaks when it was not asked.
const MOST_KEPT: usize = 1000;

/// How many bytes these events may have, roughly.
const MOST_KEPT_BYTES: usize = 16 << 20;

/// What an agent says between turns.
#[derive(Default)]
pub(in crate::driver) struct Kept {
    events: Vec<Event>,
    bytes: usize,
    lost: usize,
    actions: Vec<Action>,
    /// Another process is to go on with the conversation: it was asked for, or the protocol panicked.
    pub(in crate::driver) reopen: bool,
    /// The agent has begun a turn by itself, with this.
    pub(in crate::driver) unasked: Option<Vec<Action>>,
}

impl Kept {
    /// Tells the protocol what happened between turns, and does what it says.
    pub(in crate::driver) fn tell(&mut self, protocol: &mut dyn Protocol, input: Input<'_>, link: &mut Link) {
        let mut actions = std::mem::take(&mut self.actions);
        if catch_unwind(AssertUnwindSafe(|| protocol.handle(input, &mut actions))).is_err() {
            self.reopen = true;
        }
        let asked = self.keep(actions.drain(..), link);
        self.actions = actions;
        // Nobody is there who could say more than no.
        for event in asked {
            let Some(request) = request_of(&event) else { continue };
            let answer = Answer::Deny { message: Some("No turn is running.".to_owned()) };
            let given = Given::of(request.clone(), answer, AnsweredBy::Unattended).unasked(&event);
            if matches!(event, Event::PermissionRequest(_)) {
                self.push(given.event(&[]));
            }
            self.tell(protocol, given.input(), link);
        }
    }

    /// Does what the protocol says between turns, and gives the requests of the agent.
    pub(in crate::driver) fn keep(&mut self, actions: impl IntoIterator<Item = Action>, link: &mut Link) -> Vec<Event> {
        let mut asked = Vec::new();
        for action in actions {
            if let Some(turn) = &mut self.unasked {
                turn.push(action);
                continue;
            }
            match action {
                Action::AgentTurnStarted => self.unasked = Some(Vec::new()),
                Action::Emit(event) if request_of(&event).is_some() => asked.push(event),
                Action::Emit(event) => self.push(event),
                Action::RestartProcess | Action::Stop | Action::Shutdown => self.reopen = true,
                action => link.pass_on(action),
            }
        }
        asked
    }

    fn push(&mut self, event: Event) {
        let bytes = self.bytes.saturating_add(size::in_memory(&event));
        if self.events.len() < MOST_KEPT && bytes <= MOST_KEPT_BYTES {
            self.bytes = bytes;
            self.events.push(event);
        } else {
            self.lost += 1;
        }
    }

    /// Whether the agent has begun a turn by itself, and may go on with it: nothing was ordered that needs another process.
    pub(in crate::driver) fn begins(&self) -> bool {
        let reopens = |turn: &Vec<Action>| turn.contains(&Action::RestartProcess);
        !self.reopen && self.unasked.as_ref().is_some_and(|turn| !reopens(turn))
    }

    /// Tells the protocol what its server said between turns.
    pub(in crate::driver) fn hear(&mut self, protocol: &mut dyn Protocol, heard: &ServerEvent, link: &mut Link) {
        link.recorder.server_event(heard);
        if let Some(input) = heard.input() {
            self.tell(protocol, input, link);
        }
    }

    /// What was said, for the next turn.
    pub(in crate::driver) fn take(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.events);
        self.bytes = 0;
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            let text = format!("the agent said more between turns than is kept: {lost} events are missing");
            events.push(Warning::new(WarningCode::Notice, text).into());
        }
        events
    }
}
