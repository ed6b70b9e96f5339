//! The state machine over OpenCode's lines: what each line means, in order.
//!
//! Invariants: a run is a success only where the model's last step ended by itself and no error stands after it, whatever
//! the exit code is; nothing of a session that was not asked for is told; a line that we do not know is nothing, one that
//! we cannot read is a warning.

use serde_json::value::RawValue;
use time::OffsetDateTime;

use super::tally::Tally;
use super::wire::{ErrorBody, FinishPart, Line, StepPart, TextPart, ToolPart};
use super::{failure, logs, reason, tools};
use crate::agent::failure::Classification;
use crate::agent::mcp::Health;
use crate::agent::{limit::rejected_until, line};
use crate::bounded;
use crate::protocol::{Action, ExitReport, Input, Outcome, ProcessAction, Protocol};
use teamster_types::event::{
    Delta, ErrorCode, Event, Failure, Init, MessageId, Retract, SessionId, StopReason, Warning, WarningCode,
};
use teamster_types::request::{Conversation, RunRequest};

type Actions = Vec<Action>;

/// One run of OpenCode.
pub(super) struct Stream {
    expected: Expected,
    servers: Health,
    max_turns: Option<u64>,
    max_budget_usd: Option<f64>,
    session: Option<SessionId>,
    tally: Tally,
    step: Step,
    /// The message of the last step, and whether something was told of it.
    message: Option<(MessageId, bool)>,
    /// Steps in a row that ended without a reason.
    unfinished: u32,
    /// The last error, with the time when it was told.
    error: Option<(ErrorBody, Option<OffsetDateTime>)>,
    interrupted: bool,
    /// We have given the last word and ended the process: nothing that it still says counts.
    closed: bool,
}

/// Which session may answer.
enum Expected {
    Any,
    This(SessionId),
    OtherThan(SessionId),
}

/// How far the last call of the model is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// There was none since the start, or since the conversation was shortened.
    None,
    Open,
    Finished(String),
}

impl Stream {
    pub(super) fn new(request: &RunRequest, servers: Health) -> Self {
        let expected = match &request.conversation {
            Conversation::Resume(id) => Expected::This(id.clone()),
            Conversation::Fork(id) => Expected::OtherThan(id.clone()),
            Conversation::New | Conversation::Continue => Expected::Any,
        };
        Self {
            expected,
            servers,
            max_turns: request.max_turns.map(|turns| u64::from(turns.get())),
            max_budget_usd: request.max_budget_usd.into_iter().chain(request.max_session_budget_usd).reduce(f64::min),
            session: None,
            tally: Tally::default(),
            step: Step::None,
            message: None,
            unfinished: 0,
            error: None,
            interrupted: false,
            closed: false,
        }
    }

