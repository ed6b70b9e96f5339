//! The state machine over the lines of `codex app-server`: a thread is opened, and turns are taken on it.
//!
//! Invariants: no turn is started on a thread that is not the one asked for; every turn gets one outcome; what belongs to
//! another turn or thread is not told; every request of the app-server is answered.

mod dialog;
mod notifications;
mod turns;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::thread::Expected;
use super::super::{failure, notices};
use super::Speech;
use super::approvals::Dialog;
use super::opening::{Opening, Step};
use super::tally::Tally;
use super::turn::{Stage, Turn};
use super::wire::{ListAnswer, Origin, ReadAnswer, ThreadAnswer, TurnLine};
use crate::agent::codex::prompt;
use crate::agent::failure::Classification;
use crate::agent::line;
use crate::agent::mcp::Health;
use crate::agent::rpc::{self, Caller, Header, Message, RpcError};
use crate::bounded::{self, Ids};
use crate::protocol::{Action, ExitReport, Input, Outcome, Protocol};
use teamster_types::event::{ErrorCode, Failure, Init, PermissionDenial, SessionId, SteerId, Warning, WarningCode};
use teamster_types::request::{OutputMode, RunRequest};

type Actions = Vec<Action>;

/// A run or a session on one process.
pub(super) struct AppServer {
    caller: Caller<Call>,
    opening: Opening,
    speech: Speech,
    is_session: bool,
    whole_messages: bool,
    servers: Health,
    link: Link,
    turn: Option<Turn>,
    dialog: Dialog,
    tally: Tally,
    /// The model from the next turn on.
    model: Option<String>,
    /// Instructions that are prepended to the session's first prompt.
    instructions: Option<String>,
    notices: Ids,
    /// The run's outcome, when it has been given.
    ended: Option<Box<Outcome>>,
    /// Refusals that came beside the protocol, after the outcome.
    late_denials: Vec<PermissionDenial>,
    /// What was said within the turn, and is not known to be heard.
    steering: Vec<SteerId>,
}

/// What a call of ours is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Initialize,
    List,
    Read,
    Open,
    StartTurn,
    Interrupt,
    /// The model is told more in its turn: by the caller, if there is an id.
    Steer(Option<SteerId>),
    /// The commands of an interrupted turn are to end.
    Clear,
}

/// Whether there is a thread.
enum Link {
    Opening,
    Open(Thread),
    /// There will be none: each turn ends like this.
    Lost(Box<Outcome>),
}

struct Thread {
    id: String,
    init: Init,
}

impl AppServer {
    pub(super) fn new(request: &RunRequest, servers: Health, opening: Opening, prompt: Option<Value>) -> Self {
        Self {
            caller: Caller::new(Header::Bare),
            opening,
            speech: Speech::of(request),
            is_session: prompt.is_none(),
            whole_messages: request.output == OutputMode::Messages,
            servers,
            link: Link::Opening,
            turn: prompt.map(|input| Turn::new(Stage::Waiting(input))),
            dialog: Dialog::default(),
            tally: Tally::default(),
            model: None,
            instructions: prompt::instructions(request).map(str::to_owned),
            notices: Ids::default(),
            ended: None,
            late_denials: Vec::new(),
            steering: Vec::new(),
        }
    }

    fn call(&mut self, purpose: Call, method: &str, params: &Value, actions: &mut Actions) {
        let line = self.caller.call(purpose, method, params);
        actions.push(Action::Write(line));
    }

    fn started(&mut self, actions: &mut Actions) {
        let params = json!({
            "clientInfo": { "name": "teamster", "title": "Teamster", "version": env!("CARGO_PKG_VERSION") },
            // For profiles of permissions, and to end the commands of a turn that is interrupted.
            "capabilities": { "experimentalApi": true },
        });
        self.call(Call::Initialize, "initialize", &params, actions);
    }

    fn line(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        match rpc::read(text)? {
            Message::Answer { id, outcome } => match self.caller.answered(&id) {
                Some(purpose) => self.answered(purpose, outcome, actions),
                None => Ok(()),
            },
            Message::Request { id, method, params } => {
                self.asked(id, &method, params.get(), actions);
                Ok(())
            }
            Message::Notification { method, params } => self.notified(&method, params, actions),
        }
    }

