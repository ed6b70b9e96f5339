//! Codex by its app-server: recorded conversations turn by turn, and what no recorded one shows.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use teamster_protocol::agent::{Agent, codex::Codex};
use teamster_protocol::event::{ErrorCode, Event, RequestId, RunResult, SteerId, WarningCode};
use teamster_protocol::launch::{Arg, Launch, Stdin};
use teamster_protocol::protocol::{Action, Command, ExitReport, Input, Protocol};
use teamster_protocol::request::{
    Answer, Attachment, Conversation, McpServer, Mode, OutputMode, PermissionMode, ProjectTrust, Prompt, PromptMode,
    RunRequest,
};
use teamster_protocol::transcript::{End, Transcript};
use teamster_testkit::check::check;

use crate::capture::folder;
use crate::requests::{SECRET, any_request};

const THREAD: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3c";
const OTHER: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3d";

/// A protocol that is spoken to as the driver does, turn by turn.
struct Talk {
    protocol: Box<dyn Protocol>,
    transcript: Transcript,
    /// Of the turn that runs, or ran last.
    events: Vec<Event>,
    /// All that was written, line by line.
    written: Vec<Value>,
    in_turn: bool,
    closed: bool,
    reopens: bool,
    withdrawn: Vec<RequestId>,
    steered: Vec<(SteerId, bool)>,
}

impl Talk {
    fn session(request: &RunRequest) -> Self {
        Self::start(Codex.plan_session(request).unwrap().unwrap().protocol, false)
    }

    fn run(request: &RunRequest) -> Self {
        Self::start(Codex.plan(request).unwrap().protocol, true)
    }

    fn start(protocol: Box<dyn Protocol>, in_turn: bool) -> Self {
        let mut talk = Self {
            protocol,
            transcript: Transcript::new(),
            events: Vec::new(),
            written: Vec::new(),
            in_turn,
            closed: false,
            reopens: false,
            withdrawn: Vec::new(),
            steered: Vec::new(),
        };
        talk.tell(Input::Started);
        talk
    }

    /// A session whose thread is open and whose first turn runs.
    fn running(request: &RunRequest) -> Self {
        let mut talk = Self::session(request);
        talk.open(THREAD);
        talk.send("Go.");
        talk.turn_starts("turn-1");
        talk
    }

    fn open(&mut self, thread: &str) {
        self.reply("initialize", &json!({"userAgent": "x"}));
        let method =
            ["thread/start", "thread/resume", "thread/fork"].into_iter().find(|name| self.wrote(name).is_some());
        self.reply(method.unwrap(), &json!({"thread": {"id": thread, "cliVersion": "0.169.0"}, "model": "m"}));
    }

    fn turn_starts(&mut self, turn: &str) {
        self.reply("turn/start", &json!({"turn": {"id": turn, "status": "inProgress"}}));
        self.notify("turn/started", json!({"turn": {"id": turn, "status": "inProgress"}}));
    }

    fn turn_ends(&mut self, turn: &str, status: &str) {
        self.notify("turn/completed", json!({"turn": {"id": turn, "status": status, "error": null}}));
    }

    fn send(&mut self, text: &str) {
        (self.transcript, self.events, self.in_turn) = (Transcript::new(), Vec::new(), true);
        self.tell(Input::Command(Command::Send(&Prompt::from(text))));
    }

    /// A notification of our thread; it says itself if it is of another one.
    fn notify(&mut self, method: &str, mut params: Value) {
        params.as_object_mut().unwrap().entry("threadId").or_insert(THREAD.into());
        self.line(&json!({"method": method, "params": params}));
    }

    fn item(&mut self, event: &str, item: &Value) {
        self.notify(event, json!({"turnId": "turn-1", "item": item}));
    }

    fn ask(&mut self, id: u64, method: &str, mut params: Value) {
        let fields = params.as_object_mut().unwrap();
        fields.extend([("threadId".to_owned(), THREAD.into()), ("turnId".to_owned(), "turn-1".into())]);
        self.line(&json!({"id": id, "method": method, "params": params}));
    }

    fn line(&mut self, line: &Value) {
        self.tell(Input::Line(line.to_string().as_bytes()));
    }

    /// The answer to our last call of this name.
    fn reply(&mut self, method: &str, result: &Value) {
        let id = self.wrote(method).unwrap()["id"].clone();
        self.line(&json!({"id": id, "result": result}));
    }

    fn refuse(&mut self, method: &str, message: &str) {
        let id = self.wrote(method).unwrap()["id"].clone();
        self.line(&json!({"id": id, "error": {"code": -32600, "message": message}}));
    }

    /// The last call or notification of ours of this name.
    fn wrote(&self, method: &str) -> Option<&Value> {
        self.written.iter().rfind(|line| line["method"] == method)
    }

    /// What was answered to a request of the app-server.
    fn answered(&self, id: u64) -> Option<&Value> {
        self.written.iter().find(|line| line["id"] == id && line.get("method").is_none())
    }

