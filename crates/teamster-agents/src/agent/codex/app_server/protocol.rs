//! The state machine for the lines of `codex app-server`: it opens a thread, and runs turns on it.
//!
//! Invariants: no turn starts on a wrong thread. Every turn gets one outcome. Output of another turn or thread is not emitted. Every
//! request of the app-server gets a response.

mod delta_shape;
mod notifications;
mod record;
mod server_requests;
mod turns;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::thread::Expected;
use super::super::{failure, notices};
use super::approvals::PendingRequests;
use super::prompt_input::PromptEncoder;
use super::thread_request::{ThreadCall, ThreadRequest};
use super::thread_usage::ThreadUsage;
use super::turn::{Stage, Turn};
use super::turn_end::{Record, TurnEnd};
use super::wire::{ListAnswer, Origin, ReadAnswer, ThreadAnswer, TurnLine};
use crate::agent::codex::prompt;
use crate::agent::failure::Classification;
use crate::agent::line;
use crate::agent::mcp::Health;
use crate::agent::rpc::{self, Caller, Header, Message, RpcError};
use crate::bounded::{self, Ids};
use crate::protocol::{Action, ExitReport, Input, Outcome, ProcessAction, Protocol};
use delta_shape::DeltaShape;
use teamster_types::event::{ErrorCode, Failure, Init, PermissionDenial, SessionId, SteerId, Warning, WarningCode};
use teamster_types::request::{OutputMode, RunRequest};

type Actions = Vec<Action>;

/// The protocol of a run or a session, in one process.
pub(super) struct AppServer {
    caller: Caller<Call>,
    thread_request: ThreadRequest,
    prompts: PromptEncoder,
    is_session: bool,
    whole_messages: bool,
    servers: Health,
    thread_state: ThreadState,
    turn: Option<Turn>,
    pending: PendingRequests,
    usage: ThreadUsage,
    turn_end: TurnEnd,
    /// The limit of model calls of each turn.
    max_turns: Option<u64>,
    /// The model of the next turns.
    model: Option<String>,
    /// Instructions that are prepended to the session's first prompt.
    instructions: Option<String>,
    notices: Ids,
    /// The last delta that was read as JSON.
    last_delta: Option<DeltaShape>,
    /// The outcome of a run, after it was returned.
    ended: Option<Box<Outcome>>,
    /// Denials that the diagnostics reported after the outcome.
    late_denials: Vec<PermissionDenial>,
    /// Steering prompts that were sent and not yet confirmed.
    steering: Vec<SteerId>,
}

/// The purpose of a call of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Initialize,
    List,
    Read,
    Open,
    StartTurn,
    Interrupt,
    /// Sends more input within the turn: the caller's, if there is an id.
    Steer(Option<SteerId>),
    /// Kills the commands of an interrupted turn.
    CleanUp,
    /// Reads whether the turn has ended.
    ReadRecord(Record),
}

/// The state of the thread.
enum ThreadState {
    Opening,
    Open(Box<Thread>),
    /// It cannot be opened. Each turn ends with this outcome.
    Failed(Box<Outcome>),
}

struct Thread {
    id: String,
    init: Init,
}

impl AppServer {
    pub(super) fn new(
        request: &RunRequest,
        servers: Health,
        thread_request: ThreadRequest,
        prompt: Option<Value>,
    ) -> Self {
        Self {
            caller: Caller::new(Header::Bare),
            thread_request,
            prompts: PromptEncoder::new(request),
            is_session: prompt.is_none(),
            whole_messages: request.output == OutputMode::Messages,
            servers,
            thread_state: ThreadState::Opening,
            turn: prompt.map(|input| Turn::new(Stage::Waiting(input))),
            pending: PendingRequests::default(),
            usage: ThreadUsage::default(),
            turn_end: TurnEnd::default(),
            max_turns: request.max_turns.map(|turns| u64::from(turns.get())),
            model: None,
            instructions: prompt::instructions(request).map(str::to_owned),
            notices: Ids::default(),
            last_delta: None,
            ended: None,
            late_denials: Vec::new(),
            steering: Vec::new(),
        }
    }

