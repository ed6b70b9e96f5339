//! The state machine for the lines of `codex exec --json`.
//!
//! Invariants: a message is emitted once, when it is complete. Only `turn.completed` and `turn.failed` end a run. If a wrong thread
//! answers, the process is stopped before it calls the model. An unknown line is ignored, and an unreadable one is a warning.

use serde_json::Value;

use super::super::items::{Item, ItemHead, Todo};
use super::super::thread::Expected;
use super::super::{answer, failure, mcp, notices, tools};
use super::wire::{CompletedItem, ITEM_COMPLETED, Line, TurnUsage};
use crate::agent::json_string::JsonString;
use crate::agent::line;
use crate::agent::line_shape::LineShape;
use crate::agent::mcp::Health;
use crate::bounded::{self, Ids};
use crate::protocol::{Action, ExitReport, Input, Outcome, ProcessAction, Protocol};
use teamster_types::event::{
    Delta, ErrorCode, Event, Failure, Init, PermissionDenial, Plan, PlanEntry, PlanStatus, SessionId, StopReason,
    Usage, UsageScope, Warning, WarningCode,
};
use teamster_types::request::{Conversation, RunRequest};

type Actions = Vec<Action>;

/// The type of an item that is a message of the model.
const AGENT_MESSAGE: &str = "agent_message";

/// One run of `codex exec`.
pub(super) struct Exec {
    expected: Expected,
    scope: UsageScope,
    servers: Health,
    schema: Option<Value>,
    /// Whether the request limits the model calls, which cannot be counted.
    has_turn_limit: bool,
    thread: Option<SessionId>,
    phase: Phase,
    interrupted: bool,
    /// Calls that were emitted.
    calls: Ids,
    plan: Option<Plan>,
    /// The model's last message, if it must follow a schema.
    answer: Option<String>,
    has_answer: bool,
    /// The last `error` line, until another line follows. It may be the only description of a failure.
    error: Option<String>,
    notices: Ids,
    denials: Vec<PermissionDenial>,
    /// The line of a message, with which later lines are compared.
    last_message: Option<LineShape>,
}

#[derive(Debug)]
enum Phase {
    Open,
    /// The turn is over.
    Ended(Box<Outcome>),
    /// A wrong thread answers, or a required server is missing. Nothing of the output is emitted.
    Refused,
}

impl Exec {
    pub(super) fn new(request: &RunRequest, servers: Health) -> Self {
        let scope = match request.conversation {
            Conversation::New => UsageScope::Run,
            // The figures are sums over the thread and all its processes, and the earlier sum is not reported.
            _ => UsageScope::Session,
        };
        Self {
            expected: Expected::of(&request.conversation),
            scope,
            servers,
            schema: request.schema.clone(),
            has_turn_limit: request.max_turns.is_some(),
            thread: None,
            phase: Phase::Open,
            interrupted: false,
            calls: Ids::default(),
            plan: None,
            answer: None,
            has_answer: false,
            error: None,
            notices: Ids::default(),
            denials: Vec::new(),
            last_message: None,
        }
    }

    fn line(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        // Most lines are messages, which are read in one pass.
        if text.starts_with(ITEM_COMPLETED)
            && let Ok(CompletedItem { item }) = serde_json::from_str(text)
            && self.text_item(&item, actions)
        {
            if item.kind == AGENT_MESSAGE {
                self.last_message = message_shape(text, &item).or(self.last_message.take());
            }
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_str(text)?;
        match (&*line.kind, line.item) {
            ("thread.started", _) => self.thread_started(line.thread_id.as_deref().unwrap_or_default(), actions),
            ("turn.completed", _) => self.turn_completed(line.usage, actions),
            ("turn.failed", _) => {
                let message = line.error.map(|error| error.message).or_else(|| self.error.take());
                self.turn_failed(&message.unwrap_or_else(|| "the turn failed".to_owned()), actions);
            }
            ("error", _) => self.error_line(line.message.unwrap_or_default(), actions),
            ("item.started" | "item.updated", Some(raw)) => {
                let id = serde_json::from_str::<ItemHead<'_>>(raw.get())?.id;
                self.item_started(&id.unwrap_or_default(), &serde_json::from_str(raw.get())?, actions);
            }
            ("item.completed", Some(raw)) => {
                let head = serde_json::from_str::<ItemHead<'_>>(raw.get())?;
                if !self.text_item(&head, actions) {
                    self.item_completed(&head.id.unwrap_or_default(), &serde_json::from_str(raw.get())?, actions);
                }
            }
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    fn thread_started(&mut self, thread: &str, actions: &mut Actions) {
        let Some(problem) = self.expected.problem(thread) else {
            self.thread = Some(thread.into()).filter(|_| !thread.is_empty());
            let init = Init::new("codex", thread.into());
            actions.push(Action::Emit(Event::Init(Box::new(init))));
            return;
        };
        actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, problem.clone()).into()));
        let failure = Some(Failure::new(ErrorCode::Protocol, problem));
        actions.push(Action::Outcome(Box::new(Outcome { failure, ..Outcome::default() })));
        // The model has not been called. An answer without its history would be wrong.
        actions.push(Action::Process(ProcessAction::Stop));
        self.phase = Phase::Refused;
    }

