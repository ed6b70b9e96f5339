//! The state machine for the output of a run of Gemini CLI.
//!
//! Invariants: a text is emitted once. A success without an answer is a failure. An unknown line is ignored, and an unreadable one is
//! a warning.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::super::failure::of_exit;
use super::super::{log, tools::tool_use};
use super::document::{self, Lines};
use super::failure::ReportedFailure;
use super::wire::{Document, Line, Problem};
use super::{failure, tools, usage};
use crate::agent::mcp::Health;
use crate::agent::{limit::rejected_until, line};
use crate::bounded::{self, Bounded, MAX_BYTES};
use crate::protocol::{Action, ExitReport, Input, Outcome, ProcessAction, Protocol};
use teamster_types::event::{
    Delta, ErrorCode, Event, Failure, Init, MessageId, PermissionDenial, Retract, SessionId, StopReason, Warning,
    WarningCode,
};
use teamster_types::json::RawJson;
use teamster_types::request::{Conversation, OutputMode, RunRequest};

type Actions = Vec<Action>;

/// The protocol of one run.
pub(super) struct OneShot {
    output: OutputFormat,
    /// The session that must answer.
    expected_session: Option<SessionId>,
    servers: Health,
    /// The number of messages so far. The CLI reports no message ids.
    messages: u64,
    /// The last message may continue.
    in_message: bool,
    /// The text of an incomplete message, if messages are emitted as a whole.
    waiting: Option<String>,
    calls: Bounded<String, (String, RawJson)>,
    denials: Vec<PermissionDenial>,
    has_emitted_text: bool,
    /// The last `error` event that is fatal.
    fatal_error: Option<String>,
    /// The caller interrupted the run.
    interrupted: bool,
    phase: Phase,
}

enum OutputFormat {
    Lines,
    Document(Lines),
}

/// The result that the CLI reported.
enum ReportedResult<'a> {
    Success,
    Failed(Option<&'a Problem>),
}

enum Phase {
    /// No result has been read.
    Open,
    /// A result has been read. If it is a failure, the exit code may add details.
    Answered(Option<Box<Failed>>),
    /// Another session answered, or a required server is missing. Nothing of the output is emitted.
    Refused,
}

/// A result that reports a failure.
struct Failed {
    outcome: Outcome,
    reported: ReportedFailure,
    at: Option<OffsetDateTime>,
}

impl OneShot {
    pub(super) fn new(request: &RunRequest, servers: Health) -> Self {
        Self {
            output: match request.output {
                OutputMode::Batch => OutputFormat::Document(Lines::default()),
                _ => OutputFormat::Lines,
            },
            expected_session: match &request.conversation {
                Conversation::Resume(id) => Some(id.clone()),
                _ => None,
            },
            servers,
            messages: 0,
            in_message: false,
            waiting: (request.output == OutputMode::Messages).then(String::new),
            calls: Bounded::default(),
            denials: Vec::new(),
            has_emitted_text: false,
            fatal_error: None,
            interrupted: false,
            phase: Phase::Open,
        }
    }

    fn line(&mut self, mut line: Line<'_>, actions: &mut Actions) {
        match &*line.kind {
            "init" => self.init(&line, actions),
            "message" if line.role.as_deref() == Some("assistant") => {
                self.text(line.content.as_deref().unwrap_or_default(), actions);
            }
            "tool_use" => self.tool_use(&mut line, actions),
            "tool_result" => self.tool_result(&mut line, actions),
            "error" => self.error(&line, actions),
            "result" => self.result(&line, actions),
            _ => actions.push(Action::Alive),
        }
    }

    fn init(&mut self, line: &Line<'_>, actions: &mut Actions) {
        let session = line.session_id.as_deref().unwrap_or_default();
        if self.refuses(session, actions) {
            return;
        }
        let mut init = Init::new("gemini", session.into());
        init.model = line.model.as_deref().map(Into::into);
        actions.push(Action::Emit(Event::Init(Box::new(init))));
    }

