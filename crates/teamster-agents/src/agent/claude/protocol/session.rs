//! What a session has beside a run: prompts that come turn by turn, and requests of the CLI that are answered.

use super::super::control;
use super::super::dialog::{self, Dialog};
use super::super::wire::{ControlRequestLine, ControlResponse};
use super::background::Background;
use super::{Actions, Phase, Stream, warning};
use crate::protocol::{Action, Command, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{AnsweredBy, ErrorCode, Failure, PermissionDecision, SteerId, WarningCode};
use teamster_types::request::{Prompt, PromptMode, RunRequest};

/// What a session has beside a run.
pub(super) struct Session {
    prompt_mode: PromptMode,
    pub(super) dialog: Dialog,
    /// What was said while the turn runs, and the model has not heard yet.
    steering: Vec<SteerId>,
    /// Where the CLI may go on in the background, and begin turns by itself.
    pub(super) background: Option<Background>,
    /// Each turn has a budget, which the CLI counts for a process: the next turn gets another one.
    pub(super) has_turn_budget: bool,
}

impl Session {
    pub(super) fn new(request: &RunRequest) -> Self {
        let background = (request.background_tasks).then(Background::default);
        let (dialog, steering) = (Dialog::default(), Vec::new());
        let has_turn_budget = request.max_budget_usd.is_some();
        Self { prompt_mode: request.prompt_mode, dialog, steering, background, has_turn_budget }
    }
}

impl Stream {
    pub(super) fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { id, prompt } => self.send(id, prompt, actions),
            Command::Steer { id, prompt } => self.steer(id, prompt, actions),
            Command::Answer { request, answer } => {
                actions.extend(self.session.as_mut().and_then(|session| session.dialog.answer(request, answer)));
            }
            Command::SetModel(model) => actions.push(Action::Process(ProcessAction::Write(control::set_model(model)))),
            // Ours are more than the CLI's modes: tools that are denied by flags.
            Command::SetPermissionMode(_) => actions.push(Action::Session(SessionAction::RestartProcess)),
            Command::Close => actions.push(Action::Process(ProcessAction::CloseStdin)),
        }
    }

    /// A turn of a session begins.
    fn send(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        let message = match &session.background {
            Some(_) => control::offer(id, prompt, session.prompt_mode),
            None => control::user_message(&prompt.text, &prompt.attachments, session.prompt_mode),
        };
        match message {
            Ok(bytes) => actions.push(Action::Process(ProcessAction::Write(bytes))),
            Err(error) => {
                let failure = Some(Failure::new(ErrorCode::InvalidRequest, error.to_string()));
                return actions.push(Action::Outcome(Box::new(Outcome { failure, ..Outcome::default() })));
            }
        }
        if let Some(background) = &mut session.background {
            background.offer(id);
        }
        self.next_turn();
    }

    pub(super) fn next_turn(&mut self) {
        if self.phase == Phase::Answered {
            self.phase = Phase::Open;
        }
        (self.streamed, self.api_error, self.text_told) = (None, None, false);
        self.tally.next_turn();
    }

    fn steer(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        match control::steering(id, prompt, session.prompt_mode) {
            Ok(bytes) => {
                session.steering.push(id.clone());
                actions.push(Action::Process(ProcessAction::Write(bytes)));
            }
            // As a turn of its own it can say what is wrong.
            Err(_) => actions.push(Action::Session(SessionAction::Steered { id: id.clone(), heard: false })),
        }
    }

    /// The CLI echoes what it was told, when the model is about to hear it.
    pub(super) fn echoed(&mut self, uuid: &str, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        if let Some(at) = session.steering.iter().position(|id| id.as_str() == uuid) {
            actions.push(Action::Session(SessionAction::Steered { id: session.steering.remove(at), heard: true }));
        }
    }

    /// A turn of the session is over. Whatever the model has not heard by now, the CLI begins the next one with.
    pub(super) fn turn_over(&mut self, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        session.dialog.clear(actions);
        if !std::mem::take(&mut session.steering).is_empty() {
            actions.push(Action::Session(SessionAction::SteerTurnStarted));
            self.next_turn();
        }
        self.free_the_floor(actions);
    }

    /// The CLI asks its host.
    pub(super) fn asked(&mut self, line: ControlRequestLine, actions: &mut Actions) {
        let ControlRequestLine { request_id, request } = line;
        let is_permission = request.subtype == "can_use_tool";
        if is_permission && self.edits.allow(&request) {
            let (decision, by) = (PermissionDecision::Allow, AnsweredBy::Mode);
            let answered = dialog::unasked(&request_id, &request, &self.servers.names, decision, by, "");
            self.note_answer(answered, actions);
            return actions.push(Action::Process(ProcessAction::Write(control::allow(&request_id, request.input))));
        }
        let is_between_turns = self.background().is_some_and(|background| background.is_between_turns());
        if let Some(session) = self.session.as_mut().filter(|_| is_permission && !is_between_turns) {
            return actions.push(session.dialog.ask(request_id, request, &self.servers.names));
        }
        // In a run, and where a subagent in the background asks between turns, nobody is there who could say more than no.
        let (decision, by) = (PermissionDecision::Deny, AnsweredBy::Unattended);
        let names = &self.servers.names;
        let answered = dialog::unasked(&request_id, &request, names, decision, by, control::UNATTENDED);
        self.note_answer(answered, actions);
        actions.push(Action::Process(ProcessAction::Write(control::refuse(&request_id, &request.subtype))));
    }

    /// Reports an answer in the running turn. Between turns it waits for the next one that begins: a prompt that the CLI has not
    /// taken yet has no events.
    fn note_answer(&mut self, answered: Option<Action>, actions: &mut Actions) {
        let Some(answered) = answered else { return };
        match self.background() {
            Some(background) => background.note(answered, actions),
            None => actions.push(answered),
        }
    }

    /// The CLI answers a request of ours. Only a refusal is news.
    pub(super) fn answered(response: ControlResponse, actions: &mut Actions) {
        actions.push(match response {
            ControlResponse { subtype, request_id, error }
                if subtype == "error" && request_id == control::SET_MODEL =>
            {
                let text = format!("the model was not changed: {}", error.unwrap_or_default());
                warning(WarningCode::OptionIgnored, text)
            }
            _ => Action::Alive,
        });
    }
}
