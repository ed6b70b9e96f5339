//! Turns, from the prompt to the outcome.

use super::quiet::Wait;
use super::turn::{Response, Turn, failed_turn, interrupted_turn};
use super::{Actions, Client, Phase, Purpose, emit};
use crate::agent::acp::wire::PromptResult;
use crate::agent::acp::{failure, params};
use crate::agent::rpc::RpcError;
use crate::protocol::{Action, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{ErrorCode, Event, Failure, Init, StopReason};

impl Client {
    /// Sends the waiting prompt, if there is one and the session is ready.
    pub(super) fn advance(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        let session = match &self.phase {
            Phase::Opening => return,
            Phase::Open(session) => session,
            // A prompt that was sent gets its own outcome first.
            Phase::Failed(outcome) => {
                let outcome = turn.prompt.is_some().then(|| outcome.clone());
                return outcome.map_or((), |outcome| self.end_turn(outcome, actions));
            }
        };
        if !turn.has_emitted_init {
            turn.has_emitted_init = true;
            let mut init = Init::new(self.dialect.agent(), session.id.clone());
            init.model = self.settings.model().or(self.options.model.as_deref()).map(Into::into);
            init.agent_version = self.agent.version.as_deref().map(Into::into);
            init.cwd = Some(self.options.cwd.clone());
            actions.push(Action::Emit(Event::Init(Box::new(init))));
        }
        if self.pending_settings > 0 || self.is_settling() {
            return;
        }
        let Some(prompt) = self.turn.as_mut().and_then(|turn| turn.prompt.take()) else { return };
        self.report_late_text(actions);
        let Phase::Open(session) = &self.phase else { return };
        match self.dialect.check_prompt(&prompt).and_then(|()| params::prompt(&prompt, &self.prompt_capabilities)) {
            Ok(blocks) => {
                let params = serde_json::json!({"sessionId": session.wire_id, "prompt": blocks});
                self.quiet.first_prompt =
                    (self.loads_session && !self.quiet.has_sent_prompt).then(|| prompt.text.clone());
                self.quiet.has_sent_prompt = true;
                self.call(Purpose::Prompt, "session/prompt", &params, actions);
            }
            Err(error) => {
                let failure = Failure::new(ErrorCode::InvalidRequest, error.to_string());
                self.end_turn(Box::new(failed_turn(failure)), actions);
            }
        }
    }

    pub(super) fn interrupt(&mut self, actions: &mut Actions) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.reported.is_none()) else { return };
        if turn.response.is_some() {
            // The agent has finished. Only a late part of its answer is awaited.
            return self.finish_turn(actions);
        }
        turn.is_interrupted = true;
        if turn.prompt.take().is_some() {
            // The prompt has not been sent.
            return self.end_turn(Box::new(interrupted_turn()), actions);
        }
        // Gemini CLI 0.61.0 does not handle the cancellation while a request is pending.
        self.cancel_requests(actions);
        if let Phase::Open(session) = &self.phase {
            let params = serde_json::json!({"sessionId": session.wire_id});
            actions.push(Action::Process(ProcessAction::Write(self.caller.notify("session/cancel", Some(&params)))));
        }
    }

    /// Takes the response to the prompt. The turn ends when the agent is quiet, since it may write more.
    pub(super) fn responded(&mut self, response: Response, actions: &mut Actions) {
        if self.turn.as_ref().is_some_and(|turn| turn.unrequested_call.is_some()) {
            return self.stop_unrequested_call(actions);
        }
        self.report_skipped(actions);
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.is_working()) else { return };
        turn.response = Some(response);
        self.wait(Wait::TurnEnd, actions);
    }

    /// Ends the turn with the response to its prompt, if there is one.
    pub(super) fn finish_turn(&mut self, actions: &mut Actions) {
        match self.turn.as_mut().and_then(|turn| turn.response.take()) {
            Some(Response::Result(result)) => self.turn_ended(&result, actions),
            Some(Response::Failed(outcome)) => self.end_turn(outcome, actions),
            None => {}
        }
    }

    /// Ends the turn with the result of its prompt.
    fn turn_ended(&mut self, result: &PromptResult, actions: &mut Actions) {
        let stop = result.stop_reason.as_deref().unwrap_or("end_turn");
        let interrupted = self.turn.as_ref().is_some_and(|turn| turn.was_interrupted(stop));
        let (stop_reason, failure) = self.end_of(stop, interrupted);
        if failure.is_none() && !interrupted {
            let mut events = Vec::new();
            self.calls.end_open(&*self.dialect, &mut events);
            actions.extend(events.into_iter().map(Action::Emit));
        }
        let is_new = self.cost_before.is_some();
        let tokens = result.usage.as_ref();
        let usage = tokens.and_then(|tokens| self.usage.of_turn(&self.agent.name, tokens, is_new));
        let outcome = Outcome { failure, interrupted, stop_reason: Some(stop_reason), usage, ..Outcome::default() };
        self.end_turn(Box::new(outcome), actions);
    }

    /// Returns whether the agent has answered: with text, or with a tool call. A command of the agent needs no answer.
    fn has_answered(&self) -> bool {
        let is_command = self.turn.as_ref().is_some_and(|turn| turn.is_command);
        self.messages.has_text || !self.dialect.requires_text() && (is_command || !self.calls.is_empty())
    }

    /// Returns what a stop reason of the agent means.
    fn end_of(&self, stop: &str, interrupted: bool) -> (StopReason, Option<Failure>) {
        let denied = !self.calls.denials.is_empty();
        let failed = |code, text: &str| Some(Failure::new(code, text));
        match stop {
            "max_turn_requests" => {
                let text = "the agent reached its limit of model calls";
                (StopReason::MaxTurns, failed(ErrorCode::MaxTurns, text))
            }
            "refusal" => {
                let text = "the model refused to continue";
                (StopReason::Refusal, Some(Failure::new(ErrorCode::Provider, text).with_retryable(false)))
            }
            // Some agents cancel the turn after a denial.
            "cancelled" if !interrupted && !denied => {
                (StopReason::Cancelled, failed(ErrorCode::Aborted, "the agent cancelled the turn by itself"))
            }
            "end_turn" if !self.has_answered() && !interrupted => {
                (StopReason::EndTurn, failed(ErrorCode::Provider, "the agent ended without an answer"))
            }
            other => (StopReason::from(other), None),
        }
    }

    /// Returns the outcome of a turn whose prompt got an error response.
    pub(super) fn failed_by(&self, error: &RpcError) -> Outcome {
        if self.turn.as_ref().is_some_and(|turn| turn.is_interrupted) {
            // The protocol forbids an error after a cancellation, but some agents send one.
            return interrupted_turn();
        }
        let mut classification = failure::of_response("the prompt", error);
        if error.code == failure::AUTH_REQUIRED {
            self.add_login_hint(&mut classification.failure.message);
        }
        classification.into()
    }

    /// Ends the turn with an outcome.
    pub(super) fn end_turn(&mut self, mut outcome: Box<Outcome>, actions: &mut Actions) {
        self.cancel_requests(actions);
        let Some(turn) = self.turn.take_if(|turn| turn.reported.is_none()) else { return };
        self.quiet.first_prompt = None;
        self.stop_waiting_in_turn(actions);
        let mut events = Vec::new();
        self.messages.end_message(&mut events);
        self.calls.emit_pending(&*self.dialect, &mut events);
        emit(events, actions);
        if let Phase::Open(session) = &self.phase {
            outcome.session_id = Some(session.id.clone());
        }
        outcome.context.clone_from(&self.context);
        outcome.total_cost_usd = self.cost.zip(turn.cost_before).map(|(now, before)| cost_since(now, before));
        outcome.permission_denials = std::mem::take(&mut self.calls.denials);
        outcome.model = self.settings.model().map(str::to_owned);
        actions.push(Action::Outcome(outcome.clone()));
        if !self.is_session {
            actions.push(Action::Process(ProcessAction::CloseStdin));
            self.turn = Some(Turn { prompt: None, reported: Some(outcome), ..turn });
        } else if matches!(self.phase, Phase::Open(_)) {
            self.settle(actions);
        } else if matches!(self.phase, Phase::Failed(_)) {
            // A new process may succeed, for example after the user has logged in.
            actions.push(Action::Session(SessionAction::RestartProcess));
        }
    }
}

/// Returns the cost of a turn in US dollars. It is rounded, because the difference of two sums has meaningless digits.
fn cost_since(total: f64, before: f64) -> f64 {
    ((total - before).max(0.0) * 1e8).round() / 1e8
}
