//! The state machine over Gemini CLI's lines: what each line means, in order.
//!
//! Invariants: text is told once; a success without an answer is none; a line that we do not know is nothing, one that we
//! cannot read is a warning.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::document::{self, Lines};
use super::failure::Complaint;
use super::wire::{Document, Line, Problem};
use super::{failure, log, outcome, tools};
use crate::agent::mcp::Health;
use crate::agent::{limit::rejected_until, line};
use crate::bounded::{self, Bounded, MAX_BYTES};
use crate::protocol::{Action, ExitReport, Input, Outcome, Protocol};
use teamster_types::event::{
    Delta, ErrorCode, Event, Failure, Init, MessageId, PermissionDenial, Retract, SessionId, StopReason, Warning,
    WarningCode,
};
use teamster_types::json::RawJson;
use teamster_types::request::{Conversation, OutputMode, RunRequest};

type Actions = Vec<Action>;

/// One run of Gemini CLI.
pub(super) struct Headless {
    form: Form,
    /// The session that must answer.
    expected_session: Option<SessionId>,
    servers: Health,
    /// Messages begun so far: the CLI gives them no ids.
    messages: u64,
    /// The message that is being said.
    speaking: bool,
    /// Text that waits for the end of its message, where messages are told as a whole.
    waiting: Option<String>,
    calls: Bounded<String, (String, RawJson)>,
    denials: Vec<PermissionDenial>,
    text_told: bool,
    /// The last `error` event that is the end of the run.
    told: Option<String>,
    /// The caller has asked it to stop.
    interrupted: bool,
    phase: Phase,
}

enum Form {
    Lines,
    Document(Lines),
}

/// What the final word says of the run.
enum Verdict<'a> {
    Success,
    Failed(Option<&'a Problem>),
}

enum Phase {
    /// No result has been read.
    Open,
    /// A result has been read; of a failure the exit code may tell more.
    Answered(Option<Box<Failed>>),
    /// Another session answered than the one asked for, or a server is missing that the run cannot do without: nothing that
    /// it says is meant for the caller.
    Refused,
}

/// A result that tells of a failure.
struct Failed {
    outcome: Outcome,
    complaint: Complaint,
    at: Option<OffsetDateTime>,
}

impl Headless {
    pub(super) fn new(request: &RunRequest, servers: Health) -> Self {
        Self {
            form: if request.output == OutputMode::Batch { Form::Document(Lines::default()) } else { Form::Lines },
            expected_session: match &request.conversation {
                Conversation::Resume(id) => Some(id.clone()),
                _ => None,
            },
            servers,
            messages: 0,
            speaking: false,
            waiting: (request.output == OutputMode::Messages).then(String::new),
            calls: Bounded::default(),
            denials: Vec::new(),
            text_told: false,
            told: None,
            interrupted: false,
            phase: Phase::Open,
        }
    }

    fn line(&mut self, mut line: Line<'_>, actions: &mut Actions) {
        match &*line.kind {
            "init" => self.init(&line, actions),
            "message" if line.role.as_deref() == Some("assistant") => {
                self.say(line.content.as_deref().unwrap_or_default(), actions);
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

    /// Before the model is called: an answer without its history is worse than none.
    fn refuses(&mut self, session: &str, actions: &mut Actions) -> bool {
        let Some(expected) = self.expected_session.as_ref().filter(|expected| expected.as_str() != session) else {
            return false;
        };
        let message = format!("asked to resume session {}, but {session} answers", expected.as_str());
        actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, message.clone()).into()));
        let failure = Failure::new(ErrorCode::Protocol, message);
        actions.push(Action::Outcome(Box::new(Outcome { failure: Some(failure), ..Outcome::default() })));
        actions.push(Action::Stop);
        self.phase = Phase::Refused;
        true
    }

