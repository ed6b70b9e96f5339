//! Recorded turns, and a test harness that replays them to the protocol and acts as the server.

use std::fs;
use std::sync::LazyLock;

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, opencode::OpenCode};
use teamster_agents::protocol::{
    Action, Command, ExitReport, Input, Method, Outcome, ProcessAction, Protocol, ServerAction, ServerCall,
    ServerInput, SessionAction,
};
use teamster_agents::transcript::{End, Transcript};
use teamster_types::event::{Event, RunResult};
use teamster_types::request::{Answer, Conversation, PermissionMode, Prompt, RunRequest};

use super::ADDRESS_LINE;
use crate::capture::folder;

const CONNECTED: &str = r#"{"type":"server.connected","properties":{}}"#;
const DIRECTORY: &str = "/home/dev/project";

/// A recorded turn: its session, and its inputs in order.
#[derive(Clone)]
pub(super) struct RecordedTurn {
    pub(super) name: String,
    pub(super) session: Value,
    pub(super) inputs: Vec<Value>,
}

/// All recorded turns, by name.
pub(super) static TURNS: LazyLock<Vec<RecordedTurn>> = LazyLock::new(|| {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let session = lines.next().unwrap()["session"].clone();
        RecordedTurn { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), session, inputs: lines.collect() }
    };
    let mut turns: Vec<_> = fs::read_dir(folder("opencode-serve")).unwrap().map(read).collect();
    turns.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(turns.len() >= 27, "found only {} turns", turns.len());
    turns
});

/// Returns the recorded turn with this name.
pub(super) fn turn(name: &str) -> RecordedTurn {
    TURNS.iter().find(|turn| turn.name == name).unwrap().clone()
}

/// Returns the request of a recorded turn.
pub(super) fn request(turn: &RecordedTurn) -> RunRequest {
    let mut request = RunRequest::default();
    request.permissions.mode = PermissionMode::Ask;
    if turn.name.starts_with("structured") {
        request.schema = Some(json!({"type": "object"}));
    }
    if turn.name == "fork" {
        request.conversation = Conversation::Fork("ses_base".into());
    }
    request
}

/// Returns the answer to all requests of a recorded turn.
pub(super) fn answer(turn: &RecordedTurn) -> Answer {
    match turn.name.as_str() {
        "perm_reject" | "question_reject" => Answer::Deny { message: None },
        "perm_reject_message" => Answer::Deny { message: Some("Not today.".to_owned()) },
        "usage_children" => Answer::AllowAlways,
        "question_reply" => Answer::Choose([("Which color?".to_owned(), vec!["Red".to_owned()])].into()),
        _ => Answer::Allow { input: None },
    }
}

/// Drives a protocol: acts as the server and the caller, and collects the protocol's actions.
pub(super) struct Harness {
    protocol: Box<dyn Protocol>,
    pub(super) transcript: Transcript,
    pub(super) session: Value,
    answer: Answer,
    pub(super) events: Vec<Event>,
    /// All actions, as text for snapshots.
    pub(super) log: Vec<String>,
    pub(super) calls: Vec<ServerCall>,
    /// The steering prompts that were reported, and whether the agent accepted them.
    pub(super) steered: Vec<(String, bool)>,
    pub(super) outcomes: Vec<Outcome>,
    /// Whether the protocol requested a shutdown.
    pub(super) stopped: bool,
    /// Whether the server rejects prompts.
    pub(super) rejects: bool,
    /// Whether the server sends no replies.
    pub(super) is_silent: bool,
}