    fn item_started(&mut self, id: &str, item: &Item, actions: &mut Actions) {
        self.error = None;
        match item.kind.as_str() {
            "todo_list" => self.plan(item.items.as_deref().unwrap_or_default(), actions),
            // The query is known only at the end of the search.
            "web_search" => actions.push(Action::Alive),
            _ => self.call(id, item, actions),
        }
    }

    /// Emits the text of a message or of reasoning. Returns false for other items.
    fn text_item(&mut self, item: &ItemHead<'_>, actions: &mut Actions) -> bool {
        let id = item.id.as_deref().unwrap_or_default();
        match &*item.kind {
            AGENT_MESSAGE => self.message(id, item.text, actions),
            "reasoning" => {
                self.error = None;
                actions.push(Action::Emit(Event::Thinking(delta(id, item.text))));
            }
            _ => return false,
        }
        true
    }

    fn message(&mut self, id: &str, text: Option<JsonString<'_>>, actions: &mut Actions) {
        self.error = None;
        self.has_answer = text.is_some();
        if self.schema.is_some() {
            self.answer = text.map(JsonString::to_text);
        }
        actions.push(Action::Emit(Event::Text(delta(id, text))));
    }

    fn item_completed(&mut self, id: &str, item: &Item, actions: &mut Actions) {
        // The run continues, so the last error was not fatal.
        self.error.take_if(|_| item.kind != "error");
        match item.kind.as_str() {
            "todo_list" => self.plan(item.items.as_deref().unwrap_or_default(), actions),
            "error" => {
                // The same notice may be printed twice (`flag_unknown_c_key`).
                let message = item.message.as_deref().unwrap_or_default();
                if self.notices.add(message.to_owned()) {
                    actions.push(Action::Emit(notices::warning_for(message).into()));
                }
            }
            _ => {
                self.call(id, item, actions);
                if let Some(call) = tools::call(id, item, &self.servers.names) {
                    bounded::push_denials(&mut self.denials, tools::denial(&call, item));
                    actions.push(Action::Emit(Event::ToolResult(Box::new(tools::result(id, item)))));
                }
            }
        }
    }

    fn call(&mut self, id: &str, item: &Item, actions: &mut Actions) {
        match tools::call(id, item, &self.servers.names) {
            Some(call) if self.calls.add(id.to_owned()) => {
                actions.push(Action::Emit(Event::ToolUse(Box::new(call))));
            }
            _ => actions.push(Action::Alive),
        }
    }

    fn plan(&mut self, items: &[Todo], actions: &mut Actions) {
        let status = |done| if done { PlanStatus::Completed } else { PlanStatus::Pending };
        let entry = |item: &Todo| PlanEntry::new(item.text.clone(), status(item.completed));
        let plan = Plan::new(items.iter().map(entry).collect());
        if self.plan.as_ref() == Some(&plan) {
            return actions.push(Action::Alive);
        }
        self.plan = Some(plan.clone());
        actions.push(Action::Emit(Event::Plan(plan)));
    }

    /// Handles an `error` line. It does not end the run: it may be a reconnect, and `turn.failed` repeats a fatal error.
    fn error_line(&mut self, message: String, actions: &mut Actions) {
        if let Some(classification) = failure::rejected_credentials(&message) {
            let outcome = Outcome {
                session_id: self.thread.clone(),
                permission_denials: self.denials.clone(),
                ..classification.into()
            };
            actions.push(Action::Outcome(Box::new(outcome)));
            actions.push(Action::Process(ProcessAction::Stop));
            self.phase = Phase::Refused;
            return;
        }
        match notices::reconnecting(&message) {
            Some(warning) => actions.push(Action::Emit(warning.into())),
            None => actions.push(Action::Alive),
        }
        self.error = Some(message);
    }

    fn turn_completed(&mut self, usage: Option<TurnUsage>, actions: &mut Actions) {
        let (structured_output, failure) =
            answer::classify(self.answer.as_deref(), self.schema.as_ref(), self.has_answer || !self.calls.is_empty());
        let outcome = Outcome {
            stop_reason: Some(StopReason::EndTurn).filter(|_| failure.is_none()),
            failure,
            session_id: self.thread.clone(),
            usage: usage.map(|usage| (of_thread(&usage), self.scope.clone())),
            permission_denials: self.denials.clone(),
            structured_output,
            ..Outcome::default()
        };
        self.end(outcome, actions);
    }