    /// Stops the run if another session answers than the requested one. The model has not been called yet.
    fn refuses(&mut self, session: &str, actions: &mut Actions) -> bool {
        let Some(expected) = self.expected_session.as_ref().filter(|expected| expected.as_str() != session) else {
            return false;
        };
        let message = format!("requested to resume session {}, but {session} answers", expected.as_str());
        actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, message.clone()).into()));
        let failure = Failure::new(ErrorCode::Protocol, message);
        actions.push(Action::Outcome(Box::new(Outcome { failure: Some(failure), ..Outcome::default() })));
        actions.push(Action::Process(ProcessAction::Stop));
        self.phase = Phase::Refused;
        true
    }

    fn text(&mut self, text: &str, actions: &mut Actions) {
        if text.is_empty() {
            return actions.push(Action::Alive);
        }
        if !self.in_message {
            self.in_message = true;
            self.messages += 1;
        }
        self.has_emitted_text = true;
        match &mut self.waiting {
            Some(waiting) => {
                waiting.push_str(text);
                // A message that exceeds the limit is emitted in parts.
                if waiting.len() > MAX_BYTES {
                    return self.flush(actions);
                }
                actions.push(Action::Alive);
            }
            None => actions.push(self.delta(text.to_owned())),
        }
    }

    fn delta(&self, text: String) -> Action {
        Action::Emit(Event::Text(Delta::new(self.message_id(), text)))
    }

    fn message_id(&self) -> MessageId {
        format!("message-{}", self.messages).into()
    }

    /// Emits the waiting text.
    fn flush(&mut self, actions: &mut Actions) {
        let waiting = self.waiting.as_mut().map(std::mem::take).filter(|text| !text.is_empty());
        if let Some(text) = waiting {
            actions.push(self.delta(text));
        }
    }

    fn tool_use(&mut self, line: &mut Line<'_>, actions: &mut Actions) {
        self.flush(actions);
        let (Some(id), Some(name)) = (line.tool_id.as_deref(), line.tool_name.as_deref()) else {
            return actions.push(Action::Alive);
        };
        let input = line.parameters.take().unwrap_or_default();
        self.calls.insert(id.to_owned(), (name.to_owned(), input.clone()), name.len() + input.as_str().len());
        let plan = tools::plan(name, &input);
        actions.push(Action::Emit(Event::ToolUse(Box::new(tool_use(id, name, input, &self.servers.names)))));
        actions.extend(plan.map(|plan| Action::Emit(Event::Plan(plan))));
    }

    fn tool_result(&mut self, line: &mut Line<'_>, actions: &mut Actions) {
        // The next text is a new message.
        self.flush(actions);
        self.in_message = false;
        let Some(id) = line.tool_id.clone() else { return actions.push(Action::Alive) };
        self.fatal_error = tools::stop_of_hook(line).or(self.fatal_error.take());
        let call = self.calls.remove(&*id);
        if let Some((name, input)) = &call
            && tools::is_denied(name, line)
        {
            let denial = PermissionDenial::new(self.servers.names.rule(name))
                .with_tool_id(Some((&*id).into()))
                .with_input(Some(input.clone()).filter(|input| !input.is_null()));
            bounded::push_denials(&mut self.denials, [denial]);
        }
        let name = call.as_ref().map(|(name, _)| name.as_str());
        actions.push(Action::Emit(Event::ToolResult(Box::new(tools::tool_result(&id, name, line)))));
    }

    fn error(&mut self, line: &Line<'_>, actions: &mut Actions) {
        let message = line.message.as_deref().unwrap_or_default();
        if line.severity.as_deref() == Some("error") {
            // The CLI called the model several times, and streamed each answer into the same message.
            self.retract(actions);
            self.fatal_error = Some(message.to_owned());
            return actions.push(Action::Alive);
        }
        if failure::ends_run(message) {
            self.fatal_error = Some(message.to_owned());
        }
        actions.push(Action::Emit(Warning::new(WarningCode::Notice, message).into()));
    }

    fn retract(&mut self, actions: &mut Actions) {
        if std::mem::take(&mut self.in_message) && self.waiting.as_mut().map(std::mem::take).is_none() {
            actions.push(Action::Emit(Event::Retract(Retract::new(self.message_id()))));
        }
    }

    fn result(&mut self, line: &Line<'_>, actions: &mut Actions) {
        self.flush(actions);
        let stats = line.stats.as_ref();
        let called = stats.is_none_or(|stats| stats.total_tokens > 0);
        let mut outcome = Outcome {
            usage: stats.and_then(usage::usage),
            model: stats.and_then(|stats| usage::only_model(stats.models.keys())),
            ..Outcome::default()
        };
        let failed = line.status.as_deref() != Some("success");
        let problem = line.error.as_ref();
        let cancelled = problem.is_some_and(|problem| problem.kind == "FatalCancellationError");
        if cancelled {
            outcome.interrupted = true;
        }
        let reported = if failed { ReportedResult::Failed(problem) } else { ReportedResult::Success };
        let at = line.timestamp.as_deref().and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
        self.end(outcome, &reported, called, at, actions);
    }

    /// Ends the run with the reported result.
    fn end(
        &mut self,
        mut outcome: Outcome,
        result: &ReportedResult<'_>,
        called: bool,
        at: Option<OffsetDateTime>,
        actions: &mut Actions,
    ) {
        let reported = match (result, self.fatal_error.take()) {
            (ReportedResult::Failed(problem), event) => Some(ReportedFailure::new(*problem, event.as_deref())),
            (ReportedResult::Success, Some(event)) => Some(ReportedFailure::new(None, Some(&event))),
            (ReportedResult::Success, None) => None,
        };
        match &reported {
            Some(reported) => reported.classify(None).apply_to(&mut outcome),
            None => outcome.failure = (!self.has_emitted_text).then(|| failure::of_missing_answer(called)),
        }
        outcome.stop_reason = match &outcome.failure {
            Some(Failure { code: ErrorCode::MaxTurns, .. }) => Some(StopReason::MaxTurns),
            _ if outcome.interrupted => Some(StopReason::Cancelled),
            Some(_) => None,
            // A model that reached its token limit is reported in the same way (`stream_max_tokens`).
            None => Some(StopReason::EndTurn),
        };
        outcome.permission_denials = std::mem::take(&mut self.denials);
        let failed = reported.map(|reported| Box::new(Failed { outcome: outcome.clone(), reported, at }));
        self.phase = Phase::Answered(failed);
        actions.push(Action::Outcome(Box::new(outcome)));
    }

    fn document(&mut self, document: &Document, actions: &mut Actions) {
        if let Some(session) = &document.session_id {
            if self.refuses(session, actions) {
                return;
            }
            actions.push(Action::Emit(Event::Init(Box::new(Init::new("gemini", session.as_str().into())))));
        }
        // The response of a failed run may repeat a message (`json_nofinish`).
        if let Some(text) = document.response.as_deref().filter(|_| document.error.is_none()) {
            self.text(text, actions);
            self.flush(actions);
        }
        let stats = document.stats.as_ref();
        let outcome = Outcome {
            usage: stats.and_then(usage::document_usage),
            model: stats.and_then(|stats| usage::only_model(stats.models.keys())),
            api_duration_ms: stats.map(|stats| stats.models.values().map(|model| model.api.total_latency_ms).sum()),
            ..Outcome::default()
        };
        let called = stats.is_none_or(|stats| stats.models.values().any(|model| model.tokens.total > 0));
        let failed = document.error.is_some() || document.response.is_none();
        let reported = if failed { ReportedResult::Failed(document.error.as_ref()) } else { ReportedResult::Success };
        self.end(outcome, &reported, called, None, actions);
    }

    fn read(&mut self, bytes: &[u8], actions: &mut Actions) {
        if let OutputFormat::Document(lines) = &mut self.output {
            actions.push(Action::Alive);
            if let Some(document) = lines.take(bytes) {
                self.document(&document, actions);
            }
            return;
        }
        let read = line::with_json(bytes, |text| {
            self.line(serde_json::from_str(text)?, actions);
            Ok(())
        });
        if let Err(error) = read {
            let message = format!("skipped a line that is not of the protocol ({error})");
            let warning = Warning::new(WarningCode::MalformedLine, message);
            actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
        }
    }

    fn diagnostic(&mut self, line: &[u8], actions: &mut Actions) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        let Some((server, error)) = log::failed_server(line).filter(|_| matches!(self.phase, Phase::Open)) else {
            return;
        };
        if let Some(failure) = self.servers.failed(server, "failed", &format!("did not start: {error}"), actions) {
            Health::end(failure, actions);
            self.phase = Phase::Refused;
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        // This message does not name the server (`mcp_server_fails_to_start`).
        if exit.stderr.contains("MCP issues detected") && !self.servers.has_reported() {
            let text = "an MCP server did not start or has no tools; its tools were missing";
            actions.push(Action::Emit(Warning::new(WarningCode::McpServerFailed, text).into()));
        }
        self.flush(actions);
        match &mut self.phase {
            Phase::Refused | Phase::Answered(None) => {}
            Phase::Answered(Some(failed)) => {
                failed.reported.classify(exit.code).apply_to(&mut failed.outcome);
                if failed.outcome.failure.as_ref().is_some_and(|failure| failure.code == ErrorCode::RateLimit) {
                    let until = failed.at.and_then(|at| failed.reported.resets_at(at));
                    actions.extend(until.map(|until| Action::Emit(rejected_until(until))));
                }
                actions.push(Action::Outcome(Box::new(failed.outcome.clone())));
            }
            Phase::Open => self.exited_without_result(exit, actions),
        }
    }

    fn exited_without_result(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        let is_batch = matches!(self.output, OutputFormat::Document(_));
        let found = is_batch.then(|| document::last_in(exit.stderr)).flatten();
        if let Some(document) = found.filter(|document| document.error.is_some()) {
            self.document(&document, actions);
            return self.exited(exit, actions);
        }
        let outcome = match exit.code {
            Some(0) => Some(Outcome { failure: Some(failure::of_missing_result()), ..Outcome::default() }),
            _ => of_exit(exit).map(Outcome::from),
        };
        if let Some(outcome) = outcome {
            actions.push(Action::Outcome(Box::new(Outcome {
                interrupted: self.interrupted,
                stop_reason: self.interrupted.then_some(StopReason::Cancelled),
                permission_denials: std::mem::take(&mut self.denials),
                ..outcome
            })));
        }
    }
}

impl Protocol for OneShot {
    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        Some(log::without(stderr))
    }

    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            // These belong to sessions.
            Input::Started | Input::Command(_) | Input::Server(_) | Input::TimerElapsed => {}
            Input::Line(_) if matches!(self.phase, Phase::Refused) => {}
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => self.read(bytes, actions),
            Input::Diagnostic(line) => self.diagnostic(line, actions),
            // The CLI exits with code 0 and prints no more. Processes that its tools started are killed with the tree.
            Input::Interrupt => {
                self.interrupted = true;
                actions.push(Action::Process(ProcessAction::Interrupt));
            }
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }
}