    fn say(&mut self, text: &str, actions: &mut Actions) {
        if text.is_empty() {
            return actions.push(Action::Alive);
        }
        if !self.speaking {
            self.speaking = true;
            self.messages += 1;
        }
        self.text_told = true;
        match &mut self.waiting {
            Some(waiting) => {
                waiting.push_str(text);
                // A message that is too long to wait comes in parts.
                if waiting.len() > MAX_BYTES {
                    return self.flush(actions);
                }
                actions.push(Action::Alive);
            }
            None => actions.push(self.delta(text.to_owned())),
        }
    }

    fn delta(&self, text: String) -> Action {
        Action::Emit(Event::Text(Delta { text: text.into(), message_id: self.message_id(), parent_tool_id: None }))
    }

    fn message_id(&self) -> MessageId {
        format!("message-{}", self.messages).into()
    }

    /// Tells what waits for the end of its message.
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
        actions.push(Action::Emit(Event::ToolUse(Box::new(tools::tool_use(id, name, input, &self.servers.names)))));
        actions.extend(plan.map(|plan| Action::Emit(Event::Plan(plan))));
    }

    fn tool_result(&mut self, line: &mut Line<'_>, actions: &mut Actions) {
        // What the model says after it is a new message.
        self.flush(actions);
        self.speaking = false;
        let Some(id) = line.tool_id.clone() else { return actions.push(Action::Alive) };
        let call = self.calls.remove(&*id);
        if let Some((name, input)) = &call
            && tools::is_denied(name, line)
        {
            let denial = PermissionDenial {
                tool_name: self.servers.names.rule(name).into(),
                tool_id: Some((&*id).into()),
                input: Some(input.clone()).filter(|input| !input.is_null()),
            };
            bounded::push_denials(&mut self.denials, [denial]);
        }
        let name = call.as_ref().map(|(name, _)| name.as_str());
        actions.push(Action::Emit(Event::ToolResult(Box::new(tools::tool_result(&id, name, line)))));
    }

    fn error(&mut self, line: &Line<'_>, actions: &mut Actions) {
        let message = line.message.as_deref().unwrap_or_default();
        if line.severity.as_deref() == Some("error") {
            // The model was asked several times, and each answer was streamed into the same message (trap 6).
            self.withdraw(actions);
            self.told = Some(message.to_owned());
            return actions.push(Action::Alive);
        }
        // Then the result is called a success (loop_detection).
        if message.starts_with("Loop detected") {
            self.told = Some(message.to_owned());
        }
        actions.push(Action::Emit(Warning::new(WarningCode::Notice, message).into()));
    }

    fn withdraw(&mut self, actions: &mut Actions) {
        if std::mem::take(&mut self.speaking) && self.waiting.as_mut().map(std::mem::take).is_none() {
            actions.push(Action::Emit(Event::Retract(Retract { message_id: self.message_id() })));
        }
    }

    fn result(&mut self, line: &Line<'_>, actions: &mut Actions) {
        self.flush(actions);
        let stats = line.stats.as_ref();
        let called = stats.is_none_or(|stats| stats.total_tokens > 0);
        let mut outcome = Outcome {
            usage: stats.and_then(outcome::usage),
            model: stats.and_then(|stats| outcome::only(stats.models.keys())),
            ..Outcome::default()
        };
        let failed = line.status.as_deref() != Some("success");
        let problem = line.error.as_ref();
        let cancelled = problem.is_some_and(|problem| problem.kind == "FatalCancellationError");
        if cancelled {
            outcome.interrupted = true;
        }
        let verdict = if failed { Verdict::Failed(problem) } else { Verdict::Success };
        let at = line.timestamp.as_deref().and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
        self.end(outcome, &verdict, called, at, actions);
    }

    /// Gives the final word.
    fn end(
        &mut self,
        mut outcome: Outcome,
        verdict: &Verdict<'_>,
        called: bool,
        at: Option<OffsetDateTime>,
        actions: &mut Actions,
    ) {
        let complaint = match (verdict, self.told.take()) {
            (Verdict::Failed(problem), told) => Some(Complaint::new(*problem, told.as_deref())),
            (Verdict::Success, Some(told)) => Some(Complaint::new(None, Some(&told))),
            (Verdict::Success, None) => None,
        };
        match &complaint {
            Some(complaint) => complaint.classify(None).apply_to(&mut outcome),
            None => outcome.failure = (!self.text_told).then(|| failure::of_silence(called)),
        }
        outcome.stop_reason = match &outcome.failure {
            Some(Failure { code: ErrorCode::MaxTurns, .. }) => Some(StopReason::MaxTurns),
            _ if outcome.interrupted => Some(StopReason::Cancelled),
            // Whether the model had said all, ran out of tokens or was cut off is not told (stream_max_tokens).
            _ => None,
        };
        outcome.permission_denials = std::mem::take(&mut self.denials);
        let failed = complaint.map(|complaint| Box::new(Failed { outcome: outcome.clone(), complaint, at }));
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
        // What a run that failed says may hold a message several times (json_nofinish).
        if let Some(text) = document.response.as_deref().filter(|_| document.error.is_none()) {
            self.say(text, actions);
            self.flush(actions);
        }
        let stats = document.stats.as_ref();
        let outcome = Outcome {
            usage: stats.and_then(outcome::document_usage),
            model: stats.and_then(|stats| outcome::only(stats.models.keys())),
            api_duration_ms: stats.map(|stats| stats.models.values().map(|model| model.api.total_latency_ms).sum()),
            ..Outcome::default()
        };
        let called = stats.is_none_or(|stats| stats.models.values().any(|model| model.tokens.total > 0));
        let failed = document.error.is_some() || document.response.is_none();
        let verdict = if failed { Verdict::Failed(document.error.as_ref()) } else { Verdict::Success };
        self.end(outcome, &verdict, called, None, actions);
    }

    fn read(&mut self, bytes: &[u8], actions: &mut Actions) {
        if let Form::Document(lines) = &mut self.form {
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
        // By itself it does not say which one it was (mcp_server_fails_to_start).
        if exit.stderr.contains("MCP issues detected") && !self.servers.has_reported() {
            let text = "an MCP server did not start or has no tools; its tools were missing";
            actions.push(Action::Emit(Warning::new(WarningCode::McpServerFailed, text).into()));
        }
        self.flush(actions);
        match &mut self.phase {
            Phase::Refused | Phase::Answered(None) => {}
            Phase::Answered(Some(failed)) => {
                failed.complaint.classify(exit.code).apply_to(&mut failed.outcome);
                if failed.outcome.failure.as_ref().is_some_and(|failure| failure.code == ErrorCode::RateLimit) {
                    let until = failed.at.and_then(|at| failed.complaint.resets_at(at));
                    actions.extend(until.map(|until| Action::Emit(rejected_until(until))));
                }
                actions.push(Action::Outcome(Box::new(failed.outcome.clone())));
            }
            Phase::Open => self.ended_early(exit, actions),
        }
    }

    fn ended_early(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        let found = matches!(self.form, Form::Document(_)).then(|| document::last_in(exit.stderr)).flatten();
        if let Some(document) = found.filter(|document| document.error.is_some()) {
            self.document(&document, actions);
            return self.exited(exit, actions);
        }
        let told = match exit.code {
            Some(0) => Some(Outcome { failure: Some(failure::of_missing_result()), ..Outcome::default() }),
            _ => failure::of_exit(exit).map(Outcome::from),
        };
        if let Some(told) = told {
            actions.push(Action::Outcome(Box::new(Outcome {
                interrupted: self.interrupted,
                stop_reason: self.interrupted.then_some(StopReason::Cancelled),
                permission_denials: std::mem::take(&mut self.denials),
                ..told
            })));
        }
    }
}

impl Protocol for Headless {
    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        Some(log::without(stderr))
    }

    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            // A session's turns are runs.
            Input::Started | Input::Command(_) | Input::Server(_) => {}
            Input::Line(_) if matches!(self.phase, Phase::Refused) => {}
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => self.read(bytes, actions),
            Input::Diagnostic(line) => self.diagnostic(line, actions),
            // It exits with 0 and says nothing more; what its tools started is ended with the tree.
            Input::Interrupt => {
                self.interrupted = true;
                actions.push(Action::Interrupt);
            }
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }
}
