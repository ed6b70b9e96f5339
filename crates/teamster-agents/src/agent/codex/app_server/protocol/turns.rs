//! Turns, from the prompt to the outcome.

use serde_json::{Value, json};

use super::super::super::{answer, failure};
use super::super::turn::{Stage, Turn};
use super::super::wire::TurnInfo;
use super::{Actions, AppServer, Call, ThreadState};
use crate::protocol::{Action, Command, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{ErrorCode, Event, Failure, StopReason, UsageScope};
use teamster_types::request::{Prompt, with_instructions};

impl AppServer {
    pub(super) fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { prompt, .. } => self.send(prompt, actions),
            Command::Steer { id, prompt } => self.steer(id, prompt, actions),
            Command::Answer { request, answer } => self.answer(request, answer, actions),
            Command::SetModel(model) => self.model = Some(model.to_owned()),
            // The mode also decides the MCP configuration and the sandbox, which a turn cannot change.
            Command::SetPermissionMode(_) => actions.push(Action::Session(SessionAction::RestartProcess)),
            Command::Close => actions.push(Action::Process(ProcessAction::CloseStdin)),
        }
    }

    /// Starts a turn of a session.
    fn send(&mut self, prompt: &Prompt, actions: &mut Actions) {
        if !self.is_session || self.turn.is_some() {
            return;
        }
        let text = with_instructions(self.instructions.as_deref(), &prompt.text);
        let input = match self.prompts.input(&text, &prompt.attachments) {
            Ok(input) => input,
            Err(error) => {
                let failure = Some(Failure::new(ErrorCode::InvalidRequest, error.to_string()));
                return actions.push(Action::Outcome(Box::new(Outcome { failure, ..Outcome::default() })));
            }
        };
        self.instructions = None;
        self.turn = Some(Turn::new(Stage::Waiting(input)));
        self.start_turn(actions);
    }

    /// Starts the waiting turn, if there is one and the thread is open.
    pub(super) fn start_turn(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        let thread = match &self.thread_state {
            ThreadState::Opening => return,
            ThreadState::Failed(outcome) => {
                let outcome = Outcome::clone(outcome);
                return self.end_turn(outcome, actions);
            }
            ThreadState::Open(thread) => thread,
        };
        let Stage::Waiting(input) = &mut turn.stage else { return };
        let mut params = json!({ "threadId": thread.id, "input": std::mem::take(input) });
        let mut put = |name: &str, value: Value| {
            if let Some(fields) = params.as_object_mut() {
                fields.insert(name.to_owned(), value);
            }
        };
        if let Some(schema) = &self.prompts.schema {
            put("outputSchema", schema.clone());
        }
        let mut init = thread.init.clone();
        if let Some(model) = &self.model {
            put("model", model.as_str().into());
            init.model = Some(model.clone().into());
        }
        turn.stage = Stage::Requested;
        actions.push(Action::Emit(Event::Init(Box::new(init))));
        self.usage.start_turn();
        self.turn_end.is_working();
        self.call(Call::StartTurn, "turn/start", &params, actions);
    }

    /// Stores the turn's id. The response and the notification may arrive in any order.
    pub(super) fn turn_known(&mut self, id: String) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| matches!(turn.stage, Stage::Requested)) {
            turn.stage = Stage::Running(id);
        }
    }

    pub(super) fn turn_started(&mut self, id: String, actions: &mut Actions) {
        self.turn_known(id);
        let Some(turn) = &mut self.turn else { return };
        turn.has_started = true;
        if turn.is_stopping {
            self.stop(actions);
        }
        actions.push(Action::Alive);
    }

    /// Interrupts the turn.
    pub(super) fn interrupt(&mut self, actions: &mut Actions) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_stopping) else { return };
        turn.is_stopping = true;
        match &turn.stage {
            // The prompt has not been sent, and is dropped.
            Stage::Waiting(_) => {
                let outcome =
                    Outcome { interrupted: true, stop_reason: Some(StopReason::Cancelled), ..Outcome::default() };
                self.end_turn(outcome, actions);
            }
            Stage::Running(_) if turn.has_started => self.stop(actions),
            // It is interrupted when its start is reported.
            Stage::Running(_) | Stage::Requested | Stage::CleaningUp(..) => {}
        }
    }

    /// Interrupts the turn if it continues after its last permitted model call. The app-server reports tokens after each call.
    pub(super) fn stop_at_limit(&mut self, actions: &mut Actions) {
        let max = self.max_turns;
        let exceeds = |turn: &&mut Turn| !turn.ends_with_answer && max.is_some_and(|max| turn.model_calls >= max);
        if let Some(turn) = self.turn.as_mut().filter(exceeds).filter(|turn| !turn.is_stopping) {
            turn.limit = max;
            self.interrupt(actions);
        }
    }

    fn stop(&mut self, actions: &mut Actions) {
        let turn = self.turn.as_ref().and_then(Turn::id);
        if let (ThreadState::Open(thread), Some(turn)) = (&self.thread_state, turn) {
            let params = json!({ "threadId": thread.id, "turnId": turn });
            self.call(Call::Interrupt, "turn/interrupt", &params, actions);
        }
    }

    pub(super) fn turn_completed(&mut self, info: TurnInfo, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        let mut outcome = match info.status.as_str() {
            "completed" => {
                let schema = self.prompts.schema.as_ref();
                let (structured_output, failure) = answer::classify(turn.answer(), schema, turn.has_calls());
                // After another hook, the model may have answered.
                let hook = turn.stopped_by_hook.take().filter(|_| turn.answer().is_none());
                let failure = hook.map(|text| Failure::new(ErrorCode::HookStopped, text)).or(failure);
                let stop_reason = Some(StopReason::EndTurn).filter(|_| failure.is_none());
                Outcome { failure, stop_reason, structured_output, ..Outcome::default() }
            }
            "interrupted" if turn.limit.is_some() => {
                let failure = turn.limit.map(failure::turn_limit);
                Outcome { failure, stop_reason: Some(StopReason::MaxTurns), ..Outcome::default() }
            }
            "interrupted" if turn.is_stopping => {
                Outcome { interrupted: true, stop_reason: Some(StopReason::Cancelled), ..Outcome::default() }
            }
            status => {
                let error = info.error;
                let message = error.as_ref().map(|error| error.message.clone()).or_else(|| turn.error.take());
                let message = message.unwrap_or_else(|| match status {
                    "interrupted" => "the agent interrupted its turn by itself".to_owned(),
                    _ => "the turn failed".to_owned(),
                });
                let info = error.and_then(|error| error.codex_error_info);
                // An incomplete message is not part of the answer.
                turn.retract(actions);
                Outcome {
                    interrupted: turn.is_stopping,
                    stop_reason: failure::stop_reason(&message),
                    ..failure::of_turn(&message, info.as_ref()).into()
                }
            }
        };
        outcome.permission_denials.clone_from(&turn.denials);
        outcome.context = self.usage.context();
        outcome.usage = self.usage.turn().map(|usage| (usage, UsageScope::Run));
        if !turn.is_stopping {
            return self.end_turn(outcome, actions);
        }
        // An interrupt does not end the turn's commands.
        turn.stage = Stage::CleaningUp(info.id, Box::new(outcome));
        self.withdraw_all(actions);
        if let ThreadState::Open(thread) = &self.thread_state {
            let params = json!({ "threadId": thread.id });
            self.call(Call::CleanUp, "thread/backgroundTerminals/clean", &params, actions);
        }
    }

    /// Ends an interrupted turn, whose commands have ended.
    pub(super) fn cleaned_up(&mut self, actions: &mut Actions) {
        if let Some(Stage::CleaningUp(_, outcome)) = self.turn.as_ref().map(|turn| &turn.stage) {
            let outcome = Outcome::clone(outcome);
            self.end_turn(outcome, actions);
        }
    }

    /// Ends the turn with an outcome. A run ends with its turn.
    pub(super) fn end_turn(&mut self, mut outcome: Outcome, actions: &mut Actions) {
        self.turn = None;
        self.usage.end_turn();
        self.withdraw_all(actions);
        let unsent = std::mem::take(&mut self.steering).into_iter();
        actions.extend(unsent.map(|id| Action::Session(SessionAction::Steered { id, accepted: false })));
        outcome.session_id = outcome.session_id.or_else(|| self.session_id());
        actions.push(Action::Outcome(Box::new(outcome.clone())));
        if !self.is_session {
            self.ended = Some(Box::new(outcome));
            actions.push(Action::Process(ProcessAction::CloseStdin));
        } else if matches!(self.thread_state, ThreadState::Failed(_)) {
            actions.push(Action::Session(SessionAction::RestartProcess));
        }
    }
}
