//! What an agent emits between the turns of a session.

use teamster_agents::protocol::{Action, Input, ProcessAction, SessionAction};
use teamster_types::event::{AnsweredBy, Event, Warning, WarningCode};

use super::link::Link;
use super::output::Receiver;
use super::protocol::GuardedProtocol;
use crate::driver::answers::{GivenAnswer, request_of};
use crate::events::size;
use crate::recording::Recorder;

/// The maximum number of events that are kept between two turns. Only a misbehaving agent emits more.
const MAX_EVENTS: usize = 1000;

/// The maximum size of these events, in bytes, estimated.
const MAX_BYTES: usize = 16 << 20;

/// What an agent emits between turns, for the next turn.
#[derive(Default)]
pub(in crate::driver) struct IdleBuffer {
    events: Vec<Event>,
    bytes: usize,
    lost: usize,
    needs_restart: bool,
    agent_turn: Option<Vec<Action>>,
}

/// Passes inputs to the protocol of an idle process.
pub(super) struct IdleReceiver<'a> {
    pub(super) protocol: &'a mut GuardedProtocol,
    pub(super) link: &'a mut Link,
    pub(super) buffer: &'a mut IdleBuffer,
}

impl IdleBuffer {
    /// Whether another process must resume the conversation: a command needs one, or the protocol panicked.
    pub(in crate::driver) fn needs_restart(&self) -> bool {
        self.needs_restart
    }

    /// Whether the agent has started a turn by itself.
    pub(in crate::driver) fn has_agent_turn(&self) -> bool {
        self.agent_turn.is_some()
    }

    /// Whether the agent has started a turn by itself, and its process can continue with it.
    pub(in crate::driver) fn can_run_agent_turn(&self) -> bool {
        let restarts = |turn: &Vec<Action>| turn.contains(&Action::Session(SessionAction::RestartProcess));
        !self.needs_restart && self.agent_turn.as_ref().is_some_and(|turn| !restarts(turn))
    }

    /// Takes the actions of the turn that the agent has started by itself.
    pub(in crate::driver) fn take_agent_turn(&mut self) -> Option<Vec<Action>> {
        self.agent_turn.take()
    }

    /// Takes the events, for the next turn.
    pub(in crate::driver) fn take_events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.events);
        self.bytes = 0;
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            let text = format!("the agent emitted too many events between turns; {lost} events are missing");
            events.push(Warning::new(WarningCode::Notice, text).into());
        }
        events
    }

    /// Carries out the actions of a protocol between turns. Returns the requests of the agent.
    pub(in crate::driver) fn act(&mut self, actions: impl IntoIterator<Item = Action>, link: &mut Link) -> Vec<Event> {
        let mut requests = Vec::new();
        for action in actions {
            if let Some(turn) = &mut self.agent_turn {
                turn.push(action);
                continue;
            }
            match action {
                Action::Emit(event) if request_of(&event).is_some() => requests.push(event),
                Action::Emit(event) => self.push(event),
                // There is no turn that it could be the outcome of, and no limit on the silence between turns.
                Action::Outcome(_) | Action::Alive => {}
                Action::Process(action) => self.process_action(action, link),
                Action::Server(action) => link.server_action(action),
                Action::Session(action) => self.session_action(&action),
                Action::SetTimer(after) => link.timer.set(after),
                Action::ClearTimer => link.timer.clear(),
            }
        }
        requests
    }

    fn process_action(&mut self, action: ProcessAction, link: &mut Link) {
        match action {
            ProcessAction::Write(bytes) => link.write(bytes),
            ProcessAction::CloseStdin => link.close_stdin(),
            ProcessAction::Interrupt | ProcessAction::Stop | ProcessAction::Shutdown => self.needs_restart = true,
        }
    }

    fn session_action(&mut self, action: &SessionAction) {
        match action {
            SessionAction::AgentTurnStarted => self.agent_turn = Some(Vec::new()),
            SessionAction::RestartProcess => self.needs_restart = true,
            // No turn runs: requests were denied at once, and prompts that were too late to steer are turns.
            SessionAction::Withdraw(_)
            | SessionAction::Answered(_)
            | SessionAction::Steered { .. }
            | SessionAction::SteerTurnStarted
            | SessionAction::PromptNotAccepted => {}
        }
    }

    fn push(&mut self, event: impl Into<Event>) {
        let event = event.into();
        let bytes = self.bytes.saturating_add(size::in_memory(&event));
        if self.events.len() < MAX_EVENTS && bytes <= MAX_BYTES {
            self.bytes = bytes;
            self.events.push(event);
        } else {
            self.lost += 1;
        }
    }
}

impl Receiver for IdleReceiver<'_> {
    fn input(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        self.buffer.needs_restart |= self.protocol.has_panicked();
        for request in self.buffer.act(actions, self.link) {
            self.deny(&request);
        }
    }

    fn warn(&mut self, warning: Warning) {
        self.buffer.push(warning);
    }

    fn recorder(&self) -> &Recorder {
        &self.link.recorder
    }

    fn is_done(&self) -> bool {
        self.buffer.has_agent_turn()
    }
}

impl IdleReceiver<'_> {
    /// Passes the timer of the protocol on, if it is due. An agent's turn gets it later, after the actions that started the turn.
    pub(super) fn deliver_timer(&mut self) {
        if !self.is_done() && self.link.timer.take_if_due() {
            self.input(Input::TimerElapsed);
        }
    }

    /// Denies a request of the agent. Between turns there is no stream in which the caller could see it.
    fn deny(&mut self, event: &Event) {
        let Some(request) = request_of(event) else { return };
        let answer = GivenAnswer::deny(request.clone(), "No turn is running.", AnsweredBy::Unattended);
        let answer = answer.without_request(event);
        if matches!(event, Event::PermissionRequest(_)) {
            self.buffer.push(answer.event(&[]));
        }
        self.input(answer.input());
    }
}
