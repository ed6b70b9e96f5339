//! Drives the protocol of a session like the driver does.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, codex::Codex};
use teamster_agents::protocol::{Action, Command, Input, ProcessAction, Protocol, SessionAction};
use teamster_agents::transcript::{End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::{Event, RequestId, RunResult, SteerId, WarningCode};
use teamster_types::request::{Answer, PermissionMode, Prompt, RunRequest};

use super::THREAD;

/// A session without a process: it passes input to the protocol and stores the actions.
pub(super) struct TestSession {
    protocol: Box<dyn Protocol>,
    pub(super) transcript: Transcript,
    /// The events of the last turn.
    pub(super) events: Vec<Event>,
    /// Everything that was written, line by line.
    pub(super) written: Vec<Value>,
    pub(super) in_turn: bool,
    pub(super) closed: bool,
    pub(super) restarts: bool,
    pub(super) withdrawn: Vec<RequestId>,
    pub(super) steered: Vec<(SteerId, bool)>,
    /// The protocol's timer.
    pub(super) timer: Option<Duration>,
}

impl TestSession {
    pub(super) fn session(request: &RunRequest) -> Self {
        Self::start(Codex.plan_session(request).unwrap().unwrap().protocol, false)
    }

    pub(super) fn run(request: &RunRequest) -> Self {
        Self::start(Codex.plan(request).unwrap().protocol, true)
    }

    pub(super) fn start(protocol: Box<dyn Protocol>, in_turn: bool) -> Self {
        let mut session = Self {
            protocol,
            transcript: Transcript::new(),
            events: Vec::new(),
            written: Vec::new(),
            in_turn,
            closed: false,
            restarts: false,
            withdrawn: Vec::new(),
            steered: Vec::new(),
            timer: None,
        };
        session.handle(Input::Started);
        session
    }

    /// Returns a session whose thread is open and whose first turn runs.
    pub(super) fn running(request: &RunRequest) -> Self {
        let mut session = Self::session(request);
        session.open(THREAD);
        session.send("Go.");
        session.turn_starts("turn-1");
        session
    }

    pub(super) fn open(&mut self, thread: &str) {
        self.reply("initialize", &json!({"userAgent": "x"}));
        let method =
            ["thread/start", "thread/resume", "thread/fork"].into_iter().find(|name| self.wrote(name).is_some());
        self.reply(method.unwrap(), &json!({"thread": {"id": thread, "cliVersion": "0.169.0"}, "model": "m"}));
    }

    pub(super) fn turn_starts(&mut self, turn: &str) {
        self.reply("turn/start", &json!({"turn": {"id": turn, "status": "inProgress"}}));
        self.notify("turn/started", json!({"turn": {"id": turn, "status": "inProgress"}}));
    }

    pub(super) fn turn_ends(&mut self, turn: &str, status: &str) {
        self.notify("turn/completed", json!({"turn": {"id": turn, "status": status, "error": null}}));
    }

    pub(super) fn send(&mut self, text: &str) {
        (self.transcript, self.events, self.in_turn) = (Transcript::new(), Vec::new(), true);
        self.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from(text) }));
    }

    /// Sends a notification, by default of the session's thread.
    pub(super) fn notify(&mut self, method: &str, mut params: Value) {
        params.as_object_mut().unwrap().entry("threadId").or_insert(THREAD.into());
        self.line(&json!({"method": method, "params": params}));
    }

    pub(super) fn item(&mut self, event: &str, item: &Value) {
        self.notify(event, json!({"turnId": "turn-1", "item": item}));
    }

    /// Sends a request of the app-server.
    pub(super) fn request_from_server(&mut self, id: u64, method: &str, mut params: Value) {
        let fields = params.as_object_mut().unwrap();
        fields.extend([("threadId".to_owned(), THREAD.into()), ("turnId".to_owned(), "turn-1".into())]);
        self.line(&json!({"id": id, "method": method, "params": params}));
    }

    pub(super) fn line(&mut self, line: &Value) {
        self.handle(Input::Line(line.to_string().as_bytes()));
    }

    /// Sends the response to the last call of this method.
    pub(super) fn reply(&mut self, method: &str, result: &Value) {
        let id = self.wrote(method).unwrap()["id"].clone();
        self.line(&json!({"id": id, "result": result}));
    }

    pub(super) fn refuse(&mut self, method: &str, message: &str) {
        let id = self.wrote(method).unwrap()["id"].clone();
        self.line(&json!({"id": id, "error": {"code": -32600, "message": message}}));
    }

    /// Lets the timer elapse.
    pub(super) fn elapse(&mut self) {
        assert!(self.timer.take().is_some(), "the timer is not set");
        self.handle(Input::TimerElapsed);
    }

    /// Returns the last call or notification with this method.
    pub(super) fn wrote(&self, method: &str) -> Option<&Value> {
        self.written.iter().rfind(|line| line["method"] == method)
    }

    /// Returns the response to a request of the app-server.
    pub(super) fn answered(&self, id: u64) -> Option<&Value> {
        self.written.iter().find(|line| line["id"] == id && line.get("method").is_none())
    }

    pub(super) fn answer(&mut self, request: &RequestId, answer: &Answer) {
        self.handle(Input::Command(Command::Answer { request, answer }));
    }

    pub(super) fn handle(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => self.transcript.push(event, &mut self.events),
                Action::Process(ProcessAction::Write(bytes)) => {
                    let lines = bytes.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n');
                    self.written.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                }
                Action::Outcome(outcome) if self.in_turn => {
                    self.transcript.set_outcome(*outcome);
                    self.transcript.end(&End::default(), &mut self.events);
                    self.in_turn = false;
                    assert_eq!(check(&self.events), Ok(()), "{:#?}", self.events);
                }
                Action::Process(ProcessAction::CloseStdin) => self.closed = true,
                Action::Session(SessionAction::RestartProcess) => self.restarts = true,
                Action::Session(SessionAction::Withdraw(request)) => self.withdrawn.push(request),
                Action::Session(SessionAction::Steered { id, accepted }) => self.steered.push((id, accepted)),
                Action::SetTimer(after) => self.timer = Some(after),
                Action::ClearTimer => self.timer = None,
                _ => {}
            }
        }
    }

    pub(super) fn result(&self) -> &RunResult {
        match self.events.last() {
            Some(Event::Done(done)) => &done.result,
            other => panic!("{other:?} is not `done`"),
        }
    }

    /// Returns the id of the last request that was emitted.
    pub(super) fn request(&self) -> RequestId {
        let request = self.events.iter().rev().find_map(|event| match event {
            Event::PermissionRequest(request) => Some(request.request_id.clone()),
            Event::Question(question) => Some(question.request_id.clone()),
            _ => None,
        });
        request.unwrap()
    }

    pub(super) fn warned(&self, code: &WarningCode) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Warning(warning) if warning.code == *code)).count()
    }
}

/// Returns the options of a session.
pub(super) fn session_request() -> RunRequest {
    RunRequest::default()
}

/// Returns the request of a run with this permission mode.
pub(super) fn mode(mode: PermissionMode) -> RunRequest {
    let mut request = RunRequest::new("x");
    request.permissions.mode = mode;
    request
}