impl Harness {
    /// Returns a harness for a protocol that has had no input.
    pub(super) fn of(protocol: Box<dyn Protocol>, session: &Value, answer: Answer) -> Self {
        let (session, transcript) = (session.clone(), Transcript::new());
        let (events, log, calls, outcomes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (stopped, rejects, is_silent, steered) = (false, false, false, Vec::new());
        Self {
            protocol,
            transcript,
            session,
            answer,
            events,
            log,
            calls,
            steered,
            outcomes,
            stopped,
            rejects,
            is_silent,
        }
    }

    /// Returns a session that can replay this turn.
    pub(super) fn session(turn: &RecordedTurn) -> Self {
        let plan = OpenCode.plan_session(&request(turn)).unwrap().unwrap();
        let mut harness = Self::of(plan.protocol, &turn.session, answer(turn));
        harness.handle(Input::Started);
        harness.handle(Input::Line(ADDRESS_LINE));
        harness
    }

    /// Returns a run that can replay this turn.
    pub(super) fn run(turn: &RecordedTurn) -> Self {
        let mut request = request(turn);
        request.prompt = "recorded".to_owned();
        let plan = OpenCode.plan(&request).unwrap();
        let mut harness = Self::of(plan.protocol, &turn.session, answer(turn));
        harness.handle(Input::Started);
        harness.handle(Input::Line(ADDRESS_LINE));
        harness
    }

    /// Sends a prompt of the caller.
    pub(super) fn send(&mut self, text: &str) {
        self.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from(text) }));
    }

    /// Sends an event of the server.
    pub(super) fn event(&mut self, event: &Value) {
        self.handle(Input::Server(ServerInput::Event(event.to_string().as_bytes())));
    }

    /// Replays recorded inputs.
    pub(super) fn replay(&mut self, inputs: &[Value]) {
        for input in inputs {
            if input.get("interrupt").is_some() {
                self.handle(Input::Interrupt);
            } else {
                self.event(&input["event"]);
            }
        }
    }

    /// Passes an input to the protocol. Performs its actions, which may cause further inputs.
    pub(super) fn handle(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        let (mut requests, mut replies, mut subscribes) = (Vec::new(), Vec::new(), false);
        for action in actions {
            match action {
                Action::Emit(event) => {
                    match &event {
                        Event::PermissionRequest(request) => requests.push(request.request_id.clone()),
                        Event::Question(question) => requests.push(question.request_id.clone()),
                        _ => {}
                    }
                    let from = self.events.len();
                    self.transcript.push(event, &mut self.events);
                    let new = self.events[from..].iter().map(|event| serde_json::to_string(event).unwrap());
                    self.log.extend(new);
                }
                Action::Server(ServerAction::Call(call)) => {
                    let body = call.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                    self.log.push(format!("> {} {} {body}", call.method.as_str(), call.path));
                    if !self.is_silent {
                        replies.push((call.id, self.reply(&call)));
                    }
                    self.calls.push(call);
                }
                Action::Server(ServerAction::Subscribe { path }) => {
                    self.log.push(format!("> subscribe {path}"));
                    subscribes = true;
                }
                Action::Outcome(outcome) => {
                    self.log.push(format!(
                        "= failure {:?}, interrupted {}",
                        outcome.failure.as_ref().map(|failure| &failure.code),
                        outcome.interrupted
                    ));
                    self.transcript.set_outcome((*outcome).clone());
                    self.outcomes.push(*outcome);
                }
                Action::Process(ProcessAction::Shutdown) => self.stopped = true,
                Action::Alive | Action::SetTimer(_) | Action::ClearTimer => {}
                Action::Process(action) => self.log.push(format!("= {action:?}")),
                Action::Server(action) => self.log.push(format!("= {action:?}")),
                Action::Session(action) => {
                    self.log.push(format!("= {action:?}"));
                    if let SessionAction::Steered { id, accepted } = action {
                        self.steered.push((id.as_str().to_owned(), accepted));
                    }
                }
            }
        }
        for (call, (status, body)) in replies {
            self.handle(Input::Server(ServerInput::Reply { call, status, body: body.to_string().as_bytes() }));
        }
        if subscribes {
            self.handle(Input::Server(ServerInput::Event(CONNECTED.as_bytes())));
        }
        for request in requests {
            let answer = self.answer.clone();
            self.handle(Input::Command(Command::Answer { request: &request, answer: &answer }));
        }
    }

    /// Returns whether the agent may have consumed the last prompt, if its process has died.
    pub(super) fn may_have_consumed_prompt(&self) -> bool {
        self.protocol.may_have_consumed_prompt(true)
    }

    fn reply(&self, call: &ServerCall) -> (u16, Value) {
        match (call.method, call.path.as_str()) {
            (Method::Get, "/path") => (200, json!({"directory": DIRECTORY})),
            (Method::Get, "/mcp") => (200, json!({})),
            (Method::Get, path) => (200, json!({"id": path.rsplit('/').next(), "directory": DIRECTORY})),
            (Method::Post, _) if self.rejects => (500, json!({})),
            (Method::Post, path) if path.ends_with("prompt_async") => (204, Value::Null),
            (Method::Post, path) if path == "/session" || path.ends_with("/fork") => (200, self.session.clone()),
            (Method::Post, _) => (200, json!(true)),
        }
    }

    /// Ends the transcript after the exit of the server, and returns the result.
    pub(super) fn end(&mut self) -> RunResult {
        // The driver does not report the signal with which it shuts a server down.
        let signal = Some("SIGTERM").filter(|_| !self.stopped);
        let exit = ExitReport { signal, ..ExitReport::default() };
        let from = self.events.len();
        self.transcript.end(&End { exit: Some(exit), ..End::default() }, &mut self.events);
        self.log.extend(self.events[from..].iter().map(|event| serde_json::to_string(event).unwrap()));
        let Some(Event::Done(done)) = self.events.last() else { panic!("no done") };
        done.result.clone()
    }
}
