//! The start and the end of turns.

use super::super::super::{failure, finish_reason};
use super::super::messages::MessageAssembler;
use super::super::turn::Turn;
use super::{Actions, ServeProtocol, State};
use crate::agent::failure::Classification;
use crate::protocol::{Action, ExitReport, Outcome, ProcessAction, SessionAction};
use teamster_types::event::{ErrorCode, Failure, StopReason};
use teamster_types::request::Attachment;

impl ServeProtocol {
    /// Starts a turn of a session.
    pub(super) fn start_turn(&mut self, text: &str, attachments: &[Attachment], actions: &mut Actions) {
        (self.turn, self.prompt_consumed) = (Some(Turn::default()), false);
        self.emit_init(actions);
        match self.prompt_options.body(text, attachments) {
            Ok(body) => self.unsent_prompt = Some(body),
            Err(error) => {
                let failure = Failure::new(ErrorCode::InvalidRequest, error.to_string());
                return self.end(Outcome { failure: Some(failure), ..Outcome::default() }, actions);
            }
        }
        match &self.state {
            State::Ready => self.send_prompt(actions),
            State::Failed(classification) => {
                let classification = classification.clone();
                self.fail(classification, actions);
            }
            State::Connecting => actions.extend(self.handshake.deferred_call.take()),
            State::Closed => {}
        }
    }

    /// Sends the prompt if it has not been sent and the session is known.
    pub(super) fn send_prompt(&mut self, actions: &mut Actions) {
        let (Some(session), Some(body)) = (self.id().cloned(), self.unsent_prompt.take()) else { return };
        actions.push(self.calls.prompt(&session, &body));
    }

    /// Sends an abort, once, if the turn is to be stopped. An abort has no effect before the agent works on the prompt and has
    /// recorded the steering prompts, so it is deferred until then.
    pub(super) fn abort_if_requested(&mut self, actions: &mut Actions) {
        let (Some(session), Some(turn)) = (self.id().cloned(), &mut self.turn) else { return };
        let is_requested = turn.interrupted || turn.limit.is_some();
        let is_effective = turn.has_started() && !turn.steers.has_unconfirmed();
        if is_requested && is_effective && !std::mem::replace(&mut turn.is_aborted, true) {
            actions.push(self.calls.abort(&session));
        }
    }

    /// Handles an interrupt. A turn whose prompt has not been sent ends at once.
    pub(super) fn interrupt(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        turn.interrupted = true;
        let sent = self.unsent_prompt.take().is_none() && matches!(self.state, State::Ready);
        if sent {
            return self.abort_if_requested(actions);
        }
        let outcome = Outcome { interrupted: true, ..turn.totals.outcome(Some(StopReason::Cancelled)) };
        self.end(outcome, actions);
    }

    /// Handles the end of a model call: stops the turn if it would exceed a limit.
    pub(super) fn step_finished(&mut self, reason: &str, actions: &mut Actions) {
        let max_turns = self.max_turns;
        let max_budget_usd = self.max_budget_usd.into_iter().chain(self.session_budget_usd).reduce(f64::min);
        let Some(turn) = &mut self.turn else { return };
        let unfinished = turn.count_unfinished(reason);
        if !finish_reason::continues(reason) || turn.limit.is_some() {
            return;
        }
        // The agent's own limit of steps is only a request to the model (`max_steps`), and it has no limit of cost.
        turn.limit = if let Some(turns) = max_turns.filter(|turns| turn.totals.turns >= *turns) {
            Some((finish_reason::turn_limit(turns), Some(StopReason::MaxTurns)))
        } else if let Some(budget) = max_budget_usd.filter(|budget| turn.totals.cost >= Some(*budget)) {
            Some((finish_reason::budget_limit(budget), None))
        } else {
            unfinished.map(|failure| (failure, None))
        };
        if turn.limit.is_some() && self.is_run() {
            return self.finish(actions);
        }
        self.abort_if_requested(actions);
    }

    /// Ends the turn if it is over and no message is incomplete. The session is idle.
    pub(super) fn finish_if_over(&mut self, actions: &mut Actions) {
        let is_over = self.turn.as_ref().is_some_and(Turn::is_over);
        let has_open = self.id().is_some_and(|id| self.messages.has_open(id.as_str()));
        if is_over && !has_open {
            self.finish(actions);
        }
    }

    fn finish(&mut self, actions: &mut Actions) {
        let Some(turn) = &self.turn else { return };
        let outcome = turn.outcome(self.prompt_options.has_schema(), &self.log_errors.text(), actions);
        self.end(outcome, actions);
    }

    /// Returns the outcome of the turn, and resets the state of the turn. A run is also stopped.
    fn end(&mut self, mut outcome: Outcome, actions: &mut Actions) {
        let mut turn = self.turn.take();
        let cost = turn.as_ref().and_then(|turn| turn.totals.cost).unwrap_or_default();
        self.session_budget_usd = self.session_budget_usd.map(|rest| (rest - cost).max(0.0));
        let unconfirmed = turn.iter_mut().flat_map(|turn| turn.steers.take_unconfirmed());
        actions.extend(unconfirmed.map(|id| Action::Session(SessionAction::Steered { id, accepted: false })));
        let newest = turn.and_then(|turn| turn.newest_message().map(str::to_owned));
        self.newest_past_message = newest.or(self.newest_past_message.take());
        self.unsent_prompt = None;
        self.messages = MessageAssembler::default();
        self.tools.take();
        self.subagents.take();
        self.requests.clear(actions);
        outcome.session_id = self.id().cloned();
        actions.push(Action::Outcome(Box::new(outcome)));
        if self.is_run() {
            self.state = State::Closed;
            actions.push(Action::Process(ProcessAction::Shutdown));
        }
    }

    /// Fails the turn and all further turns. A session needs a new process.
    pub(super) fn fail(&mut self, classification: Classification, actions: &mut Actions) {
        if let Some(turn) = &self.turn {
            let mut outcome = turn.totals.outcome(None);
            classification.clone().apply_to(&mut outcome);
            self.end(outcome, actions);
            if !self.is_run() {
                actions.push(Action::Session(SessionAction::RestartProcess));
            }
        }
        if !matches!(self.state, State::Closed) {
            self.state = State::Failed(classification);
        }
    }

    /// Ends the turn after the exit of the server.
    pub(super) fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        let Some(turn) = &self.turn else { return };
        let mut outcome = turn.totals.outcome(None);
        if turn.interrupted {
            (outcome.interrupted, outcome.stop_reason) = (true, Some(StopReason::Cancelled));
        } else {
            match failure::of_exit(exit) {
                Some(classification) => classification.apply_to(&mut outcome),
                None => outcome.failure = Some(finish_reason::unexplained(exit.code, exit.signal, None, false)),
            }
        }
        self.end(outcome, actions);
    }
}
