//! Carries out the actions of a protocol while a turn runs.

use teamster_agents::protocol::{Action, Command, Input, ProcessAction, SessionAction};
use teamster_agents::transcript::Cause;
use teamster_process::Signal;
use teamster_types::event::WarningCode;
use teamster_types::event::{AnsweredBy, Event, PermissionAnswered, PermissionDecision, RequestId, SteerId, Warning};
use tokio::time::Instant;

use super::{AfterTurn, TurnDriver};
use crate::driver::answers::GivenAnswer;
use crate::driver::failures::protocol_panicked;
use crate::driver::process::Receiver;
use crate::driver::session_queue::AgentCommand;
use crate::recording::Recorder;

impl Receiver for TurnDriver<'_> {
    fn starts_reading(&mut self) {
        self.timer.now = Instant::now();
    }

    fn input(&mut self, input: Input<'_>) {
        // One reading of the output contains many lines.
        if !matches!(input, Input::Line(_)) {
            self.timer.now = Instant::now();
        }
        let mut actions = std::mem::take(&mut self.actions);
        self.protocol.handle(input, &mut actions);
        self.act_on_batch(&mut actions);
        self.actions = actions;
    }

    fn warn(&mut self, warning: Warning) {
        self.sink.emit(warning);
    }

    fn recorder(&self) -> &Recorder {
        &self.link.recorder
    }

    fn is_done(&self) -> bool {
        !self.is_draining && self.is_turn_ended()
    }
}

