//! Turns, from the prompt to the outcome.

use super::turn::{failed_turn, interrupted_turn};
use super::{Actions, Client, Phase, Purpose, emit};
use crate::agent::acp::wire::PromptResult;
use crate::agent::acp::{failure, params, usage};
use crate::agent::rpc::RpcError;
use crate::protocol::{Action, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{ErrorCode, Event, Failure, Init, StopReason, UsageScope};

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
        if self.pending_settings > 0 {
            return;
        }
        let Some(prompt) = turn.prompt.take() else { return };
        match self.dialect.check_prompt(&prompt).and_then(|()| params::prompt(&prompt, &self.prompt_capabilities)) {
            Ok(blocks) => {
                let params = serde_json::json!({"sessionId": session.wire_id, "prompt": blocks});
                self.call(Purpose::Prompt, "session/prompt", &params, actions);
            }
            Err(error) => {
                let failure = Failure::new(ErrorCode::InvalidRequest, error.to_string());
                self.end_turn(Box::new(failed_turn(failure)), actions);
            }
        }
    }

    pub(super) fn interrupt(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
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

    /// Ends the turn with the result of its prompt.
    pub(super) fn turn_ended(&mut self, result: &PromptResult, actions: &mut Actions) {
        let stop = result.stop_reason.as_deref().unwrap_or("end_turn");
        let interrupted = self.turn.as_ref().is_some_and(|turn| turn.was_interrupted(stop));
        let (stop_reason, failure) = self.end_of(stop, interrupted);
        let usage = result.usage.as_ref().and_then(|tokens| usage::of_turn(&self.agent.name, tokens));
        let outcome = Outcome {
            failure,
            interrupted,
            stop_reason: Some(stop_reason),
            usage: usage.map(|usage| (usage, UsageScope::Run)),
            ..Outcome::default()
        };
        self.end_turn(Box::new(outcome), actions);
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
            "end_turn" if self.dialect.requires_answer() && !self.messages.has_text && !interrupted => {
                (StopReason::EndTurn, failed(ErrorCode::Provider, "the agent ended without an answer"))
            }
            other => (StopReason::from(other), None),
        }
    }

    /// Ends the turn with the error response to its prompt.
    pub(super) fn turn_failed(&mut self, error: &RpcError, actions: &mut Actions) {
        if self.turn.as_ref().is_some_and(|turn| turn.is_interrupted) {
            // The protocol forbids an error after a cancellation, but some agents send one.
            return self.end_turn(Box::new(interrupted_turn()), actions);
        }
        let mut classification = failure::of_response("the prompt", error);
        if error.code == failure::AUTH_REQUIRED {
            self.add_login_hint(&mut classification.failure.message);
        }
        self.end_turn(Box::new(classification.into()), actions);
    }

    /// Ends the turn with an outcome.
    pub(super) fn end_turn(&mut self, mut outcome: Box<Outcome>, actions: &mut Actions) {
        self.cancel_requests(actions);
        let Some(turn) = self.turn.take() else { return };
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
        actions.push(Action::Outcome(outcome));
        if !self.is_session {
            actions.push(Action::Process(ProcessAction::CloseStdin));
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