    fn answer(&mut self, request: &RequestId, answer: &Answer) {
        self.tell(Input::Command(Command::Answer { request, answer }));
    }

    fn tell(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => self.transcript.push(event, &mut self.events),
                Action::Write(bytes) => {
                    let lines = bytes.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n');
                    self.written.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                }
                Action::Outcome(outcome) if self.in_turn => {
                    self.transcript.set_outcome(*outcome);
                    self.transcript.end(&End::default(), &mut self.events);
                    self.in_turn = false;
                    assert_eq!(check(&self.events), Ok(()), "{:#?}", self.events);
                }
                Action::CloseStdin => self.closed = true,
                Action::Reopen => self.reopens = true,
                Action::Withdraw(request) => self.withdrawn.push(request),
                Action::Steered { id, heard } => self.steered.push((id, heard)),
                _ => {}
            }
        }
    }

    fn result(&self) -> &RunResult {
        match self.events.last() {
            Some(Event::Done(done)) => &done.result,
            other => panic!("{other:?} is no done"),
        }
    }

    /// The request of the agent that was told last.
    fn request(&self) -> RequestId {
        let request = self.events.iter().rev().find_map(|event| match event {
            Event::PermissionRequest(request) => Some(request.request_id.clone()),
            Event::Question(question) => Some(question.request_id.clone()),
            _ => None,
        });
        request.unwrap()
    }

    fn warned(&self, code: &WarningCode) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Warning(warning) if warning.code == *code)).count()
    }
}

fn frame() -> RunRequest {
    RunRequest::default()
}

fn mode(mode: PermissionMode) -> RunRequest {
    let mut request = RunRequest::new("x");
    request.permissions.mode = mode;
    request
}