    fn turn_failed(&mut self, message: &str, actions: &mut Actions) {
        let outcome = Outcome {
            interrupted: self.interrupted,
            session_id: self.thread.clone(),
            stop_reason: failure::stop_reason(message),
            permission_denials: self.denials.clone(),
            ..failure::of_turn(message, None).into()
        };
        self.end(outcome, actions);
    }

    fn end(&mut self, outcome: Outcome, actions: &mut Actions) {
        actions.push(Action::Outcome(Box::new(outcome.clone())));
        self.phase = Phase::Ended(Box::new(outcome));
    }

    fn diagnostic(&mut self, line: &[u8], actions: &mut Actions) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        let Some((server, error)) = mcp::failed(line).filter(|_| matches!(self.phase, Phase::Open)) else { return };
        let reason = format!("did not start: {error}");
        if let Some(failure) = self.servers.failed(server, "failed", &reason, actions) {
            Health::end(failure, actions);
            self.phase = Phase::Refused;
        }
    }

    fn exited(&self, exit: ExitReport<'_>, actions: &mut Actions) {
        let outcome = match &self.phase {
            Phase::Refused => return,
            Phase::Ended(outcome) => {
                let denials = failure::denials(exit.stderr);
                if denials.is_empty() {
                    return;
                }
                let mut outcome = outcome.clone();
                outcome.permission_denials.extend(denials);
                outcome
            }
            // SIGINT ends the CLI without a line (`signal_sigint_stream_native`).
            Phase::Open if self.interrupted => Box::new(Outcome {
                interrupted: true,
                session_id: self.thread.clone(),
                stop_reason: Some(StopReason::Cancelled),
                permission_denials: self.denials.clone(),
                ..Outcome::default()
            }),
            Phase::Open => {
                let last_error = || {
                    self.error
                        .as_deref()
                        .filter(|_| exit.code.is_some_and(|code| code != 0))
                        .map(|error| failure::of_turn(error, None))
                };
                let Some(classification) = failure::of_exit(exit).or_else(last_error) else { return };
                Box::new(Outcome { session_id: self.thread.clone(), ..classification.into() })
            }
        };
        actions.push(Action::Outcome(outcome));
    }
}

impl Protocol for Exec {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            // These belong to sessions, which `exec` does not have.
            Input::Started if self.has_turn_limit => {
                let text = "codex does not support max_turns in `exec`, which reports no model calls";
                let warning = Warning::new(WarningCode::OptionIgnored, text).with("option", "max_turns");
                actions.push(Action::Emit(warning.into()));
            }
            Input::Started | Input::Command(_) | Input::Server(_) | Input::TimerElapsed => {}
            Input::Line(_) if matches!(self.phase, Phase::Refused) => {}
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => {
                if let Some((text, id)) = self.last_message.as_ref().and_then(|shape| shape.text_and_id(bytes)) {
                    return self.message(id, Some(JsonString::without_escapes(text)), actions);
                }
                if let Err(error) = line::with_json(bytes, |text| self.line(text, actions)) {
                    let message = format!("skipped a line that is not of the protocol ({error})");
                    let warning = Warning::new(WarningCode::MalformedLine, message);
                    actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
                }
            }
            Input::Diagnostic(line) => self.diagnostic(line, actions),
            Input::Interrupt => {
                self.interrupted = true;
                actions.push(Action::Process(ProcessAction::Interrupt));
            }
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }
}

/// Returns the shape of the line of a message. `None`: its id or its text has escapes, or one of them is missing.
fn message_shape(line: &str, item: &ItemHead<'_>) -> Option<LineShape> {
    LineShape::with_id(line, item.text?.borrowed()?, item.id.as_deref()?)
}

fn delta(id: &str, text: Option<JsonString<'_>>) -> Delta {
    Delta::new(id, text.map(JsonString::to_text).unwrap_or_default())
}

/// Returns the thread's usage. Cached tokens are part of `input_tokens`. Reasoning is part of `output_tokens`, as in [`Usage`].
fn of_thread(usage: &TurnUsage) -> Usage {
    let cached = usage.cached_input_tokens.unwrap_or(0).saturating_add(usage.cache_write_input_tokens.unwrap_or(0));
    Usage::new(usage.input_tokens.saturating_sub(cached), usage.output_tokens)
        .with_cache(usage.cached_input_tokens, usage.cache_write_input_tokens)
        .with_reasoning(usage.reasoning_output_tokens)
}
