//! Turns, from their prompt to their outcome.

use serde_json::{Value, json};

use super::super::super::{answer, failure};
use super::super::turn::{Stage, Turn};
use super::super::wire::TurnInfo;
use super::{Actions, AppServer, Call, Link};
use crate::protocol::{Action, Command, Outcome};
use teamster_types::event::{ErrorCode, Event, Failure, StopReason, UsageScope};
use teamster_types::request::{Prompt, with_instructions};

impl AppServer {
    pub(super) fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { prompt, .. } => self.send(prompt, actions),
            Command::Steer { id, prompt } => self.steer(id, prompt, actions),
            Command::Answer { request, answer } => self.answer(request, answer, actions),
            Command::SetModel(model) => self.model = Some(model.to_owned()),
            // A mode is more than a turn can change: what MCP tools need, and which sandbox cannot be left.
            Command::SetPermissionMode(_) => actions.push(Action::RestartProcess),
            Command::Close => actions.push(Action::CloseStdin),
        }
    }

    /// A turn of a session begins.
    fn send(&mut self, prompt: &Prompt, actions: &mut Actions) {
        if !self.is_session || self.turn.is_some() {
            return;
        }
        let words = with_instructions(self.instructions.as_deref(), &prompt.text);
        let input = match self.speech.input(&words, &prompt.attachments) {
            Ok(input) => input,
            Err(error) => {
                let failure = Some(Failure::new(ErrorCode::InvalidRequest, error.to_string()));
                return actions.push(Action::Outcome(Box::new(Outcome { failure, ..Outcome::default() })));
            }
        };
        self.instructions = None;
        self.turn = Some(Turn::new(Stage::Waiting(input)));
        self.begin(actions);
    }

    /// Starts the turn that waits, if there is one, and a thread for it.
    pub(super) fn begin(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        let thread = match &self.link {
            Link::Opening => return,
            Link::Lost(outcome) => {
                let outcome = Outcome::clone(outcome);
                return self.end_turn(outcome, actions);
            }
            Link::Open(thread) => thread,
        };
        let Stage::Waiting(input) = &mut turn.stage else { return };
        let mut params = json!({ "threadId": thread.id, "input": std::mem::take(input) });
        let mut put = |name: &str, value: Value| {
            if let Some(fields) = params.as_object_mut() {
                fields.insert(name.to_owned(), value);
            }
        };
        if let Some(schema) = &self.speech.schema {
            put("outputSchema", schema.clone());
        }
        let mut init = thread.init.clone();
        if let Some(model) = &self.model {
            put("model", model.as_str().into());
            init.model = Some(model.clone().into());
        }
        turn.stage = Stage::Asked;
        actions.push(Action::Emit(Event::Init(Box::new(init))));
        self.tally.begin_turn();
        self.call(Call::StartTurn, "turn/start", &params, actions);
    }

    /// The turn's id is known, before or after it has begun.
    pub(super) fn turn_known(&mut self, id: String) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| matches!(turn.stage, Stage::Asked)) {
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

    /// The caller wants the turn to end.
    pub(super) fn interrupt(&mut self, actions: &mut Actions) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_stopping) else { return };
        turn.is_stopping = true;
        match &turn.stage {
            // The model has not heard of it, and never will.
            Stage::Waiting(_) => {
                let outcome =
                    Outcome { interrupted: true, stop_reason: Some(StopReason::Cancelled), ..Outcome::default() };
                self.end_turn(outcome, actions);
            }
            Stage::Running(_) if turn.has_started => self.stop(actions),
            // It cannot be interrupted before it has begun.
            Stage::Running(_) | Stage::Asked | Stage::Clearing(..) => {}
        }
    }

    fn stop(&mut self, actions: &mut Actions) {
        let turn = self.turn.as_ref().and_then(Turn::id);
        if let (Link::Open(thread), Some(turn)) = (&self.link, turn) {
            let params = json!({ "threadId": thread.id, "turnId": turn });
            self.call(Call::Interrupt, "turn/interrupt", &params, actions);
        }
    }

    pub(super) fn turn_completed(&mut self, info: TurnInfo, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        let mut outcome = match info.status.as_str() {
            "completed" => {
                let schema = self.speech.schema.as_ref();
                let (structured_output, failure) = answer::classify(turn.answer(), schema, turn.has_calls());
                let stop_reason = Some(StopReason::EndTurn).filter(|_| failure.is_none());
                Outcome { failure, stop_reason, structured_output, ..Outcome::default() }
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
                let kind = error.and_then(|error| error.codex_error_info);
                // Half a message is none.
                turn.retract(actions);
                Outcome {
                    interrupted: turn.is_stopping,
                    stop_reason: failure::stop_reason(&message),
                    ..failure::of_turn(&message, kind.as_ref()).into()
                }
            }
        };
        outcome.permission_denials.clone_from(&turn.denials);
        outcome.usage = self.tally.turn().map(|usage| (usage, UsageScope::Run));
        if !turn.is_stopping {
            return self.end_turn(outcome, actions);
        }
        // An interrupt ends the turn and not its commands.
        turn.stage = Stage::Clearing(info.id, Box::new(outcome));
        self.withdraw_all(actions);
        if let Link::Open(thread) = &self.link {
            let params = json!({ "threadId": thread.id });
            self.call(Call::Clear, "thread/backgroundTerminals/clean", &params, actions);
        }
    }

    /// Nothing of an interrupted turn runs any more.
    pub(super) fn cleared(&mut self, actions: &mut Actions) {
        if let Some(Stage::Clearing(_, outcome)) = self.turn.as_ref().map(|turn| &turn.stage) {
            let outcome = Outcome::clone(outcome);
            self.end_turn(outcome, actions);
        }
    }

    /// Gives the turn's outcome. A run ends with it.
    pub(super) fn end_turn(&mut self, mut outcome: Outcome, actions: &mut Actions) {
        self.turn = None;
        self.tally.end_turn();
        self.withdraw_all(actions);
        let unheard = std::mem::take(&mut self.steering).into_iter();
        actions.extend(unheard.map(|id| Action::Steered { id, heard: false }));
        outcome.session_id = outcome.session_id.or_else(|| self.session_id());
        actions.push(Action::Outcome(Box::new(outcome.clone())));
        if !self.is_session {
            self.ended = Some(Box::new(outcome));
            actions.push(Action::CloseStdin);
        } else if matches!(self.link, Link::Lost(_)) {
            actions.push(Action::RestartProcess);
        }
    }
}