/// The lines of a recorded conversation: what was sent, and what came.
fn recorded(name: &str) -> (Vec<Value>, Vec<Value>) {
    let lines = |file: &str| {
        let text = fs::read_to_string(folder("codex").join(name).join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    (lines("stdin.ndjson"), lines("stdout.ndjson"))
}

/// The caller's answer that a recorded one stands for.
fn answer_of(result: &Value, is_question: bool) -> Answer {
    match (result["decision"].as_str().or(result["action"].as_str()), &result["content"]) {
        (Some("acceptForSession"), _) => Answer::AllowAlways,
        (Some("accept"), Value::Object(content)) if is_question => {
            let text = |value: &Value| vec![value.as_str().unwrap().to_owned()];
            Answer::Choose(content.iter().map(|(name, value)| (name.clone(), text(value))).collect())
        }
        (Some("accept"), _) if result["_meta"]["persist"] == "session" => Answer::AllowAlways,
        (Some("accept"), _) => Answer::Allow { input: None },
        _ => Answer::Deny { message: None },
    }
}

/// A recorded conversation once more: each turn's events, line by line.
fn talk(name: &str) -> String {
    let (sent, came) = recorded(name);
    let mut request = frame();
    request.model = Some("gpt-5.5".to_owned());
    let mut talk = Talk::session(&request);
    let mut text = String::new();
    let mut told = 0;
    for line in came {
        let call = line.get("method").is_none().then(|| sent.iter().find(|sent| sent["id"] == line["id"])).flatten();
        match call.and_then(|call| Some((call["method"].as_str()?, call))) {
            Some(("turn/start", call)) => {
                talk.send(call["params"]["input"][0]["text"].as_str().unwrap());
                assert_eq!(
                    talk.wrote("turn/start").unwrap()["id"],
                    line["id"],
                    "calls are numbered as in the recording"
                );
                told = 0;
                text.push_str("\n> turn\n");
            }
            Some(("turn/interrupt", _)) => talk.tell(Input::Interrupt),
            _ => {}
        }
        talk.line(&line);
        if let (Some(id), Some(_)) = (line["id"].as_u64(), line.get("method")) {
            let reply = sent.iter().find(|sent| sent["id"] == id && sent.get("method").is_none());
            if let Some(reply) = reply {
                let request = talk.request();
                let is_question = matches!(talk.events.last(), Some(Event::Question(_)));
                talk.answer(&request, &answer_of(&reply["result"], is_question));
                let written = talk.answered(id).unwrap()["result"].clone();
                for name in ["decision", "action"] {
                    assert_eq!(written[name], reply["result"][name]);
                }
            }
        }
        if talk.wrote("thread/backgroundTerminals/clean").is_some() && talk.in_turn {
            talk.reply("thread/backgroundTerminals/clean", &json!({}));
        }
        for event in &talk.events[told..] {
            let mut line = serde_json::to_value(event).unwrap();
            // A dependency may have maps keep the order in which they were filled.
            line.sort_all_objects();
            text.extend([&line.to_string(), "\n"]);
        }
        told = talk.events.len();
    }
    assert!(!talk.in_turn, "the last turn has ended");
    text
}

#[test]
fn every_recorded_conversation_means_what_its_snapshot_says() {
    let names = ["tools", "decline", "accept", "mcp", "unanswered", "cut"];
    let mut failed = Vec::new();
    for name in names {
        let text = talk(&format!("app_talk_{name}"));
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots/codex_talks");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name, text));
        failed.extend(catch_unwind(AssertUnwindSafe(compare)).err().map(|_| name));
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn the_usage_of_a_turn_is_its_own() {
    let text = talk("app_talk_tools");
    let done = text.lines().filter(|line| line.contains("\"type\":\"done\""));
    let inputs: Vec<Value> = done
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"]["usage"]["inputTokens"].clone())
        .collect();
    // The provider told 600 uncached tokens a call.
    assert_eq!(inputs, [1200, 1200, 1200, 1200, 3000, 1200, 600, 600, 1800]);
}

#[test]
fn a_run_is_one_turn_and_closes_standard_input_after_it() {
    let mut talk = Talk::run(&RunRequest::new("Go."));
    talk.open(THREAD);
    assert_eq!(talk.wrote("turn/start").unwrap()["params"]["input"][0]["text"], "Go.");
    talk.turn_starts("turn-1");
    talk.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    assert!(!talk.closed);
    talk.turn_ends("turn-1", "completed");
    assert!(talk.closed);
    assert_eq!((talk.result().text.as_str(), talk.result().is_error), ("Done.", false));
    assert_eq!(talk.result().model.as_deref(), Some("m"));
}

#[test]
fn another_thread_than_the_one_asked_for_gets_no_prompt() {
    for (conversation, thread) in [
        (Conversation::Resume(THREAD.into()), OTHER),
        (Conversation::Fork(THREAD.into()), THREAD),
        (Conversation::New, ""),
    ] {
        let mut request = RunRequest::new("x");
        (request.conversation, request.model) = (conversation, Some("m".to_owned()));
        let mut talk = Talk::run(&request);
        talk.open(thread);
        assert!(talk.wrote("turn/start").is_none() && talk.closed);
        assert_eq!(talk.result().error_code, Some(ErrorCode::Protocol));
        assert_eq!(talk.warned(&WarningCode::SessionMismatch), 1);
    }
}

#[test]
fn a_thread_that_goes_on_keeps_its_model_unless_another_is_asked_for() {
    let mut request = RunRequest::new("x");
    request.conversation = Conversation::Resume(THREAD.into());
    let mut talk = Talk::run(&request);
    talk.reply("initialize", &json!({}));
    talk.reply("thread/read", &json!({"thread": {"id": THREAD, "model": "its-own"}}));
    assert_eq!(talk.wrote("thread/resume").unwrap()["params"]["model"], "its-own");
    request.model = Some("another".to_owned());
    let mut talk = Talk::run(&request);
    talk.reply("initialize", &json!({}));
    assert_eq!(talk.wrote("thread/resume").unwrap()["params"]["model"], "another");
}

#[test]
fn the_newest_thread_of_the_directory_is_resumed_or_a_new_one_begun() {
    for (found, method) in [(json!([{"id": THREAD}]), "thread/resume"), (json!([]), "thread/start")] {
        let mut request = RunRequest::new("x");
        request.conversation = Conversation::Continue;
        request.cwd = Some("/home/dev/project".into());
        request.model = Some("m".to_owned());
        let mut talk = Talk::run(&request);
        talk.reply("initialize", &json!({}));
        assert_eq!(talk.wrote("thread/list").unwrap()["params"]["cwd"], "/home/dev/project");
        talk.reply("thread/list", &json!({ "data": found }));
        assert!(talk.wrote(method).is_some());
    }
}

#[test]
fn what_is_of_another_thread_or_turn_is_not_told() {
    let mut talk = Talk::running(&frame());
    let before = talk.events.len();
    let message = |text: &str| json!({"type": "agentMessage", "id": "m", "text": text});
    talk.notify("item/completed", json!({"threadId": OTHER, "turnId": "turn-1", "item": message("other thread")}));
    talk.notify("item/completed", json!({"turnId": "turn-0", "item": message("other turn")}));
    talk.notify("turn/completed", json!({"turn": {"id": "turn-0", "status": "completed"}}));
    talk.notify("turn/completed", json!({"threadId": OTHER, "turn": {"id": "turn-1", "status": "completed"}}));
    talk.notify("item/agentMessage/delta", json!({"turnId": "turn-0", "itemId": "m", "delta": "x"}));
    assert_eq!(talk.events.len(), before);
    // A command that outlives its turn ends in the next one, which did not begin it.
    talk.item("item/completed", &message("Done."));
    talk.turn_ends("turn-1", "completed");
    talk.send("More.");
    talk.turn_starts("turn-2");
    talk.item("item/completed", &json!({"type": "commandExecution", "id": "c", "command": "x", "status": "completed"}));
    assert!(!talk.events.iter().any(|event| matches!(event, Event::ToolResult(_))));
}

#[test]
fn an_interrupt_ends_the_turn_when_its_commands_have_ended() {
    let mut talk = Talk::running(&frame());
    talk.item(
        "item/started",
        &json!({"type": "commandExecution", "id": "c", "command": "sleep", "status": "inProgress"}),
    );
    talk.tell(Input::Interrupt);
    assert_eq!(talk.wrote("turn/interrupt").unwrap()["params"], json!({"threadId": THREAD, "turnId": "turn-1"}));
    talk.turn_ends("turn-1", "interrupted");
    assert!(talk.in_turn, "its command may run");
    talk.reply("thread/backgroundTerminals/clean", &json!({}));
    assert!(talk.result().aborted && !talk.closed && !talk.reopens);
    talk.send("More.");
    assert!(talk.wrote("turn/start").is_some());
}

#[test]
fn an_interrupt_is_kept_until_the_turn_can_be_interrupted() {
    let mut talk = Talk::session(&frame());
    talk.open(THREAD);
    talk.send("Go.");
    talk.tell(Input::Interrupt);
    talk.reply("turn/start", &json!({"turn": {"id": "turn-1", "status": "inProgress"}}));
    assert!(talk.wrote("turn/interrupt").is_none(), "it has not begun");
    talk.notify("turn/started", json!({"turn": {"id": "turn-1", "status": "inProgress"}}));
    assert!(talk.wrote("turn/interrupt").is_some());
}

#[test]
fn an_interrupt_before_there_is_a_thread_keeps_the_prompt_from_the_model() {
    let mut talk = Talk::session(&frame());
    talk.send("Go.");
    talk.tell(Input::Interrupt);
    assert!(talk.result().aborted);
    talk.open(THREAD);
    assert!(talk.wrote("turn/start").is_none());
    talk.send("Now.");
    assert_eq!(talk.wrote("turn/start").unwrap()["params"]["input"][0]["text"], "Now.");
}

#[test]
fn a_turn_that_the_agent_interrupts_by_itself_has_failed() {
    let mut talk = Talk::running(&frame());
    talk.turn_ends("turn-1", "interrupted");
    assert!(talk.result().is_error && !talk.result().aborted);
}

fn approval(talk: &mut Talk, id: u64) {
    talk.ask(id, "item/commandExecution/requestApproval", json!({"itemId": "c", "command": "touch x", "cwd": "/p"}));
}

#[test]
fn a_request_waits_for_its_answer_and_takes_one() {
    for (answer, decision) in [
        (Answer::Allow { input: None }, "accept"),
        (Answer::Allow { input: Some(json!({"command": "touch x", "cwd": "/p"})) }, "accept"),
        (Answer::Allow { input: Some(json!({"command": "rm x"})) }, "decline"),
        (Answer::AllowAlways, "acceptForSession"),
        (Answer::Deny { message: None }, "decline"),
        (Answer::Choose([("x".to_owned(), vec!["y".to_owned()])].into()), "decline"),
    ] {
        let mut talk = Talk::running(&frame());
        approval(&mut talk, 0);
        let request = talk.request();
        assert!(talk.answered(0).is_none());
        talk.answer(&request, &answer);
        assert_eq!(talk.answered(0).unwrap()["result"], json!({ "decision": decision }), "{answer:?}");
        let lines = talk.written.len();
        talk.answer(&request, &Answer::AllowAlways);
        assert_eq!(talk.written.len(), lines, "an answer is written once");
        let changed = matches!(&answer, Answer::Allow { input: Some(_) }) && decision == "decline";
        assert_eq!(talk.warned(&WarningCode::OptionIgnored), usize::from(changed));
    }
}

#[test]
fn a_request_of_another_process_has_another_id() {
    let mut ids = Vec::new();
    for turn in ["turn-1", "turn-2"] {
        let mut talk = Talk::session(&frame());
        talk.open(THREAD);
        talk.send("Go.");
        talk.turn_starts(turn);
        approval(&mut talk, 0);
        ids.push(talk.request());
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn the_reason_of_a_refusal_is_said_to_the_model_in_its_turn() {
    let mut talk = Talk::running(&frame());
    approval(&mut talk, 3);
    talk.answer(&talk.request(), &Answer::Deny { message: Some("Not today.".to_owned()) });
    assert_eq!(talk.answered(3).unwrap()["result"]["decision"], "decline");
    let steered = &talk.wrote("turn/steer").unwrap()["params"];
    assert_eq!((&steered["expectedTurnId"], &steered["input"][0]["text"]), (&json!("turn-1"), &json!("Not today.")));
}

#[test]
fn what_is_said_within_a_turn_is_heard_or_told_to_have_come_too_late() {
    let id = SteerId::from("steer-1");
    let steer =
        |talk: &mut Talk| talk.tell(Input::Command(Command::Steer { id: &id, prompt: &Prompt::from("Hurry.") }));
    let mut talk = Talk::running(&frame());
    steer(&mut talk);
    assert_eq!(talk.wrote("turn/steer").unwrap()["params"]["input"][0]["text"], "Hurry.");
    talk.reply("turn/steer", &json!({}));
    assert_eq!(talk.steered, [(id.clone(), true)]);

    let mut talk = Talk::running(&frame());
    steer(&mut talk);
    talk.refuse("turn/steer", "no active turn to steer");
    assert_eq!(talk.steered, [(id.clone(), false)]);

    // The turn ends before there is an answer.
    let mut talk = Talk::running(&frame());
    steer(&mut talk);
    talk.turn_ends("turn-1", "completed");
    assert_eq!(talk.steered, [(id.clone(), false)]);
    talk.reply("turn/steer", &json!({}));
    assert_eq!(talk.steered.len(), 1, "it is told once");

    // There is no turn yet that could be steered.
    let mut talk = Talk::session(&frame());
    talk.send("Go.");
    steer(&mut talk);
    assert_eq!(talk.steered, [(id.clone(), false)]);
}

#[test]
fn a_run_refuses_what_it_is_asked() {
    let mut talk = Talk::run(&mode(PermissionMode::Edit));
    talk.open(THREAD);
    talk.turn_starts("turn-1");
    approval(&mut talk, 0);
    let tool = json!({"serverName": "s", "mode": "form", "message": "?", "requestedSchema": {},
        "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "t"}});
    talk.ask(1, "mcpServer/elicitation/request", tool);
    talk.ask(
        2,
        "item/permissions/requestApproval",
        json!({"itemId": "c", "permissions": {"network": {"enabled": true}}}),
    );
    talk.ask(3, "item/tool/requestUserInput", json!({"questions": [{"id": "q", "question": "?"}]}));
    assert_eq!(talk.answered(0).unwrap()["result"], json!({"decision": "decline"}));
    assert_eq!(talk.answered(1).unwrap()["result"]["action"], "decline");
    assert_eq!(talk.answered(2).unwrap()["result"], json!({"permissions": {}, "scope": "turn"}));
    assert_eq!(talk.answered(3).unwrap()["result"], json!({"answers": {}}));
    let asks = |event: &Event| matches!(event, Event::PermissionRequest(_) | Event::Question(_));
    assert!(!talk.events.iter().any(asks));
}

#[test]
fn what_is_not_served_is_refused_and_what_is_asked_between_turns_is_denied() {
    let mut talk = Talk::running(&frame());
    let strange =
        ["currentTime/read", "item/tool/call", "applyPatchApproval", "no/such", "account/chatgptAuthTokens/refresh"];
    for (id, method) in strange.into_iter().enumerate() {
        talk.ask(id as u64, method, json!({}));
        assert_eq!(talk.answered(id as u64).unwrap()["error"]["code"], -32601, "{method}");
    }
    // Forms that we cannot put into words, and leave that is asked for in a way that we do not know.
    let form = |mode: &str, meta: Value| {
        json!({"serverName": "s", "mode": mode, "message": "?", "_meta": meta,
               "requestedSchema": {"type": "object", "properties": {"x": {"type": "object"}}}})
    };
    for (id, params) in
        [form("form", Value::Null), form("url", Value::Null), form("form", json!({"codex_approval_kind": "x"}))]
            .into_iter()
            .enumerate()
    {
        let id = 10 + id as u64;
        talk.ask(id, "mcpServer/elicitation/request", params);
        assert!(talk.answered(id).unwrap().get("error").is_some());
    }
    talk.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    talk.turn_ends("turn-1", "completed");
    approval(&mut talk, 20);
    assert_eq!(talk.answered(20).unwrap()["result"]["decision"], "decline");
}

#[test]
fn a_request_is_withdrawn_when_the_agent_waits_no_longer_and_when_its_turn_ends() {
    let mut talk = Talk::running(&frame());
    approval(&mut talk, 0);
    let first = talk.request();
    talk.notify("serverRequest/resolved", json!({"requestId": 0}));
    assert_eq!(talk.withdrawn, std::slice::from_ref(&first));
    approval(&mut talk, 1);
    let second = talk.request();
    talk.turn_ends("turn-1", "completed");
    assert_eq!(talk.withdrawn, [first, second]);
}

#[test]
fn a_patch_that_wants_leave_shows_what_it_would_change() {
    let mut talk = Talk::running(&frame());
    let changes = json!([{"path": "/p/x", "kind": {"type": "add"}, "diff": "new\n"}]);
    talk.item("item/started", &json!({"type": "fileChange", "id": "f", "status": "inProgress", "changes": changes}));
    talk.ask(0, "item/fileChange/requestApproval", json!({"itemId": "f", "reason": null, "grantRoot": null}));
    let Some(Event::PermissionRequest(request)) = talk.events.last() else { panic!("{:?}", talk.events) };
    assert_eq!((request.tool_name.as_str(), request.tool_id.as_ref().map(AsRef::as_ref)), ("file_change", Some("f")));
    assert_eq!(request.input, json!({"changes": [{"path": "/p/x", "kind": "add"}], "diff": "new\n"}));
}

#[test]
fn the_agents_own_question_is_answered_by_its_ids() {
    let mut talk = Talk::running(&frame());
    let options = json!([{"label": "A", "description": "first"}, {"label": "B", "description": "second"}]);
    let questions = json!([{"id": "q1", "header": "Pick", "question": "A or B?", "options": options}]);
    talk.ask(0, "item/tool/requestUserInput", json!({"itemId": "i", "questions": questions}));
    talk.answer(&talk.request(), &Answer::Choose([("q1".to_owned(), vec!["B".to_owned()])].into()));
    assert_eq!(talk.answered(0).unwrap()["result"], json!({"answers": {"q1": {"answers": ["B"]}}}));
}

#[test]
fn a_shortened_conversation_another_model_and_a_near_limit_are_told() {
    let mut talk = Talk::running(&frame());
    talk.item("item/completed", &json!({"type": "contextCompaction", "id": "x"}));
    talk.notify("model/rerouted", json!({"turnId": "turn-1", "fromModel": "a", "toModel": "b"}));
    let window = json!({"usedPercent": 95, "windowDurationMins": 300, "resetsAt": 1_999_999_999});
    talk.line(&json!({"method": "account/rateLimits/updated", "params": {"rateLimits": {"primary": window}}}));
    assert_eq!((talk.warned(&WarningCode::Compacted), talk.warned(&WarningCode::ModelFallback)), (1, 1));
    assert!(talk.events.iter().any(|event| matches!(event, Event::RateLimit(_))));
}

#[test]
fn parts_of_a_summary_are_lines_and_what_deltas_lacked_is_told_at_the_end() {
    let mut talk = Talk::running(&frame());
    for (delta, part) in [("One", 0), (".", 0), ("Two", 1)] {
        let params = json!({"turnId": "turn-1", "itemId": "r", "delta": delta, "summaryIndex": part});
        talk.notify("item/reasoning/summaryTextDelta", params);
    }
    talk.item(
        "item/completed",
        &json!({"type": "reasoning", "id": "r", "summary": ["One.", "Two."], "content": ["raw"]}),
    );
    let told: String = talk
        .events
        .iter()
        .filter_map(|event| if let Event::Thinking(delta) = event { Some(delta.text.as_str()) } else { None })
        .collect();
    assert_eq!(told, "One.\nTwo.");
}

#[test]
fn a_thread_that_cannot_be_opened_ends_each_turn_and_another_process_is_asked_for() {
    let mut talk = Talk::session(&frame());
    talk.reply("initialize", &json!({}));
    talk.refuse("thread/start", "failed to load configuration: x");
    talk.send("Go.");
    assert_eq!(talk.result().error_code, Some(ErrorCode::Config));
    assert!(talk.reopens);
}

#[test]
fn another_model_holds_from_the_next_turn_and_another_mode_needs_another_process() {
    let mut talk = Talk::running(&frame());
    talk.tell(Input::Command(Command::SetModel("m2")));
    talk.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    talk.turn_ends("turn-1", "completed");
    talk.send("More.");
    assert_eq!(talk.wrote("turn/start").unwrap()["params"]["model"], "m2");
    talk.tell(Input::Command(Command::SetPermissionMode(PermissionMode::ReadOnly)));
    assert!(talk.reopens);
}

#[test]
fn a_mode_is_a_sandbox_and_who_is_asked() {
    let asked = |request: &RunRequest, session: bool| {
        let mut talk = if session {
            Talk::session(&{
                let mut frame = request.clone();
                frame.prompt.clear();
                frame
            })
        } else {
            Talk::run(request)
        };
        talk.reply("initialize", &json!({}));
        let params = talk.wrote("thread/start").unwrap()["params"].clone();
        let profile = &params["config"]["permissions"]["teamster"];
        let fence = params["sandbox"].as_str().or(profile["extends"].as_str()).unwrap().to_owned();
        // Nothing leaves a profile that denies the reading of something.
        assert_eq!(params.get("permissions").is_some(), profile["filesystem"]["/nonexistent/teamster"] == "deny");
        assert_eq!(params["approvalsReviewer"], "user");
        (fence, params["approvalPolicy"].as_str().unwrap().to_owned())
    };
    let untrusted = |mut request: RunRequest| {
        request.project_trust = ProjectTrust::Untrusted;
        request.cwd = Some("/p".into());
        request
    };
    let table = [
        (mode(PermissionMode::ReadOnly), (":read-only", "never"), (":read-only", "never")),
        (mode(PermissionMode::Ask), (":read-only", "never"), ("read-only", "on-request")),
        (mode(PermissionMode::Edit), ("workspace-write", "never"), ("workspace-write", "on-request")),
        (untrusted(mode(PermissionMode::Edit)), (":workspace", "never"), ("workspace-write", "on-request")),
        (mode(PermissionMode::Full), ("danger-full-access", "never"), ("danger-full-access", "never")),
    ];
    for (request, run, session) in table {
        let pair = |(fence, policy): (&str, &str)| (fence.to_owned(), policy.to_owned());
        assert_eq!((asked(&request, false), asked(&request, true)), (pair(run), pair(session)), "{request:?}");
    }
}

#[test]
fn the_app_server_takes_what_has_a_meaning_there_and_exec_the_rest() {
    let change = |change: fn(&mut RunRequest)| {
        let mut request = RunRequest::new("x");
        change(&mut request);
        request
    };
    let args = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let with_args = |words: &[&str]| {
        let mut request = RunRequest::new("x");
        request.cli_args = args(words);
        request
    };
    let table = [
        (RunRequest::new("x"), "app-server"),
        (change(|r| r.mode = Mode::Spawn), "app-server"),
        (change(|r| r.mode = Mode::Exec), "exec"),
        (change(|r| r.output = OutputMode::Messages), "app-server"),
        (change(|r| r.output = OutputMode::Batch), "exec"),
        (change(|r| r.conversation = Conversation::Continue), "exec"),
        (change(|r| (r.conversation, r.cwd) = (Conversation::Continue, Some("/p".into()))), "app-server"),
        (change(|r| r.add_dirs = vec!["lib".into()]), "exec"),
        (change(|r| (r.add_dirs, r.cwd) = (vec!["lib".into()], Some("/p".into()))), "app-server"),
        (with_args(&["--config=a=1", "-c", "b=2", "--enable", "x", "--disable=y", "--strict-config"]), "app-server"),
        (with_args(&["--oss"]), "exec"),
        (with_args(&["-c"]), "exec"),
        (with_args(&["-cx=1"]), "exec"),
    ];
    for (request, form) in table {
        let launch = Codex.plan(&request).unwrap().launch;
        assert_eq!(launch.args.first(), Some(&Arg::Text(form.to_owned())), "{request:?} {:?}", request.cli_args);
        let lives = Codex.plan_session(&request).unwrap().is_some();
        assert_eq!(lives, form == "app-server");
    }
}

#[test]
fn images_and_texts_go_with_the_prompt() {
    let mut request = RunRequest::new("Look.");
    let attach = |name: &str, data: &[u8]| Attachment::Data { name: name.to_owned(), data: data.to_vec() };
    request.attachments = vec![attach("a.txt", b"notes"), attach("b.png", b"\x89PNG\r\n\x1a\n")];
    let mut talk = Talk::run(&request);
    talk.open(THREAD);
    let input = &talk.wrote("turn/start").unwrap()["params"]["input"];
    assert_eq!(input[0], json!({"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="}));
    assert_eq!(input[1]["text"], "Attached file a.txt:\nnotes\n\nLook.");
}

#[test]
fn a_literal_prompt_names_each_skill_that_it_must_not_bring_in() {
    let mut request = frame();
    request.prompt_mode = PromptMode::Literal;
    let mut talk = Talk::session(&request);
    talk.open(THREAD);
    talk.send("Use $greet: it costs $5.");
    let input = talk.wrote("turn/start").unwrap()["params"]["input"].as_array().unwrap().clone();
    let blocked: Vec<_> =
        input.iter().filter(|part| part["type"] == "skill").map(|part| part["name"].clone()).collect();
    assert_eq!(blocked, ["5", "greet", "greet:"]);
    talk.turn_starts("turn-1");
    talk.turn_ends("turn-1", "completed");
    talk.send("see [$x](plugin://x)");
    assert_eq!(talk.result().error_code, Some(ErrorCode::InvalidRequest));
}

/// What Codex can do of any request.
fn askable() -> impl Strategy<Value = RunRequest> {
    any_request().prop_map(|mut request| {
        request.permissions.allow.clear();
        request.output = OutputMode::Stream;
        request.cwd = Some("/made/up \"directory\"".into());
        request.conversation = match request.conversation {
            Conversation::Resume(_) => Conversation::Resume(THREAD.into()),
            Conversation::Fork(_) => Conversation::Fork(THREAD.into()),
            other => other,
        };
        request
    })
}

fn planned(request: &RunRequest) -> Option<(Launch, Box<dyn Protocol>)> {
    request.validate().ok()?;
    Codex.abilities().unwrap().check("codex", request).ok()?;
    let plan = Codex.plan(request).ok()?;
    Some((plan.launch, plan.protocol))
}

/// The lines of all recorded app-servers.
static RECORDED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let captures = crate::capture::all("codex").into_iter().filter(|capture| capture.name.starts_with("app_"));
    captures.flat_map(|capture| capture.lines().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
});

#[derive(Clone, Debug)]
enum Step {
    Line(Index),
    /// The answer to a call of ours, the newest first.
    Reply(usize, Value),
    Send,
    Answer(Answer),
    Interrupt,
    SetModel,
    Exited,
}

fn step() -> impl Strategy<Value = Step> {
    let answers = vec![Answer::Allow { input: None }, Answer::AllowAlways, Answer::Deny { message: Some("$x".into()) }];
    let result = select(vec![
        json!({}),
        json!({"thread": {"id": THREAD}}),
        json!({"turn": {"id": "turn-1"}}),
        json!({"data": [{"id": THREAD}]}),
        Value::Null,
    ]);
    prop_oneof![
        8 => any::<Index>().prop_map(Step::Line),
        4 => (0_usize..4, result).prop_map(|(place, result)| Step::Reply(place, result)),
        2 => Just(Step::Send),
        2 => select(answers).prop_map(Step::Answer),
        1 => Just(Step::Interrupt),
        1 => Just(Step::SetModel),
        1 => Just(Step::Exited),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_in_whatever_order_each_turn_keeps_the_rules(steps in proptest::collection::vec(step(), 0..80)) {
        let mut talk = Talk::session(&frame());
        for step in steps {
            match step {
                Step::Line(at) => talk.tell(Input::Line(&RECORDED[at.index(RECORDED.len())])),
                Step::Reply(place, result) => {
                    let calls = talk.written.iter().rev().filter(|line| line.get("method").is_some() && line.get("id").is_some());
                    let id = calls.map(|line| line["id"].clone()).nth(place);
                    if let Some(id) = id {
                        talk.line(&json!({"id": id, "result": result}));
                    }
                }
                Step::Send if !talk.in_turn => talk.send("Go."),
                Step::Answer(answer) => {
                    let asks = talk.events.iter().any(|event| matches!(event, Event::PermissionRequest(_) | Event::Question(_)));
                    if asks {
                        talk.answer(&talk.request(), &answer);
                    }
                }
                Step::Interrupt if talk.in_turn => talk.tell(Input::Interrupt),
                Step::SetModel => talk.tell(Input::Command(Command::SetModel("m"))),
                Step::Exited => talk.tell(Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() })),
                Step::Send | Step::Interrupt => {}
            }
        }
        // Every request of the app-server is answered, or waits for its caller.
        let mut told = Vec::new();
        talk.transcript.end(&End::default(), &mut told);
        talk.events.extend(told);
        prop_assert_eq!(check(&talk.events), Ok(()));
    }

    #[test]
    fn nothing_of_a_request_but_our_own_flags_stands_in_an_argument(request in askable()) {
        let mut request = request;
        request.prompt = format!("HIDDEN {}", request.prompt);
        request.append_system_prompt = Some("HIDDEN".to_owned());
        if let Some((launch, _)) = planned(&request) {
            prop_assert_eq!(&launch.stdin, &Stdin::Open);
            for arg in launch.args.iter().skip(1) {
                let Arg::Text(text) = arg else { panic!("{arg:?}") };
                let ours = [
                    "--config=features.unbounded_connection_retries=", "--config=projects=",
                    "--config=project_doc_max_bytes=", "--config=skills.include_instructions=",
                ];
                prop_assert!(ours.iter().any(|flag| text.starts_with(flag)), "{}", text);
                prop_assert!(!text.contains("HIDDEN") && !text.contains(SECRET) && !text.contains('\0'));
            }
        }
    }

    #[test]
    fn every_value_of_a_request_arrives_as_it_is_and_no_secret_is_written(request in askable()) {
        if let Some((_, protocol)) = planned(&request) {
            let mut talk = Talk::start(protocol, true);
            talk.reply("initialize", &json!({}));
            if talk.wrote("thread/list").is_some() {
                talk.reply("thread/list", &json!({"data": []}));
            }
            if talk.wrote("thread/read").is_some() {
                talk.reply("thread/read", &json!({"thread": {"id": THREAD, "model": "m"}}));
            }
            let opened = talk.written.last().unwrap().clone();
            let params = &opened["params"];
            if let Some(model) = &request.model {
                prop_assert_eq!(&params["model"], model);
            }
            if let (None, Some(more)) = (&request.system_prompt, &request.append_system_prompt) {
                prop_assert_eq!(&params["developerInstructions"], more);
            }
            if let Some(effort) = &request.effort {
                prop_assert_eq!(&params["config"]["model_reasoning_effort"], effort);
            }
            prop_assert!(!opened.to_string().contains(SECRET));
        }
    }
}

#[test]
fn servers_of_a_thread_are_configured_by_names_of_variables() {
    let mut request = RunRequest::new("x");
    request.mcp_servers.insert("my.calc".to_owned(), McpServer::stdio("calc").env("TOKEN", "s3cret").required());
    request.mcp_servers.insert("web".to_owned(), McpServer::http("http://x").bearer_token("s3cret"));
    let plan = Codex.plan(&request).unwrap();
    assert_eq!(plan.launch.env.get("TOKEN"), Some(&Some(Arg::Text("s3cret".to_owned()))));
    let mut talk = Talk::start(plan.protocol, true);
    talk.reply("initialize", &json!({}));
    let config = &talk.wrote("thread/start").unwrap()["params"]["config"];
    let calc = &config["mcp_servers"]["my_calc"];
    assert_eq!((&calc["env_vars"], &calc["required"]), (&json!(["TOKEN"]), &json!(true)));
    assert!(!config.to_string().contains("s3cret"));
    // Commands of the model do not have them.
    assert_eq!(config["shell_environment_policy.set"]["TOKEN"], "");
    // Who did not start is told with its error, and by the name that its caller gave.
    talk.refuse(
        "thread/start",
        "error creating thread: x: required MCP servers failed to initialize: my_calc: no; web: gone",
    );
    assert_eq!(talk.warned(&WarningCode::McpServerFailed), 2);
    assert_eq!(talk.result().error_code, Some(ErrorCode::Config));
}
