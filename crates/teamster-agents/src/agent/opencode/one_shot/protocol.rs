//! The state machine for the lines of `opencode run`.
//!
//! Invariants: a run succeeds only if the last model call finished its answer and no error follows it, whatever the exit code
//! is. Nothing of an unrequested session is emitted. An unknown line is ignored, and an unreadable one is a warning.

use serde_json::value::RawValue;
use time::OffsetDateTime;

use super::super::error::NAME;
use super::super::usage::UsageTotals;
use super::super::wire::{ErrorBody, FinishPart, ToolPart};
use super::super::{failure, finish_reason, logs, tools};
use super::wire::{Line, StepPart, TextPart};
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

/// The protocol of one run.
pub(super) struct OneShot {
    expected: Expected,
    servers: Health,
    max_turns: Option<u64>,
    max_budget_usd: Option<f64>,
    session: Option<SessionId>,
    totals: UsageTotals,
    step: Step,
    /// The message of the last step, and whether any of it was emitted.
    message: Option<(MessageId, bool)>,
    /// The number of consecutive steps without a finish reason.
    unfinished: u32,
    /// The last error and its time.
    error: Option<(ErrorBody, Option<OffsetDateTime>)>,
    interrupted: bool,
    /// The outcome was returned and the process is being stopped, so further output is ignored.
    is_closed: bool,
}

/// The session that must answer.
enum Expected {
    Any,
    This(SessionId),
    OtherThan(SessionId),
}

/// The state of the last model call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// No call since the start, or since the conversation was compacted.
    None,
    Open,
    Finished(String),
}

impl OneShot {
    pub(super) fn new(request: &RunRequest, servers: Health) -> Self {
        let expected = match &request.conversation {
            Conversation::Resume(id) => Expected::This(id.clone()),
            Conversation::Fork(id) => Expected::OtherThan(id.clone()),
            Conversation::New | Conversation::Continue | Conversation::ForkNewest => Expected::Any,
        };
        Self {
            expected,
            servers,
            max_turns: request.max_turns.map(|turns| u64::from(turns.get())),
            max_budget_usd: request.max_budget_usd.into_iter().chain(request.max_session_budget_usd).reduce(f64::min),
            session: None,
            totals: UsageTotals::default(),
            step: Step::None,
            message: None,
            unfinished: 0,
            error: None,
            interrupted: false,
            is_closed: false,
        }
    }

