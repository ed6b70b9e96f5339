//! A turn, from its prompt to its outcome.

use super::{Actions, Client, Phase, Purpose, Turn, emit};
use crate::agent::acp::wire::PromptAnswer;
use crate::agent::acp::{ask, failure, usage};
use crate::agent::rpc::RpcError;
use crate::protocol::{Action, Outcome};
use teamster_types::event::{ErrorCode, Event, Failure, Init, StopReason, UsageScope};
use teamster_types::request::{PermissionMode, Prompt};

impl Client {
    /// Asks the model, if there is something to ask and the session is as it was asked for.
    pub(super) fn go_on(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        let session = match &self.phase {
            Phase::Opening => return,
            Phase::Open(session) => session,
            // What went to the model already is answered first.
            Phase::Refused(outcome) => {
                let outcome = turn.prompt.is_some().then(|| outcome.clone());
                return outcome.map_or((), |outcome| self.end_turn(outcome, actions));
            }
        };
        if !turn.introduced {
            turn.introduced = true;
            let mut init = Init::new(self.dialect.agent(), session.id.clone());
            init.model = self.settings.model().or(self.wishes.model.as_deref()).map(Into::into);
            init.agent_version = self.agent.version.as_deref().map(Into::into);
            init.cwd = Some(self.wishes.cwd.clone());
            actions.push(Action::Emit(Event::Init(Box::new(init))));
        }
        if self.settling > 0 {
            return;
        }
        let Some(prompt) = turn.prompt.take() else { return };
        match self.dialect.check(&prompt).and_then(|()| ask::prompt(&prompt, &self.prompt_capabilities)) {
            Ok(blocks) => {
                let params = serde_json::json!({"sessionId": session.wire, "prompt": blocks});
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
        turn.interrupted = true;
        if turn.prompt.take().is_some() {
            // The model has heard nothing.
            return self.end_turn(Box::new(interrupted_turn()), actions);
        }
        // Gemini CLI 0.61.0 does not hear of it while a request waits.
        self.cancel_requests(actions);
        if let Phase::Open(session) = &self.phase {
            let params = serde_json::json!({"sessionId": session.wire});
            actions.push(Action::Write(self.caller.notify("session/cancel", Some(&params))));
        }
    }

    /// The agent has answered the prompt.
    pub(super) fn ended(&mut self, answer: &PromptAnswer, actions: &mut Actions) {
        let stop = answer.stop_reason.as_deref().unwrap_or("end_turn");
        // A turn that ended before it heard of it was not interrupted. (OpenCode 1.18.33 may end one by itself, and well, in the
        // moment in which what it asked for is refused.)
        let interrupted =
            self.turn.as_ref().is_some_and(|turn| turn.interrupted && (stop == "cancelled" || turn.refused));
        let denied = !self.calls.denials.is_empty();
        let failed = |code, text: &str| Some(Failure::new(code, text));
        let (stop_reason, failure) = match stop {
            "max_turn_requests" => {
                let text = "the agent reached its limit of calls of the model";
                (StopReason::MaxTurns, failed(ErrorCode::MaxTurns, text))
            }
            "refusal" => {
                let text = "the model refused to go on";
                (
                    StopReason::Refusal,
                    Some(Failure { retryable: Some(false), ..Failure::new(ErrorCode::Provider, text) }),
                )
            }
            // Some agents give up the turn when leave is denied.
            "cancelled" if !interrupted && !denied => {
                (StopReason::Cancelled, failed(ErrorCode::Aborted, "the agent cancelled the turn by itself"))
            }
            "end_turn" if self.dialect.owes_an_answer() && !self.speech.has_text && !interrupted => {
                (StopReason::EndTurn, failed(ErrorCode::Provider, "the agent ended without an answer"))
            }
            other => (StopReason::from(other), None),
        };
        let usage = answer.usage.as_ref().and_then(|tokens| usage::of_turn(&self.agent.name, tokens));
        let outcome = Outcome {
            failure,
            interrupted,
            stop_reason: Some(stop_reason),
            usage: usage.map(|usage| (usage, UsageScope::Run)),
            ..Outcome::default()
        };
        self.end_turn(Box::new(outcome), actions);
    }

    pub(super) fn failed(&mut self, error: &RpcError, actions: &mut Actions) {
        let interrupted = self.turn.as_ref().is_some_and(|turn| turn.interrupted);
        if interrupted {
            // The protocol forbids it, and agents do it: what was cancelled fails in their hands.
            return self.end_turn(Box::new(interrupted_turn()), actions);
        }
        let mut judgement = failure::of_answer("the prompt", error);
        if error.code == failure::AUTH_REQUIRED {
            judgement.failure.message.push_str(&self.ways_to_log_in());
        }
        self.end_turn(Box::new(judgement.into()), actions);
    }

    /// Gives the turn its outcome, with what is known beside it.
    pub(super) fn end_turn(&mut self, mut outcome: Box<Outcome>, actions: &mut Actions) {
        self.cancel_requests(actions);
        let Some(turn) = self.turn.take() else { return };
        let mut events = Vec::new();
        self.speech.pause(&mut events);
        self.calls.tell_held(&*self.dialect, &mut events);
        emit(events, actions);
        if let Phase::Open(session) = &self.phase {
            outcome.session_id = Some(session.id.clone());
        }
        outcome.total_cost_usd = self.cost.zip(turn.cost_before).map(|(now, before)| cost_since(now, before));
        outcome.permission_denials = std::mem::take(&mut self.calls.denials);
        outcome.model = self.settings.model().map(str::to_owned);
        actions.push(Action::Outcome(outcome));
        if !self.is_session {
            actions.push(Action::CloseStdin);
        } else if matches!(self.phase, Phase::Refused(_)) {
            // Another process may fare better: the user may have logged in.
            actions.push(Action::RestartProcess);
        }
    }
}

pub(super) fn failed_turn(failure: Failure) -> Outcome {
    Outcome { failure: Some(failure), ..Outcome::default() }
}

fn interrupted_turn() -> Outcome {
    Outcome { interrupted: true, stop_reason: Some(StopReason::Cancelled), ..Outcome::default() }
}

impl Turn {
    pub(super) fn new(prompt: Prompt, mode: PermissionMode, cost_before: Option<f64>) -> Self {
        Self { prompt: Some(prompt), introduced: false, interrupted: false, refused: false, mode, cost_before }
    }
}

/// In dollars to the millionth of a cent: the difference of two sums has digits that mean nothing.
fn cost_since(total: f64, before: f64) -> f64 {
    ((total - before).max(0.0) * 1e8).round() / 1e8
}
