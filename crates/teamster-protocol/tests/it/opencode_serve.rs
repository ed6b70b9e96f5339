//! OpenCode by its own server: recorded turns once more, and what they do not show.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use teamster_protocol::agent::{Agent, FailureRow, opencode::OpenCode};
use teamster_protocol::event::{ErrorCode, Event, RequestId, RunResult, WarningCode};
use teamster_protocol::protocol::{
    Action, CallId, Command, ExitReport, FromServer, Input, Method, Outcome, Protocol, ServerCall,
};
use teamster_protocol::request::{Answer, Attachment, Conversation, PermissionMode, Prompt, RunRequest};
use teamster_protocol::transcript::{End, Transcript};
use teamster_testkit::check::check;

use crate::capture::folder;

const LISTENS: &[u8] = b"opencode server listening on http://127.0.0.1:4096";
const CONNECTED: &str = r#"{"type":"server.connected","properties":{}}"#;
const DIRECTORY: &str = "/home/dev/project";

/// A recorded turn: the session, and what happened in order.
#[derive(Clone)]
struct Turn {
    name: String,
    session: Value,
    happened: Vec<Value>,
}

static TURNS: LazyLock<Vec<Turn>> = LazyLock::new(|| {
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

fn turn(name: &str) -> Turn {
    TURNS.iter().find(|turn| turn.name == name).unwrap().clone()
}

/// What a turn was asked for.
fn request(turn: &Turn) -> RunRequest {
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

fn answer(turn: &Turn) -> Answer {
    match turn.name.as_str() {
        "perm_reject" | "question_reject" => Answer::Deny { message: None },
        "perm_reject_message" => Answer::Deny { message: Some("Not today.".to_owned()) },
        "usage_children" => Answer::AllowAlways,
        "question_reply" => Answer::Choose([("Which color?".to_owned(), vec!["Red".to_owned()])].into()),
        _ => Answer::Allow { input: None },
    }
}

/// Plays the server, and takes what the protocol says.
struct Player {
    protocol: Box<dyn Protocol>,
    transcript: Transcript,
    session: Value,
    answer: Answer,
    events: Vec<Event>,
    /// All that it did, for people to read.
    told: Vec<String>,
    calls: Vec<ServerCall>,
    outcomes: Vec<Outcome>,
    stopped: bool,
}

impl Player {
    fn of(protocol: Box<dyn Protocol>, session: &Value, answer: Answer) -> Self {
        let (session, transcript) = (session.clone(), Transcript::new());
        let (events, told, calls, outcomes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { protocol, transcript, session, answer, events, told, calls, outcomes, stopped: false }
    }

    /// A session on which the recorded turn can be taken.
    fn session(turn: &Turn) -> Self {
        let plan = OpenCode.plan_session(&request(turn)).unwrap().unwrap();
        let mut player = Self::of(plan.protocol, &turn.session, answer(turn));
        player.tell(Input::Started);
        player.tell(Input::Line(LISTENS));
        player
    }

    fn run(turn: &Turn) -> Self {
        let mut request = request(turn);
        request.prompt = "recorded".to_owned();
        let plan = OpenCode.plan(&request).unwrap();
        let mut player = Self::of(plan.protocol, &turn.session, answer(turn));
        player.tell(Input::Started);
        player.tell(Input::Line(LISTENS));
        player
    }

    fn send(&mut self, text: &str) {
        self.tell(Input::Command(Command::Send(&Prompt::from(text))));
    }

    fn event(&mut self, event: &Value) {
        self.tell(Input::Server(FromServer::Event(event.to_string().as_bytes())));
    }

    fn happened(&mut self, happened: &[Value]) {
        for what in happened {
            if what.get("interrupt").is_some() {
                self.tell(Input::Interrupt);
            } else {
                self.event(&what["event"]);
            }
        }
    }

    fn tell(&mut self, input: Input<'_>) {
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
                Action::Call(call) => {
                    let body = call.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                    self.told.push(format!("> {} {} {body}", call.method.as_str(), call.path));
                    replies.push((call.id, self.reply(&call)));
                    self.calls.push(call);
                }
                Action::Listen { path } => {
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
                Action::Stop => self.stopped = true,
                Action::Alive => {}
                other => self.told.push(format!("= {other:?}")),
            }
        }
        for (call, (status, body)) in replies {
            self.tell(Input::Server(FromServer::Reply { call, status, body: body.to_string().as_bytes() }));
        }
        if listens {
            self.tell(Input::Server(FromServer::Event(CONNECTED.as_bytes())));
        }
        for request in requests {
            let answer = self.answer.clone();
            self.tell(Input::Command(Command::Answer { request: &request, answer: &answer }));
        }
    }

    fn reply(&self, call: &ServerCall) -> (u16, Value) {
        match (call.method, call.path.as_str()) {
            (Method::Get, "/path") => (200, json!({"directory": DIRECTORY})),
            (Method::Get, "/mcp") => (200, json!({})),
            (Method::Get, path) => (200, json!({"id": path.rsplit('/').next(), "directory": DIRECTORY})),
            (Method::Post, path) if path.ends_with("prompt_async") => (204, Value::Null),
            (Method::Post, path) if path == "/session" || path.ends_with("/fork") => (200, self.session.clone()),
            (Method::Post, _) => (200, json!(true)),
        }
    }

    fn end(&mut self) -> RunResult {
        let exit = ExitReport { signal: Some("SIGTERM"), ..ExitReport::default() };
        let from = self.events.len();
        self.transcript.end(&End { exit: Some(exit), ..End::default() }, &mut self.events);
        self.told.extend(self.events[from..].iter().map(|event| serde_json::to_string(event).unwrap()));
        let Some(Event::Done(done)) = self.events.last() else { panic!("no done") };
        done.result.clone()
    }
}

/// By which row of the table each recorded turn's failure is told.
pub(crate) fn told() -> BTreeMap<String, Option<&'static FailureRow>> {
    let row = |turn: &Turn| {
        let mut player = Player::session(turn);
        player.send("recorded");
        player.happened(&turn.happened);
        (format!("serve_{}", turn.name), player.outcomes.last().and_then(|outcome| outcome.told_by))
    };
    TURNS.iter().map(row).collect()
}

#[test]
fn every_recorded_turn_means_what_its_snapshot_says_and_keeps_the_rules() {
    for turn in TURNS.iter() {
        let mut player = Player::session(turn);
        player.send("recorded");
        player.happened(&turn.happened);
        let ends = usize::from(turn.name != "eof");
        assert_eq!(player.outcomes.len(), ends, "{}:\n{}", turn.name, player.told.join("\n"));
        player.end();
        assert_eq!(check(&player.events), Ok(()), "{}", turn.name);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots/opencode-serve");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(turn.name.as_str(), player.told.join("\n")));
    }
}

#[test]
fn a_run_asks_nobody_and_is_over_with_its_turn() {
    for name in ["perm_once", "question_reply"] {
        let turn = turn(name);
        let mut player = Player::run(&turn);
        player.happened(&turn.happened);
        assert!(!player.events.iter().any(|event| matches!(event, Event::PermissionRequest(_) | Event::Question(_))));
        let refused = player.calls.iter().any(|call| call.path.ends_with("/reply"));
        assert!(refused && player.stopped && player.outcomes.len() == 1, "{name}: {:#?}", player.told);
    }
}

#[test]
fn a_second_idle_and_a_late_error_end_no_later_turn() {
    let turn = turn("abort_text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    player.happened(&turn.happened);
    assert!(player.outcomes.len() == 1 && player.outcomes[0].interrupted);
    player.transcript = Transcript::new();
    player.send("again");
    // All of it comes once more, but the session's id for busy.
    let late: Vec<_> = turn.happened.iter().filter(|what| what.get("event").is_some()).cloned().collect();
    player.happened(&late[3..]);
    let failed = player.outcomes.get(1).and_then(|outcome| outcome.failure.clone());
    assert!(failed.is_none() && player.outcomes.len() == 1, "{:#?}", player.told);
}

#[test]
fn what_is_whole_before_its_pieces_come_is_told_once() {
    let turn = turn("text");
    let of = |what: &Value, kind: &str| what["event"]["type"] == kind;
    // Each event of the message and of its text says how they are in the end.
    let whole = |kind: &str, wanted: fn(&Value) -> bool| {
        turn.happened.iter().rev().find(|what| of(what, kind) && wanted(what)).unwrap().clone()
    };
    let message = whole("message.updated", |what| what["event"]["properties"]["info"]["role"] == "assistant");
    let text = whole("message.part.updated", |what| what["event"]["properties"]["part"]["type"] == "text");
    let late: Vec<_> = turn
        .happened
        .iter()
        .map(|what| match what {
            what if of(what, "message.updated") && what["event"]["properties"]["info"]["role"] == "assistant" => {
                &message
            }
            what if what["event"]["properties"]["part"]["id"] == text["event"]["properties"]["part"]["id"] => &text,
            what => what,
        })
        .cloned()
        .collect();
    let results = [&turn.happened, &late].map(|happened| {
        let mut player = Player::session(&turn);
        player.send("recorded");
        player.happened(happened);
        player.end()
    });
    assert_eq!(results[0], results[1]);
    assert!(results[0].text.len() > 50 && results[0].num_turns == Some(1), "{:?}", results[0]);
}

#[test]
fn an_interrupt_before_the_prompt_is_sent_ends_the_turn_and_sends_nothing() {
    let turn = turn("text");
    let plan = OpenCode.plan_session(&request(&turn)).unwrap().unwrap();
    let mut player = Player::of(plan.protocol, &turn.session, answer(&turn));
    player.send("recorded");
    player.tell(Input::Interrupt);
    assert!(player.outcomes[0].interrupted);
    player.tell(Input::Line(LISTENS));
    assert!(!player.calls.iter().any(|call| call.path.ends_with("prompt_async")), "{:?}", player.calls);
    player.transcript = Transcript::new();
    player.send("again");
    player.happened(&turn.happened);
    assert!(player.outcomes.len() == 2 && player.outcomes[1].failure.is_none());
}

#[test]
fn an_interrupt_waits_until_there_is_something_to_stop() {
    let turn = turn("abort_text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    player.tell(Input::Interrupt);
    let aborts = |player: &Player| player.calls.iter().filter(|call| call.path.ends_with("/abort")).count();
    assert_eq!(aborts(&player), 0);
    player.happened(&turn.happened);
    assert_eq!(aborts(&player), 1);
    assert!(player.outcomes[0].interrupted);
}

#[test]
fn no_id_of_a_caller_or_of_the_server_becomes_another_path() {
    for id in ["../x", "a/b", "a?b", "a b", "", "ses_\n"] {
        let mut request = RunRequest::new("x");
        request.conversation = Conversation::Resume(id.into());
        let mut player = Player::of(OpenCode.plan(&request).unwrap().protocol, &json!({}), Answer::AllowAlways);
        player.tell(Input::Line(LISTENS));
        assert!(player.calls.is_empty(), "{id}: {:?}", player.calls);
        assert_eq!(player.outcomes[0].failure.as_ref().unwrap().code, ErrorCode::SessionNotFound);
    }
    let turn = turn("text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    let session = turn.session["id"].as_str().unwrap();
    player.event(&json!({"type": "permission.asked", "properties": {
        "id": "../session", "sessionID": session, "permission": "bash"}}));
    assert!(!player.calls.iter().any(|call| call.path.contains("..")), "{:?}", player.calls);
}

#[test]
fn the_prompt_goes_with_its_attachments_model_and_schema() {
    let mut request = RunRequest::new("x");
    request.prompt = "/init @file".to_owned();
    request.model = Some("lab/m1/x".to_owned());
    request.effort = Some("high".to_owned());
    request.schema = Some(json!({"type": "object"}));
    request.attachments = vec![Attachment::Data { name: "n.txt".to_owned(), data: b"hi".to_vec() }];
    let turn = turn("text");
    let mut player = Player::of(OpenCode.plan(&request).unwrap().protocol, &turn.session, Answer::AllowAlways);
    player.tell(Input::Line(LISTENS));
    let body: Value = serde_json::from_slice(player.calls.last().unwrap().body.as_ref().unwrap()).unwrap();
    assert_eq!(
        body,
        json!({
            "agent": "teamster",
            "model": {"providerID": "lab", "modelID": "m1/x"},
            "variant": "high",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
            "parts": [
                {"type": "file", "mime": "text/plain", "filename": "n.txt", "url": "data:text/plain;base64,aGk="},
                {"type": "text", "text": "/init @file"},
            ],
        })
    );
    request.model = Some("none".to_owned());
    assert!(OpenCode.plan(&request).is_err());
    request.model = None;
    request.attachments = vec![Attachment::Data { name: "n.bin".to_owned(), data: vec![0, 1] }];
    assert!(OpenCode.plan(&request).is_err());
}

#[test]
fn another_model_holds_from_the_next_prompt_on() {
    let turn = turn("text");
    let mut player = Player::session(&turn);
    player.tell(Input::Command(Command::SetModel("lab/m2")));
    player.tell(Input::Command(Command::SetModel("none")));
    player.send("recorded");
    let body = String::from_utf8(player.calls.last().unwrap().body.clone().unwrap()).unwrap();
    assert!(body.contains("m2"), "{body}");
    let ignored =
        |event: &Event| matches!(event, Event::Warning(warning) if warning.code == WarningCode::OptionIgnored);
    assert_eq!(player.events.iter().filter(|event| ignored(event)).count(), 1);
}

#[test]
fn a_call_that_breaks_fails_the_turn_and_asks_for_another_process() {
    let turn = turn("text");
    let mut player = Player::session(&turn);
    player.send("recorded");
    player.tell(Input::Server(FromServer::Unreachable { call: None, why: "it is gone" }));
    let failure = player.outcomes[0].failure.clone().unwrap();
    assert_eq!(failure.code, ErrorCode::Connection);
    assert!(player.told.contains(&"= Reopen".to_owned()), "{:#?}", player.told);
}

#[derive(Clone, Debug)]
enum Happens {
    /// This event of this recorded turn, as one of the session that is talked to.
    Recorded(Index, Index),
    Send,
    Interrupt,
    Answer(&'static str),
    Reply(u64, u16, &'static str),
    Unreachable(Option<u64>),
    Line(&'static [u8]),
    Garbage(Vec<u8>),
    Exited,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        20 => (any::<Index>(), any::<Index>()).prop_map(|(turn, event)| Happens::Recorded(turn, event)),
        2 => Just(Happens::Send),
        1 => Just(Happens::Interrupt),
        1 => select(vec!["per_1", "que_1", ""]).prop_map(Happens::Answer),
        2 => (0..9u64, select(vec![200, 204, 400, 401, 404, 500]), select(vec!["", "{}", "true", r#"{"name":"UnknownError","data":{"ref":"err_1"}}"#]))
            .prop_map(|(call, status, body)| Happens::Reply(call, status, body)),
        1 => proptest::option::of(0..9u64).prop_map(Happens::Unreachable),
        1 => select(vec![LISTENS, b"opencode server listening on nowhere", b"", b"\xff"]).prop_map(Happens::Line),
        1 => vec(any::<u8>(), 0..40).prop_map(Happens::Garbage),
        1 => Just(Happens::Exited),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_the_server_says_each_turn_has_one_outcome_and_the_stream_keeps_the_rules(
        happens in vec(happens(), 0..60), run in any::<bool>(), in_order in any::<bool>(),
    ) {
        let recorded = &*TURNS;
        let first = &recorded[0];
        let id = first.session["id"].as_str().unwrap().to_owned();
        let mut player = if run { Player::run(first) } else { Player::session(first) };
        let mut open = run;
        let mut next = 0;
        for what in happens {
            let before = player.outcomes.len();
            match what {
                Happens::Recorded(turn, event) => {
                    let turn = turn.get(recorded);
                    let at = if in_order { next % turn.happened.len() } else { event.index(turn.happened.len()) };
                    next += 1;
                    let text = turn.happened[at]["event"].to_string().replace(turn.session["id"].as_str().unwrap(), &id);
                    player.tell(Input::Server(FromServer::Event(text.as_bytes())));
                }
                Happens::Send if !run && !open => {
                    player.transcript.end(&End::default(), &mut player.events);
                    prop_assert_eq!(check(&std::mem::take(&mut player.events)), Ok(()));
                    player.transcript = Transcript::new();
                    open = true;
                    player.send("again");
                }
                Happens::Send => {}
                Happens::Interrupt => player.tell(Input::Interrupt),
                Happens::Answer(request) => {
                    let request = RequestId::from(request);
                    player.tell(Input::Command(Command::Answer { request: &request, answer: &Answer::AllowAlways }));
                }
                Happens::Reply(call, status, body) => {
                    player.tell(Input::Server(FromServer::Reply { call: CallId(call), status, body: body.as_bytes() }));
                }
                Happens::Unreachable(call) => {
                    player.tell(Input::Server(FromServer::Unreachable { call: call.map(CallId), why: "no" }));
                }
                Happens::Line(line) => player.tell(Input::Line(line)),
                Happens::Garbage(bytes) => player.tell(Input::Server(FromServer::Event(&bytes))),
                Happens::Exited => player.tell(Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() })),
            }
            let told = player.outcomes.len() - before;
            prop_assert!(told <= usize::from(open), "{:#?}", player.told);
            open = open && told == 0;
        }
        player.end();
        prop_assert_eq!(check(&player.events), Ok(()), "{:#?}", player.events);
    }
}