impl TurnDriver<'_> {
    /// Carries out a command of the session's caller.
    pub(super) fn command(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Steer { id, prompt } if !self.stopping.has_started() => {
                self.input(Input::Command(Command::Steer { id: &id, prompt: &prompt }));
                self.allow_unread_input();
            }
            AgentCommand::Steer { id, .. } => self.steered(&id, false),
            AgentCommand::Answer(given) => {
                self.timer.watchdog.activity(Instant::now());
                self.answer(&given);
            }
            AgentCommand::SetModel(model) => self.input(Input::Command(Command::SetModel(&model))),
            AgentCommand::SetPermissionMode(mode) => self.input(Input::Command(Command::SetPermissionMode(mode))),
        }
    }

    /// Passes an answer to the agent. Emits the answer before the events that follow from it.
    pub(super) fn answer(&mut self, given: &GivenAnswer) {
        self.timer.now = Instant::now();
        let mut actions = std::mem::take(&mut self.actions);
        self.protocol.handle(given.input(), &mut actions);
        // After a panic of the protocol the agent gets no answer.
        if !self.protocol.has_panicked() {
            self.sink.emit(given.event(&actions));
        }
        self.act_on_batch(&mut actions);
        self.actions = actions;
    }

    /// Carries out the actions that one input caused.
    fn act_on_batch(&mut self, actions: &mut Vec<Action>) {
        if self.protocol.has_panicked() && !self.stopping.is_terminating() {
            self.terminate(Some(Cause::Failed(protocol_panicked())));
        }
        self.has_outcome_action = actions.iter().any(|action| matches!(action, Action::Outcome(_)));
        self.act_on_all(actions.drain(..));
    }

    pub(super) fn act_on_all(&mut self, actions: impl IntoIterator<Item = Action>) {
        for action in actions {
            match self.session.as_mut().and_then(|session| session.rest.as_mut()) {
                Some(rest) => rest.push(action),
                None => self.act(action),
            }
        }
        let rule_answers = self.session.as_mut().map(|session| std::mem::take(&mut session.rule_answers));
        for given in rule_answers.unwrap_or_default() {
            self.answer(&given);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Emit(event) => self.emit(event),
            Action::Alive => self.timer.watchdog.alive(self.timer.now),
            Action::Outcome(outcome) => {
                self.timer.watchdog.outcome(self.timer.now);
                self.sink.set_outcome(*outcome);
            }
            Action::Process(action) => self.process_action(action),
            Action::Server(action) => self.link.server_action(action),
            Action::Session(action) => self.session_action(action),
            Action::SetTimer(after) => self.link.timer.set(after),
            Action::ClearTimer => self.link.timer.clear(),
        }
    }

    /// Emits an event of the agent. A request that the rules answer is not emitted.
    fn emit(&mut self, mut event: Event) {
        if let Some(session) = &mut self.session {
            if let Some(answer) = session.queue.answer_by_rule(&event) {
                self.timer.watchdog.alive(self.timer.now);
                return session.rule_answers.push(answer);
            }
            session.queue.open_request(&mut event, self.limits.answer);
        }
        match &event {
            Event::Init(_) | Event::Text(_) | Event::Thinking(_) | Event::ToolUse(_) => self.timer.activity(),
            // Such a line may come from another process that holds the agent's stdout.
            Event::Warning(warning) if warning.code == WarningCode::MalformedLine => {}
            _ => self.timer.watchdog.alive(self.timer.now),
        }
        self.sink.emit(event);
        if let Some(failure) = self.sink.take_over_budget() {
            self.interrupt(Cause::Failed(failure));
        }
    }

    fn process_action(&mut self, action: ProcessAction) {
        match action {
            ProcessAction::Write(bytes) => self.link.write(bytes),
            ProcessAction::CloseStdin => self.link.close_stdin(),
            ProcessAction::Interrupt => self.tree.signal(Signal::Interrupt),
            ProcessAction::Stop => self.terminate(None),
            ProcessAction::Shutdown => self.shut_down(),
        }
    }

    fn session_action(&mut self, action: SessionAction) {
        let is_turn_ended = self.is_turn_ended();
        match (action, &mut self.session) {
            (SessionAction::Answered(applied), _) => self.applied = Some(applied),
            (SessionAction::Withdraw(request), _) => self.withdraw(request),
            (SessionAction::Steered { id, accepted }, _) => self.steered(&id, accepted),
            (SessionAction::SteerTurnStarted, Some(session)) => session.after = AfterTurn::SteerTurn,
            (SessionAction::AgentTurnStarted, Some(session)) if is_turn_ended => {
                session.rest = Some(vec![Action::Session(SessionAction::AgentTurnStarted)]);
            }
            (SessionAction::PromptNotAccepted, Some(session)) => {
                (session.after, session.rest) = (AfterTurn::SendAgain, Some(Vec::new()));
            }
            (SessionAction::RestartProcess, Some(session)) => session.needs_restart = true,
            // The agent continues the running turn: there is no turn within a turn. A run has no further turns and processes.
            (SessionAction::AgentTurnStarted, _)
            | (
                SessionAction::SteerTurnStarted | SessionAction::PromptNotAccepted | SessionAction::RestartProcess,
                None,
            ) => {}
        }
    }

    /// Closes a request that the agent has withdrawn.
    fn withdraw(&mut self, request: RequestId) {
        if let Some(session) = &mut self.session {
            session.queue.withdraw(&request);
        }
        let is_end = self.has_outcome_action || self.sink.transcript.has_outcome() || self.stopping.has_started();
        let by = if is_end { AnsweredBy::End } else { AnsweredBy::Agent };
        let applied = self.applied.take().filter(|applied| applied.request == request);
        let decision = applied.map_or(PermissionDecision::Cancelled, |applied| applied.decision);
        self.sink.emit(PermissionAnswered::new(request, decision, by));
    }

    fn steered(&mut self, id: &SteerId, accepted: bool) {
        if let Some(session) = &mut self.session {
            session.queue.steered(id, accepted);
        }
    }

    /// Denies all open requests, because the turn has ended.
    pub(super) fn deny_open_requests(&mut self) {
        let open = self.session.as_mut().map(|session| session.queue.end_turn());
        for request in open.unwrap_or_default() {
            self.answer(&GivenAnswer::deny(request, "The turn is over.", AnsweredBy::End));
        }
    }
}