    fn line(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        let line: Line<'_> = serde_json::from_str(text)?;
        if let Some(id) = line.session_id.as_deref().filter(|id| !id.is_empty()) {
            self.session(id, actions);
            if self.closed {
                return Ok(());
            }
        }
        let part = line.part.map_or("{}", RawValue::get);
        match &*line.kind {
            "step_start" => self.step_start(&serde_json::from_str(part)?, actions),
            "text" => self.text(&serde_json::from_str(part)?, actions),
            "reasoning" => {
                let part: TextPart<'_> = serde_json::from_str(part)?;
                self.tell(&part, Event::Thinking, actions);
            }
            "tool_use" => self.tool(serde_json::from_str(part)?, actions),
            "step_finish" => self.step_finish(&serde_json::from_str(part)?, actions),
            "error" => {
                let error: ErrorBody = serde_json::from_str(line.error.map_or("{}", RawValue::get))?;
                let nanoseconds = line.timestamp.map(|milliseconds| i128::from(milliseconds) * 1_000_000);
                let at = nanoseconds.and_then(|at| OffsetDateTime::from_unix_timestamp_nanos(at).ok());
                self.error = Some((error, at));
                actions.push(Action::Alive);
            }
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    fn session(&mut self, id: &str, actions: &mut Actions) {
        if self.session.as_ref().is_some_and(|known| known.as_str() == id) {
            return;
        }
        let wrong = match &self.expected {
            _ if self.session.is_some() => Some(format!("session {id} answers amid another one")),
            Expected::This(asked) if asked.as_str() != id => {
                Some(format!("asked to resume session {}, but {id} answers", asked.as_str()))
            }
            Expected::OtherThan(asked) if asked.as_str() == id => Some({
                let asked = asked.as_str();
                format!("asked for a new session with the history of {asked}, but {id} itself answers")
            }),
            _ => None,
        };
        if let Some(message) = wrong {
            actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, message.clone()).into()));
            return self.close(Failure::new(ErrorCode::Protocol, message), None, actions);
        }
        let id = SessionId::from(id);
        self.session = Some(id.clone());
        actions.push(Action::Emit(Event::Init(Box::new(Init::new(super::NAME, id)))));
    }

    fn step_start(&mut self, part: &StepPart<'_>, actions: &mut Actions) {
        let id = MessageId::from(&*part.message_id);
        // The same message begins again: its connection broke, and the model is asked once more (err_cut_once).
        if self.step == Step::Open && self.message.as_ref().is_some_and(|(open, _)| *open == id) {
            self.retract(actions);
            let text = "the answer broke off; the agent asks the model again";
            actions.push(Action::Emit(Warning::new(WarningCode::Retrying, text).into()));
        }
        self.step = Step::Open;
        self.message = Some((id, false));
        actions.push(Action::Alive);
    }

    fn text(&mut self, part: &TextPart<'_>, actions: &mut Actions) {
        if !part.synthetic {
            return self.tell(part, Event::Text, actions);
        }
        // The agent's own words to the model, after a summary of the conversation: the step before it was the summary,
        // and the answer is still to come (auto_compaction, err_context_400).
        self.retract(actions);
        let text = "the agent shortened its conversation";
        actions.push(Action::Emit(Warning::new(WarningCode::Compacted, text).into()));
        self.error.take_if(|(error, _)| failure::of_error(error, "").failure.code == ErrorCode::ContextWindow);
        self.step = Step::None;
        self.message = None;
    }

    fn tell(&mut self, part: &TextPart<'_>, event: fn(Delta) -> Event, actions: &mut Actions) {
        let id = MessageId::from(&*part.message_id);
        if part.text.is_empty() {
            return actions.push(Action::Alive);
        }
        match &mut self.message {
            Some((message, told)) if *message == id => *told = true,
            message => *message = Some((id.clone(), true)),
        }
        let delta = Delta { text: part.text.to_string().into(), message_id: id, parent_tool_id: None };
        actions.push(Action::Emit(event(delta)));
    }

    fn retract(&mut self, actions: &mut Actions) {
        if let Some((message_id, true)) = self.message.take() {
            actions.push(Action::Emit(Event::Retract(Retract { message_id })));
        }
    }

    fn tool(&mut self, part: ToolPart, actions: &mut Actions) {
        let call = tools::call(part, &self.servers.names);
        bounded::push_denials(&mut self.tally.denials, call.denial);
        actions.push(Action::Emit(Event::ToolUse(Box::new(call.tool))));
        actions.push(Action::Emit(Event::ToolResult(Box::new(call.result))));
        actions.extend(call.plan.map(|plan| Action::Emit(Event::Plan(plan))));
    }

    fn step_finish(&mut self, part: &FinishPart<'_>, actions: &mut Actions) {
        let reason = part.reason.as_deref().unwrap_or("unknown").to_owned();
        actions.extend(self.tally.step(part).map(Action::Emit));
        self.unfinished = if reason == "unknown" { self.unfinished + 1 } else { 0 };
        let goes_on = reason::goes_on(&reason);
        self.step = Step::Finished(reason);
        actions.push(Action::Alive);
        if !goes_on {
            return;
        }
        // The agent's own limit of steps is only a request to the model (max_steps), and it knows none of cost.
        if let Some(turns) = self.max_turns.filter(|turns| self.tally.turns >= *turns) {
            self.close(reason::too_many_turns(turns), Some(StopReason::MaxTurns), actions);
        } else if let Some(budget) = self.max_budget_usd.filter(|budget| self.tally.cost >= Some(*budget)) {
            self.close(reason::too_expensive(budget), None, actions);
        } else if self.unfinished >= reason::UNFINISHED_STEPS {
            self.close(reason::unfinished(), None, actions);
        }
    }

    /// Our own last word: going on would do harm.
    fn close(&mut self, failure: Failure, stop_reason: Option<StopReason>, actions: &mut Actions) {
        self.closed = true;
        let outcome = Outcome { failure: Some(failure), ..self.tally.outcome(stop_reason) };
        actions.push(Action::Outcome(Box::new(outcome)));
        actions.push(Action::Process(ProcessAction::Stop));
    }

    fn diagnostic(&mut self, line: &[u8], actions: &mut Actions) {
        let Some(line) = std::str::from_utf8(line).ok().filter(|_| !self.closed) else { return };
        let Some((server, status, reason)) = logs::failed_server(line) else { return };
        if let Some(failure) = self.servers.failed(server, status, reason, actions) {
            Health::end(failure, actions);
            self.closed = true;
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        if self.closed {
            return;
        }
        let answered = self.error.is_none() && self.is_answered();
        if self.interrupted && !answered {
            let outcome = Outcome { interrupted: true, ..self.tally.outcome(Some(StopReason::Cancelled)) };
            return actions.push(Action::Outcome(Box::new(outcome)));
        }
        let mut outcome = self.tally.outcome(self.stop_reason());
        if !answered {
            match self.judgement(exit, actions) {
                Some(judgement) => judgement.apply_to(&mut outcome),
                None => outcome.failure = Some(self.unexplained(exit)),
            }
        }
        actions.push(Action::Outcome(Box::new(outcome)));
    }

    /// Whether the model's last step ended by itself, with nothing left to do.
    fn is_answered(&self) -> bool {
        self.finish().is_some_and(reason::is_answer)
    }

    fn judgement(&self, exit: ExitReport<'_>, actions: &mut Actions) -> Option<Classification> {
        let Some((error, at)) = &self.error else { return failure::of_exit(exit) };
        let judgement = failure::of_error(error, exit.stderr);
        if judgement.failure.code == ErrorCode::RateLimit {
            let until = at.and_then(|at| failure::resets_at(&error.data, at));
            actions.extend(until.map(|until| Action::Emit(rejected_until(until))));
        }
        Some(judgement)
    }

    fn unexplained(&self, exit: ExitReport<'_>) -> Failure {
        reason::unexplained(exit.code, exit.signal, self.finish(), !self.tally.denials.is_empty())
    }

    /// Why the model's last step ended, if it did.
    fn finish(&self) -> Option<&str> {
        match &self.step {
            Step::Finished(reason) => Some(reason),
            _ => None,
        }
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.finish().and_then(reason::stop_reason)
    }

    /// The caller or a limit wants an end before anything came: the one reason that we know of deserves a word.
    fn interrupt(&mut self, actions: &mut Actions) {
        self.interrupted = true;
        if let (None, Expected::This(id) | Expected::OtherThan(id)) = (&self.session, &self.expected) {
            let text = format!(
                "nothing was heard of session {}; OpenCode stays silent for ever about one of another directory",
                id.as_str()
            );
            actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, text).into()));
        }
        // It handles no signal and has no other way: SIGINT ends it at once, and the session stays whole.
        actions.push(Action::Process(ProcessAction::Interrupt));
    }
}

impl Protocol for Stream {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            // A session's turns are runs.
            Input::Started | Input::Command(_) | Input::Server(_) => {}
            Input::Line(_) if self.closed => {}
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => {
                let read = line::with_json(bytes, |text| self.line(text, actions));
                if let Err(error) = read {
                    let message = format!("skipped a line that is not of the protocol ({error})");
                    let warning = Warning::new(WarningCode::MalformedLine, message);
                    actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
                }
            }
            Input::Diagnostic(line) => self.diagnostic(line, actions),
            Input::Interrupt => self.interrupt(actions),
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }
}