    fn call(&mut self, purpose: Call, method: &str, params: &Value, actions: &mut Actions) {
        let line = self.caller.call(purpose, method, params);
        actions.push(Action::Process(ProcessAction::Write(line)));
    }

    fn started(&mut self, actions: &mut Actions) {
        let params = json!({
            "clientInfo": { "name": "teamster", "title": "Teamster", "version": env!("CARGO_PKG_VERSION") },
            // Needed for permission profiles, and to kill the commands of an interrupted turn.
            "capabilities": { "experimentalApi": true },
        });
        self.call(Call::Initialize, "initialize", &params, actions);
    }

    fn line(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        match rpc::read(text)? {
            Message::Answer { id, outcome } => match self.caller.answered(&id) {
                Some(purpose) => self.call_answered(purpose, outcome, actions),
                None => Ok(()),
            },
            Message::Request { id, method, params } => {
                self.server_request(id, &method, params.get(), actions);
                Ok(())
            }
            Message::Notification { method, params } => self.notification(text, &method, params, actions),
        }
    }

    fn call_answered(
        &mut self,
        purpose: Call,
        outcome: Result<&RawValue, RpcError>,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        if let Call::ReadRecord(record) = purpose {
            return self.record_read(record, outcome, actions);
        }
        actions.push(Action::Alive);
        match (purpose, outcome) {
            (Call::Initialize, Ok(_)) => {
                actions.push(Action::Process(ProcessAction::Write(self.caller.notify("initialized", None))));
                let first = self.thread_request.first();
                self.send_call(first, actions);
            }
            (Call::List, Ok(answer)) => {
                let newest = parse::<ListAnswer>(answer)?.data.into_iter().next().map(|thread| thread.id);
                let next = self.thread_request.after_list(newest);
                self.send_call(next, actions);
            }
            (Call::Read, answer) => {
                // If the thread cannot be read, the next call fails with the reason.
                let model = answer.ok().and_then(|answer| parse::<ReadAnswer>(answer).ok()?.thread.model);
                let next = self.thread_request.open(model);
                self.send_call(next, actions);
            }
            (Call::Open, Ok(answer)) => self.opened(parse(answer)?, actions),
            (Call::StartTurn, Ok(answer)) => self.turn_known(parse::<TurnLine>(answer)?.turn.id),
            (Call::Initialize | Call::List | Call::Open, Err(error)) => self.not_opened(&error.message, actions),
            (Call::StartTurn, Err(error)) => {
                let classification = failure::of_call(&error.message);
                self.end_turn(classification.into(), actions);
            }
            (Call::CleanUp, _) => self.cleaned_up(actions),
            (Call::Steer(id), answer) => self.steered(id.as_ref(), answer.is_ok(), actions),
            // If the turn has ended meanwhile, its own notification reports it.
            (Call::Interrupt | Call::ReadRecord(_), _) => {}
        }
        Ok(())
    }

    fn send_call(&mut self, next: ThreadCall, actions: &mut Actions) {
        match next {
            ThreadCall::List(params) => self.call(Call::List, "thread/list", &params, actions),
            ThreadCall::Read(params) => self.call(Call::Read, "thread/read", &params, actions),
            ThreadCall::Open(method, params) => self.call(Call::Open, method, &params, actions),
        }
    }