    fn line(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        let line: Line<'_> = serde_json::from_str(text)?;
        if let Some(id) = line.session_id.as_deref().filter(|id| !id.is_empty()) {
            self.session(id, actions);
            if self.is_closed {
                return Ok(());
            }
        }
        let part = line.part.map_or("{}", RawValue::get);
        match &*line.kind {
            "step_start" => self.step_start(&serde_json::from_str(part)?, actions),
            "text" => self.text(&serde_json::from_str(part)?, actions),
            "reasoning" => {
                let part: TextPart<'_> = serde_json::from_str(part)?;
                self.emit(&part, Event::Thinking, actions);
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
            _ if self.session.is_some() => Some(format!("session {id} answers in the middle of another session")),
            Expected::This(asked) if asked.as_str() != id => {
                Some(format!("requested to resume session {}, but {id} answers", asked.as_str()))
            }
            Expected::OtherThan(origin) if origin.as_str() == id => Some({
                let origin = origin.as_str();
                format!("requested to fork session {origin}, but it continues itself")
            }),
            _ => None,
        };
        if let Some(message) = wrong {
            actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, message.clone()).into()));
            return self.close(Failure::new(ErrorCode::Protocol, message), None, actions);
        }
        let id = SessionId::from(id);
        self.session = Some(id.clone());
        actions.push(Action::Emit(Event::Init(Box::new(Init::new(NAME, id)))));
    }

    fn step_start(&mut self, part: &StepPart<'_>, actions: &mut Actions) {
        let id = MessageId::from(&*part.message_id);
        // The same message starts again: its connection broke, and the model is called again (`err_cut_once`).
        if self.step == Step::Open && self.message.as_ref().is_some_and(|(open, _)| *open == id) {
            self.retract(actions);
            let text = "the answer was cut off; the agent calls the model again";
            actions.push(Action::Emit(Warning::new(WarningCode::Retrying, text).into()));
        }
        self.step = Step::Open;
        self.message = Some((id, false));
        actions.push(Action::Alive);
    }

    fn text(&mut self, part: &TextPart<'_>, actions: &mut Actions) {
        if !part.synthetic {
            return self.emit(part, Event::Text, actions);
        }
        // After it summarized the conversation, the agent sends a text of its own to the model. The step before it was the
        // summary, and the answer follows (`auto_compaction`, `err_context_400`).
        self.retract(actions);
        let text = "the agent compacted its conversation";
        actions.push(Action::Emit(Warning::new(WarningCode::Compacted, text).into()));
        self.error.take_if(|(error, _)| failure::of_error(error, "").failure.code == ErrorCode::ContextWindow);
        self.step = Step::None;
        self.message = None;
    }

    fn emit(&mut self, part: &TextPart<'_>, event: fn(Delta) -> Event, actions: &mut Actions) {
        let id = MessageId::from(&*part.message_id);
        if part.text.is_empty() {
            return actions.push(Action::Alive);
        }
        match &mut self.message {
            Some((message, emitted)) if *message == id => *emitted = true,
            message => *message = Some((id.clone(), true)),
        }
        let delta = Delta::new(id, part.text.to_string());
        actions.push(Action::Emit(event(delta)));
    }

    fn retract(&mut self, actions: &mut Actions) {
        if let Some((message_id, true)) = self.message.take() {
            actions.push(Action::Emit(Event::Retract(Retract::new(message_id))));
        }
    }

    fn tool(&mut self, part: ToolPart, actions: &mut Actions) {
        let call = tools::call(part, &self.servers.names);
        bounded::push_denials(&mut self.totals.denials, call.denial);
        actions.push(Action::Emit(Event::ToolUse(Box::new(call.tool))));
        actions.push(Action::Emit(Event::ToolResult(Box::new(call.result))));
        actions.extend(call.plan.map(|plan| Action::Emit(Event::Plan(plan))));
    }

    fn step_finish(&mut self, part: &FinishPart<'_>, actions: &mut Actions) {
        let reason = part.reason.as_deref().unwrap_or("unknown").to_owned();
        actions.extend(self.totals.add_step(part).map(Action::Emit));
        self.unfinished = if reason == "unknown" { self.unfinished + 1 } else { 0 };
        let continues = finish_reason::continues(&reason);
        self.step = Step::Finished(reason);
        actions.push(Action::Alive);
        if !continues {
            return;
        }
        // The agent's own limit of steps is only a request to the model (`max_steps`), and it has no limit of cost.
        if let Some(turns) = self.max_turns.filter(|turns| self.totals.turns >= *turns) {
            self.close(finish_reason::turn_limit(turns), Some(StopReason::MaxTurns), actions);
        } else if let Some(budget) = self.max_budget_usd.filter(|budget| self.totals.cost >= Some(*budget)) {
            self.close(finish_reason::budget_limit(budget), None, actions);
        } else if self.unfinished >= finish_reason::MAX_UNFINISHED_STEPS {
            self.close(finish_reason::unfinished(), None, actions);
        }
    }

    /// Returns the outcome and stops the process, because it must not continue.
    fn close(&mut self, failure: Failure, stop_reason: Option<StopReason>, actions: &mut Actions) {
        self.is_closed = true;
        let outcome = Outcome { failure: Some(failure), ..self.totals.outcome(stop_reason) };
        actions.push(Action::Outcome(Box::new(outcome)));
        actions.push(Action::Process(ProcessAction::Stop));
    }

    fn diagnostic(&mut self, line: &[u8], actions: &mut Actions) {
        let Some(line) = std::str::from_utf8(line).ok().filter(|_| !self.is_closed) else { return };
        let Some((server, status, reason)) = logs::failed_server(line) else { return };
        if let Some(failure) = self.servers.failed(server, status, reason, actions) {
            Health::end(failure, actions);
            self.is_closed = true;
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        if self.is_closed {
            return;
        }
        let answered = self.error.is_none() && self.is_answered();
        if self.interrupted && !answered {
            let outcome = Outcome { interrupted: true, ..self.totals.outcome(Some(StopReason::Cancelled)) };
            return actions.push(Action::Outcome(Box::new(outcome)));
        }
        let mut outcome = self.totals.outcome(self.stop_reason());
        if !answered {
            match self.classification(exit, actions) {
                Some(classification) => classification.apply_to(&mut outcome),
                None => outcome.failure = Some(self.unexplained(exit)),
            }
        }
        actions.push(Action::Outcome(Box::new(outcome)));
    }

    /// Returns whether the last model call finished the answer and called no tool.
    fn is_answered(&self) -> bool {
        self.finish().is_some_and(finish_reason::is_final)
    }

    fn classification(&self, exit: ExitReport<'_>, actions: &mut Actions) -> Option<Classification> {
        let Some((error, at)) = &self.error else { return failure::of_exit(exit) };
        let classification = failure::of_error(error, exit.stderr);
        if classification.failure.code == ErrorCode::RateLimit {
            let until = at.and_then(|at| failure::resets_at(&error.data, at));
            actions.extend(until.map(|until| Action::Emit(rejected_until(until))));
        }
        Some(classification)
    }

    fn unexplained(&self, exit: ExitReport<'_>) -> Failure {
        finish_reason::unexplained(exit.code, exit.signal, self.finish(), !self.totals.denials.is_empty())
    }

    /// Returns the finish reason of the last model call, if it has finished.
    fn finish(&self) -> Option<&str> {
        match &self.step {
            Step::Finished(reason) => Some(reason),
            _ => None,
        }
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.finish().and_then(finish_reason::stop_reason)
    }

    /// Handles an interrupt. If there was no output yet, a warning names the likely cause.
    fn interrupt(&mut self, actions: &mut Actions) {
        self.interrupted = true;
        if let (None, Expected::This(id) | Expected::OtherThan(id)) = (&self.session, &self.expected) {
            let text = format!(
                "session {} sent no output; OpenCode prints nothing if the session belongs to another directory",
                id.as_str()
            );
            actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, text).into()));
        }
        // SIGINT is the only way to stop it. It exits at once, and the session stays intact.
        actions.push(Action::Process(ProcessAction::Interrupt));
    }
}

impl Protocol for OneShot {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            // Each turn of a session is a run.
            Input::Started | Input::Command(_) | Input::Server(_) | Input::TimerElapsed => {}
            Input::Line(_) if self.is_closed => {}
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => {
                let read = line::with_json(bytes, |text| self.line(text, actions));
                if let Err(error) = read {
                    let message = format!("skipped a line that is not part of the protocol ({error})");
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
