//! Recorded turns, and a server that plays them.

use std::fs;
use std::sync::LazyLock;

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, opencode::OpenCode};
use teamster_agents::protocol::{
    Action, Command, ExitReport, Input, Method, Outcome, ProcessAction, Protocol, ServerAction, ServerCall, ServerInput,
};
use teamster_agents::transcript::{End, Transcript};
use teamster_types::event::{Event, RunResult};
use teamster_types::request::{Answer, Conversation, PermissionMode, Prompt, RunRequest};

use super::LISTENS;
use crate::capture::folder;

const CONNECTED: &str = r#"{"type":"server.connected","properties":{}}"#;
const DIRECTORY: &str = "/home/dev/project";

/// A recorded turn: the session, and what happened in order.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) name: String,
    pub(super) session: Value,
    pub(super) happened: Vec<Value>,
}

pub(super) static TURNS: LazyLock<Vec<Turn>> = LazyLock::new(|| {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let session = lines.next().unwrap()["session"].clone();
        Turn { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), session, happened: lines.collect() }
    };
    let mut turns: Vec<_> = fs::read_dir(folder("opencode-serve")).unwrap().map(read).collect();
    turns.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(turns.len() >= 27, "only {} turns were found", turns.len());
    turns
});

pub(super) fn turn(name: &str) -> Turn {
    TURNS.iter().find(|turn| turn.name == name).unwrap().clone()
}

/// What a turn was asked for.
pub(super) fn request(turn: &Turn) -> RunRequest {
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

pub(super) fn answer(turn: &Turn) -> Answer {
    match turn.name.as_str() {
        "perm_reject" | "question_reject" => Answer::Deny { message: None },
        "perm_reject_message" => Answer::Deny { message: Some("Not today.".to_owned()) },
        "usage_children" => Answer::AllowAlways,
        "question_reply" => Answer::Choose([("Which color?".to_owned(), vec!["Red".to_owned()])].into()),
        _ => Answer::Allow { input: None },
    }
}

/// Plays the server, and takes what the protocol says.
pub(super) struct Player {
    protocol: Box<dyn Protocol>,
    pub(super) transcript: Transcript,
    pub(super) session: Value,
    answer: Answer,
    pub(super) events: Vec<Event>,
    /// All that it did, for people to read.
    pub(super) told: Vec<String>,
    pub(super) calls: Vec<ServerCall>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) stopped: bool,
    /// The server takes no prompt.
    pub(super) refuses: bool,
    /// It replies to nothing.
    pub(super) silent: bool,
}

impl Player {
    pub(super) fn of(protocol: Box<dyn Protocol>, session: &Value, answer: Answer) -> Self {
        let (session, transcript) = (session.clone(), Transcript::new());
        let (events, told, calls, outcomes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (stopped, refuses, silent) = (false, false, false);
        Self { protocol, transcript, session, answer, events, told, calls, outcomes, stopped, refuses, silent }
    }

    /// A session on which the recorded turn can be taken.
    pub(super) fn session(turn: &Turn) -> Self {
        let plan = OpenCode.plan_session(&request(turn)).unwrap().unwrap();
        let mut player = Self::of(plan.protocol, &turn.session, answer(turn));
        player.tell(Input::Started);
        player.tell(Input::Line(LISTENS));
        player
    }

    pub(super) fn run(turn: &Turn) -> Self {
        let mut request = request(turn);
        request.prompt = "recorded".to_owned();
        let plan = OpenCode.plan(&request).unwrap();
        let mut player = Self::of(plan.protocol, &turn.session, answer(turn));
        player.tell(Input::Started);
        player.tell(Input::Line(LISTENS));
        player
    }

    pub(super) fn send(&mut self, text: &str) {
        self.tell(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from(text) }));
    }

    pub(super) fn event(&mut self, event: &Value) {
        self.tell(Input::Server(ServerInput::Event(event.to_string().as_bytes())));
    }

    pub(super) fn happened(&mut self, happened: &[Value]) {
        for what in happened {
            if what.get("interrupt").is_some() {
                self.tell(Input::Interrupt);
            } else {
                self.event(&what["event"]);
            }
        }
    }

    pub(super) fn tell(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        let (mut requests, mut replies, mut listens) = (Vec::new(), Vec::new(), false);
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
                    self.told.extend(new);
                }
                Action::Server(ServerAction::Call(call)) => {
                    let body = call.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                    self.told.push(format!("> {} {} {body}", call.method.as_str(), call.path));
                    if !self.silent {
                        replies.push((call.id, self.reply(&call)));
                    }
                    self.calls.push(call);
                }
                Action::Server(ServerAction::Subscribe { path }) => {
                    self.told.push(format!("> listen {path}"));
                    listens = true;
                }
                Action::Outcome(outcome) => {
                    self.told.push(format!(
                        "= failure {:?}, interrupted {}",
                        outcome.failure.as_ref().map(|failure| &failure.code),
                        outcome.interrupted
                    ));
                    self.transcript.set_outcome((*outcome).clone());
                    self.outcomes.push(*outcome);
                }
                Action::Process(ProcessAction::Shutdown) => self.stopped = true,
                Action::Alive => {}
                Action::Process(action) => self.told.push(format!("= {action:?}")),
                Action::Server(action) => self.told.push(format!("= {action:?}")),
                Action::Session(action) => self.told.push(format!("= {action:?}")),
            }
        }
        for (call, (status, body)) in replies {
            self.tell(Input::Server(ServerInput::Reply { call, status, body: body.to_string().as_bytes() }));
        }
        if listens {
            self.tell(Input::Server(ServerInput::Event(CONNECTED.as_bytes())));
        }
        for request in requests {
            let answer = self.answer.clone();
            self.tell(Input::Command(Command::Answer { request: &request, answer: &answer }));
        }
    }

    /// Whether the server may work on the last prompt, though it has died.
    pub(super) fn may_have_consumed_prompt(&self) -> bool {
        self.protocol.may_have_consumed_prompt(true)
    }

    fn reply(&self, call: &ServerCall) -> (u16, Value) {
        match (call.method, call.path.as_str()) {
            (Method::Get, "/path") => (200, json!({"directory": DIRECTORY})),
            (Method::Get, "/mcp") => (200, json!({})),
            (Method::Get, path) => (200, json!({"id": path.rsplit('/').next(), "directory": DIRECTORY})),
            (Method::Post, _) if self.refuses => (500, json!({})),
            (Method::Post, path) if path.ends_with("prompt_async") => (204, Value::Null),
            (Method::Post, path) if path == "/session" || path.ends_with("/fork") => (200, self.session.clone()),
            (Method::Post, _) => (200, json!(true)),
        }
    }

    pub(super) fn end(&mut self) -> RunResult {
        let exit = ExitReport { signal: Some("SIGTERM"), ..ExitReport::default() };
        let from = self.events.len();
        self.transcript.end(&End { exit: Some(exit), ..End::default() }, &mut self.events);
        self.told.extend(self.events[from..].iter().map(|event| serde_json::to_string(event).unwrap()));
        let Some(Event::Done(done)) = self.events.last() else { panic!("no done") };
        done.result.clone()
    }
}
