//! The ACP client in sessions: its calls and their order, and its responses.

mod properties;
mod questions;
mod quiet;
mod session_setup;
mod turns;
mod unrequested;

use std::time::Duration;

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, acp::Acp};
use teamster_agents::protocol::{Action, Command, Input, Outcome, ProcessAction, Protocol, SessionAction};
use teamster_types::event::{ErrorCode, Event, RequestId};
use teamster_types::request::{Prompt, RunRequest};

use crate::subject::complete_request;

/// A session whose agent is session line by line.
struct TestSession {
    protocol: Box<dyn Protocol>,
    written: Vec<Value>,
    events: Vec<Event>,
    outcomes: Vec<Outcome>,
    withdrawn: Vec<RequestId>,
    restarts: bool,
    stops: bool,
    /// The time after which the protocol's timer elapses.
    timer: Option<Duration>,
}

fn session_request() -> RunRequest {
    let mut request = complete_request("");
    request.prompt.clear();
    request
}

impl TestSession {
    fn of(agent: &dyn Agent, request: &RunRequest) -> Self {
        let protocol = agent.plan_session(request).unwrap().unwrap().protocol;
        let (written, events, outcomes, withdrawn) = Default::default();
        let mut session =
            Self { protocol, written, events, outcomes, withdrawn, restarts: false, stops: false, timer: None };
        session.handle(Input::Started);
        session
    }

    fn new(request: &RunRequest) -> Self {
        Self::of(&Acp::any(), request)
    }

    /// Returns an open session, with these fields in the result of the call that opened it.
    fn open(request: &RunRequest, opened: &Value) -> Self {
        let mut session = Self::new(request);
        session.initialize(&json!({}));
        let mut result = json!({"sessionId": "s"});
        result.as_object_mut().unwrap().extend(opened.as_object().unwrap().clone());
        session.answer(&result);
        session
    }

    fn handle(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Process(ProcessAction::Write(bytes)) => {
                    self.written.push(serde_json::from_slice(&bytes).unwrap());
                }
                Action::Emit(event) => self.events.push(event),
                Action::Outcome(outcome) => self.outcomes.push(*outcome),
                Action::Session(SessionAction::Withdraw(id)) => self.withdrawn.push(id),
                Action::Session(SessionAction::RestartProcess) => self.restarts = true,
                Action::Process(ProcessAction::Stop) => self.stops = true,
                Action::SetTimer(after) => self.timer = Some(after),
                Action::ClearTimer => self.timer = None,
                _ => {}
            }
        }
    }

    fn line(&mut self, line: &Value) {
        self.handle(Input::Line(line.to_string().as_bytes()));
    }

    fn initialize(&mut self, capabilities: &Value) {
        self.answer(&json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
    }

    /// Lets the protocol's timer elapse until it is not set any more.
    fn quiet(&mut self) {
        while self.timer.take().is_some() {
            self.handle(Input::TimerElapsed);
        }
    }

    /// Sends the result of the last call. The agent is quiet then.
    fn answer(&mut self, result: &Value) {
        self.respond(result);
        self.quiet();
    }

    /// Sends the result of the last call.
    fn respond(&mut self, result: &Value) {
        let id = self.last_call()["id"].clone();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Sends the error of the last call. The agent is quiet then.
    fn fail(&mut self, error: &Value) {
        let id = self.last_call()["id"].clone();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        self.quiet();
    }

    fn chunk(&mut self, text: &str) {
        self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}));
    }

    /// Returns the text of the events so far.
    fn text(&self) -> String {
        let text = |event: &Event| match event {
            Event::Text(delta) => Some(delta.text.as_str().to_owned()),
            _ => None,
        };
        self.events.iter().filter_map(text).collect()
    }

    /// Returns the messages of the warnings so far.
    fn warnings(&self) -> Vec<String> {
        let message = |event: &Event| match event {
            Event::Warning(warning) => Some(warning.message.as_str().to_owned()),
            _ => None,
        };
        self.events.iter().filter_map(message).collect()
    }

    fn last_call(&self) -> &Value {
        let is_call = |line: &&Value| line.get("method").is_some() && line.get("id").is_some();
        self.written.iter().rev().find(is_call).unwrap()
    }

    fn update(&mut self, update: &Value) {
        self.line(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}),
        );
    }

    /// Sends a permission request.
    fn ask(&mut self, id: u64, kind: &str) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
            "sessionId": "s",
            "toolCall": {"toolCallId": format!("call-{id}"), "title": "do it", "kind": kind, "status": "pending"},
            "options": [
                {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                {"optionId": "no", "name": "No", "kind": "reject_once"},
            ],
        }}));
    }

    fn send(&mut self, text: &str) {
        self.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &Prompt::from(text) }));
    }

    fn methods(&self) -> Vec<&str> {
        self.written.iter().filter_map(|line| line.get("method")?.as_str()).collect()
    }

    /// Returns the responses to a request of the agent.
    fn responses(&self, id: u64) -> Vec<&Value> {
        let is_reply = |line: &&Value| line.get("method").is_none() && line["id"] == id;
        self.written.iter().filter(is_reply).collect()
    }

    fn requests(&self) -> Vec<RequestId> {
        let id = |event: &Event| match event {
            Event::PermissionRequest(request) => Some(request.request_id.clone()),
            Event::Question(question) => Some(question.request_id.clone()),
            _ => None,
        };
        self.events.iter().filter_map(id).collect()
    }

    fn failure(&self) -> (ErrorCode, String) {
        let failure = self.outcomes.last().unwrap().failure.clone().unwrap();
        (failure.code, failure.message.into_string())
    }
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}