    fn answered(
        &mut self,
        purpose: Call,
        outcome: Result<&RawValue, RpcError>,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        actions.push(Action::Alive);
        match (purpose, outcome) {
            (Call::Initialize, Ok(_)) => {
                actions.push(Action::Write(self.caller.notify("initialized", None)));
                let first = self.opening.first();
                self.step(first, actions);
            }
            (Call::List, Ok(answer)) => {
                let newest = parse::<ListAnswer>(answer)?.data.into_iter().next().map(|thread| thread.id);
                let next = self.opening.found(newest);
                self.step(next, actions);
            }
            (Call::Read, answer) => {
                // If it cannot be read, the next call says why.
                let model = answer.ok().and_then(|answer| parse::<ReadAnswer>(answer).ok()?.thread.model);
                let next = self.opening.open(model);
                self.step(next, actions);
            }
            (Call::Open, Ok(answer)) => self.opened(parse(answer)?, actions),
            (Call::StartTurn, Ok(answer)) => self.turn_known(parse::<TurnLine>(answer)?.turn.id),
            (Call::Initialize | Call::List | Call::Open, Err(error)) => self.not_opened(&error.message, actions),
            (Call::StartTurn, Err(error)) => {
                let judgement = failure::of_call(&error.message);
                self.end_turn(judgement.into(), actions);
            }
            (Call::Clear, _) => self.cleared(actions),
            (Call::Steer(id), answer) => self.steered(id.as_ref(), answer.is_ok(), actions),
            // A turn that has ended meanwhile says so itself.
            (Call::Interrupt, _) => {}
        }
        Ok(())
    }

    fn step(&mut self, step: Step, actions: &mut Actions) {
        match step {
            Step::List(params) => self.call(Call::List, "thread/list", &params, actions),
            Step::Read(params) => self.call(Call::Read, "thread/read", &params, actions),
            Step::Open(method, params) => self.call(Call::Open, method, &params, actions),
        }
    }

    fn opened(&mut self, answer: ThreadAnswer, actions: &mut Actions) {
        if let Some(problem) = problem(&self.opening.expected(), &answer.thread.id) {
            actions.push(Action::Emit(Warning::new(WarningCode::SessionMismatch, problem.clone()).into()));
            let failure = Some(Failure::new(ErrorCode::Protocol, problem));
            return self.lose(Outcome { failure, ..Outcome::default() }, actions);
        }
        if self.opening.is_new() {
            self.tally.new_thread();
        }
        let mut init = Init::new("codex", answer.thread.id.as_str().into());
        init.model = answer.model.or(answer.thread.model).map(Into::into);
        init.agent_version = answer.thread.cli_version.map(Into::into);
        init.cwd = answer.cwd.map(Into::into);
        self.link = Link::Open(Thread { id: answer.thread.id, init });
        self.begin(actions);
    }

    /// There will be no thread.
    fn not_opened(&mut self, message: &str, actions: &mut Actions) {
        let (_, lacking) = message.split_once(failure::SERVERS_FAILED).unwrap_or_default();
        let mut lacks = None;
        for (server, error) in lacking.split("; ").filter_map(|server| server.split_once(": ")) {
            let failure = self.servers.failed(server, "failed", &format!("did not start: {error}"), actions);
            lacks = lacks.or(failure);
        }
        let told = Outcome::from(failure::of_call(message));
        // By the name that the request gave.
        self.lose(Outcome { failure: lacks.or(told.failure.clone()), ..told }, actions);
    }

    /// The turn that waits ends, and all that follow.
    fn lose(&mut self, outcome: Outcome, actions: &mut Actions) {
        self.link = Link::Lost(Box::new(outcome.clone()));
        if self.turn.is_some() {
            self.end_turn(outcome, actions);
        }
    }

    fn session_id(&self) -> Option<SessionId> {
        match &self.link {
            Link::Open(thread) => Some(thread.init.session_id.clone()),
            _ => None,
        }
    }

    fn is_of_thread(&self, origin: &Origin<'_>) -> bool {
        match (&self.link, &origin.thread_id) {
            (Link::Open(thread), Some(id)) => thread.id == **id,
            _ => false,
        }
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
        if let Stage::Clearing(_, outcome) = &turn.stage {
            return actions.push(Action::Outcome(outcome.clone()));
        }
        let said = || turn.error.as_deref().map(|error| failure::of_turn(error, None));
        if let Some(judgement) = failure::of_exit(exit).or_else(said) {
            actions.push(Action::Outcome(Box::new(self.judged(judgement))));
        }
    }

    fn judged(&self, judgement: Classification) -> Outcome {
        Outcome { session_id: self.session_id(), ..judgement.into() }
    }
}

impl Protocol for AppServer {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            Input::Started => self.started(actions),
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => {
                if let Err(error) = line::with_json(bytes, |text| self.line(text, actions)) {
                    let message = format!("skipped a line that is not of the protocol ({error})");
                    let warning = Warning::new(WarningCode::MalformedLine, message);
                    actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
                }
            }
            Input::Diagnostic(line) => self.diagnostic(line),
            Input::Server(_) => {}
            Input::Interrupt => self.interrupt(actions),
            Input::Command(command) => self.command(command, actions),
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }

    fn supports_steering(&self) -> bool {
        self.is_session
    }

    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        Some(notices::shown(stderr))
    }
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> serde_json::Result<T> {
    serde_json::from_str(raw.get())
}

/// What is wrong with a thread that answers.
fn problem(expected: &Expected, thread: &str) -> Option<String> {
    if thread.is_empty() { Some("the agent names no thread".to_owned()) } else { expected.problem(thread) }
}
