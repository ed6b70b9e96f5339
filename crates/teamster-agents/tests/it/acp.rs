//! The ACP client in sessions: its calls and their order, and its responses.

mod properties;
mod session_setup;
mod turns;

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
        let mut session = Self { protocol, written, events, outcomes, withdrawn, restarts: false };
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

    /// Sends the result of the last call.
    fn answer(&mut self, result: &Value) {
        let id = self.last_call()["id"].clone();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn fail(&mut self, error: &Value) {
        let id = self.last_call()["id"].clone();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
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