    fn opened(&mut self, answer: ThreadAnswer, actions: &mut Actions) {
        if let Some(problem) = problem(&self.thread_request.expected(), &answer.thread.id) {
            actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, problem.clone()).into()));
            let failure = Some(Failure::new(ErrorCode::Protocol, problem));
            return self.lose(Outcome { failure, ..Outcome::default() }, actions);
        }
        if self.thread_request.is_new() {
            self.usage.new_thread();
        }
        let mut init = Init::new("codex", answer.thread.id.as_str().into());
        init.model = answer.model.or(answer.thread.model).map(Into::into);
        init.agent_version = answer.thread.cli_version.map(Into::into);
        init.cwd = answer.cwd.map(Into::into);
        self.thread_state = ThreadState::Open(Box::new(Thread { id: answer.thread.id, init }));
        self.start_turn(actions);
    }

    /// Handles a failure to open the thread.
    fn not_opened(&mut self, message: &str, actions: &mut Actions) {
        let (_, failed) = message.split_once(failure::SERVERS_FAILED).unwrap_or_default();
        let mut server_failure = None;
        for (server, error) in failed.split("; ").filter_map(|server| server.split_once(": ")) {
            let failure = self.servers.failed(server, "failed", &format!("did not start: {error}"), actions);
            server_failure = server_failure.or(failure);
        }
        let outcome = Outcome::from(failure::of_call(message));
        // The failure of the server has the name that the caller gave.
        self.lose(Outcome { failure: server_failure.or(outcome.failure.clone()), ..outcome }, actions);
    }

    /// Ends the waiting turn, and all that follow, with this outcome.
    fn lose(&mut self, outcome: Outcome, actions: &mut Actions) {
        self.thread_state = ThreadState::Failed(Box::new(outcome.clone()));
        if self.turn.is_some() {
            self.end_turn(outcome, actions);
        }
    }

    fn session_id(&self) -> Option<SessionId> {
        match &self.thread_state {
            ThreadState::Open(thread) => Some(thread.init.session_id.clone()),
            _ => None,
        }
    }

    fn is_from_thread(&self, origin: &Origin<'_>) -> bool {
        origin.thread_id.as_ref().is_some_and(|id| self.is_of_thread(id))
    }

    fn is_of_thread(&self, id: &str) -> bool {
        matches!(&self.thread_state, ThreadState::Open(thread) if thread.id == id)
    }

    fn diagnostic(&mut self, line: &[u8]) {
        let denials = failure::denials(&String::from_utf8_lossy(line));
        match &mut self.turn {
            Some(turn) => turn.denied(denials),
            None if self.ended.is_some() => bounded::push_denials(&mut self.late_denials, denials),
            None => {}
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        if let Some(mut outcome) = self.ended.take() {
            if !self.late_denials.is_empty() {
                outcome.permission_denials.append(&mut self.late_denials);
                actions.push(Action::Outcome(outcome));
            }
            return;
        }
        let Some(turn) = &self.turn else { return };
        if let Stage::CleaningUp(_, outcome) = &turn.stage {
            return actions.push(Action::Outcome(outcome.clone()));
        }
        let last_error = || turn.error.as_deref().map(|error| failure::of_turn(error, None));
        if let Some(classification) = failure::of_exit(exit).or_else(last_error) {
            actions.push(Action::Outcome(Box::new(self.outcome_of(classification))));
        }
    }

    fn outcome_of(&self, classification: Classification) -> Outcome {
        Outcome { session_id: self.session_id(), ..classification.into() }
    }
}

impl Protocol for AppServer {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            Input::Started => self.started(actions),
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) if self.repeated_delta(bytes, actions) => {}
            Input::Line(bytes) => {
                if let Err(error) = line::with_json(bytes, |text| self.line(text, actions)) {
                    let message = format!("skipped a line that is not of the protocol ({error})");
                    let warning = Warning::new(WarningCode::MalformedLine, message);
                    actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
                }
                self.watch_turn_end(actions);
            }
            Input::Diagnostic(line) => self.diagnostic(line),
            Input::TimerElapsed => self.read_record(Record::LastTurn, actions),
            Input::Server(_) => {}
            Input::Interrupt => {
                self.interrupt(actions);
                self.watch_turn_end(actions);
            }
            Input::Command(command) => {
                self.command(command, actions);
                self.watch_turn_end(actions);
            }
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }

    fn supports_steering(&self) -> bool {
        self.is_session
    }

    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        Some(notices::visible_stderr(stderr))
    }
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> serde_json::Result<T> {
    serde_json::from_str(raw.get())
}

/// Returns what is wrong with the thread that answers.
fn problem(expected: &Expected, thread: &str) -> Option<String> {
    if thread.is_empty() { Some("the agent reports no thread id".to_owned()) } else { expected.problem(thread) }
}
