//! Sessions: prompts that arrive turn by turn, and requests of the CLI that are answered.

use super::{Actions, Phase, StreamJson, warning};
use crate::agent::claude::hooks::Hooks;
use crate::agent::claude::wire::{ControlRequestLine, ControlResponse};
use crate::agent::claude::{control, requests};
use crate::protocol::{Action, Command, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{AnsweredBy, ErrorCode, Failure, PermissionDecision, SteerId, WarningCode};
use teamster_types::request::Prompt;

impl StreamJson {
    pub(super) fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { id, prompt } => self.send(id, prompt, actions),
            Command::Steer { id, prompt } => self.steer(id, prompt, actions),
            Command::Answer { request, answer } => {
                actions.extend(self.session.as_mut().and_then(|session| session.requests.answer(request, answer)));
            }
            Command::SetModel(model) => {
                self.is_model_change_known = true;
                actions.push(Action::Process(ProcessAction::Write(control::set_model(model))));
            }
            // A mode also denies tools by flags, which only another process can have.
            Command::SetPermissionMode(_) => actions.push(Action::Session(SessionAction::RestartProcess)),
            Command::Close => actions.push(Action::Process(ProcessAction::CloseStdin)),
        }
    }

    /// Starts a turn with a prompt.
    fn send(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        let message = match &session.background {
            Some(_) => control::queued_prompt(id, prompt, session.prompt_mode),
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
            background.queue_prompt(id);
        }
        self.reset_turn();
    }

    /// Resets what belongs to one turn.
    pub(super) fn reset_turn(&mut self) {
        if self.phase == Phase::Answered {
            self.phase = Phase::Open;
        }
        (self.message, self.api_error, self.has_emitted_text, self.has_init) = (None, None, false, false);
        (self.is_model_change_known, self.hooks) = (false, Hooks::default());
        self.totals.next_turn();
    }

    fn steer(&mut self, id: &SteerId, prompt: &Prompt, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        match control::steering_prompt(id, prompt, session.prompt_mode) {
            Ok(bytes) => {
                session.steering.push(id.clone());
                actions.push(Action::Process(ProcessAction::Write(bytes)));
            }
            // The prompt becomes a turn of its own, which reports the error.
            Err(_) => actions.push(Action::Session(SessionAction::Steered { id: id.clone(), accepted: false })),
        }
    }

    /// Handles the echo of a prompt, which the CLI prints when the model is about to receive it.
    pub(super) fn echoed(&mut self, uuid: &str, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        if let Some(at) = session.steering.iter().position(|id| id.as_str() == uuid) {
            actions.push(Action::Session(SessionAction::Steered { id: session.steering.remove(at), accepted: true }));
        }
    }

    /// Ends a turn of the session. The CLI starts the next turn with the prompts that the model has not received.
    pub(super) fn turn_ended(&mut self, actions: &mut Actions) {
        let Some(session) = &mut self.session else { return };
        session.requests.clear(actions);
        if !std::mem::take(&mut session.steering).is_empty() {
            actions.push(Action::Session(SessionAction::SteerTurnStarted));
            self.reset_turn();
        }
        self.end_turn(actions);
    }

    /// Handles a request of the CLI: by the permission mode, by the caller, or with a denial.
    pub(super) fn control_request(&mut self, line: ControlRequestLine, actions: &mut Actions) {
        let ControlRequestLine { request_id, request } = line;
        let is_permission = request.subtype == "can_use_tool";
        let names = &self.servers.names;
        if is_permission && self.edits.allow(&request) {
            let (decision, by) = (PermissionDecision::Allow, AnsweredBy::Mode);
            let answered = requests::automatic_answer(&request_id, &request, names, decision, by, "");
            self.note_answer(answered, actions);
            let allow = control::PermissionResponse::allow(request.input);
            return actions.push(Action::Process(ProcessAction::Write(control::respond(&request_id, &allow))));
        }
        let is_between_turns = self.background().is_some_and(|background| background.is_between_turns());
        let names = &self.servers.names;
        if let Some(session) = self.session.as_mut().filter(|_| is_permission && !is_between_turns) {
            return actions.push(session.requests.add(request_id, request, names));
        }
        // A run has no user to ask, and neither has a subagent that works in the background between turns.
        let (decision, by) = (PermissionDecision::Deny, AnsweredBy::Unattended);
        let answered = requests::automatic_answer(&request_id, &request, names, decision, by, control::UNATTENDED);
        self.note_answer(answered, actions);
        actions.push(Action::Process(ProcessAction::Write(control::reject(&request_id, &request.subtype))));
    }

    /// Emits an answer in the running turn, or else when the next turn starts: a queued prompt has no events yet.
    fn note_answer(&mut self, answered: Option<Action>, actions: &mut Actions) {
        let Some(answered) = answered else { return };
        match self.background() {
            Some(background) => background.note(answered, actions),
            None => actions.push(answered),
        }
    }

    /// Handles the response to a request of Teamster. Only a rejected model is reported.
    pub(super) fn control_response(response: ControlResponse, actions: &mut Actions) {
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
