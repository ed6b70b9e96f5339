//! The other side of a protocol: it answers the protocol's output, as far as that is possible
//! without knowledge of the agent.

use serde_json::{Value, json};
use teamster_agents::agent::Plan;
use teamster_agents::launch::Launch;
use teamster_agents::protocol::{Action, CallId, Command, Input, ProcessAction, Protocol, ServerAction, ServerInput};
use teamster_types::event::SteerId;
use teamster_types::request::Prompt;

/// The limit of exchanges. An agent that sends more requests does not wait for these answers.
const EXCHANGES: usize = 64;

/// The visible effect of a request: how the agent starts its CLI, and what it writes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    launch: Launch,
    written: Vec<Vec<u8>>,
}

/// An input that the protocol waits for.
enum Answer {
    Line(Vec<u8>),
    Reply { call: CallId, body: Vec<u8> },
    Event(Vec<u8>),
    TimerElapsed,
}

/// Runs a plan against the CLI's initial lines and, for a session, a prompt.
pub(super) fn observe(plan: Plan, prompt: Option<&Prompt>, greetings: &[Vec<u8>]) -> Observation {
    let Plan { launch, mut protocol } = plan;
    let mut written = Vec::new();
    let mut answers = Vec::new();
    feed(&mut *protocol, Input::Started, &mut written, &mut answers);
    for line in greetings {
        feed(&mut *protocol, Input::Line(line), &mut written, &mut answers);
    }
    answer(&mut *protocol, &mut written, &mut answers);
    if let Some(prompt) = prompt {
        let id = SteerId::from("suite".to_owned());
        feed(&mut *protocol, Input::Command(Command::Send { id: &id, prompt }), &mut written, &mut answers);
        answer(&mut *protocol, &mut written, &mut answers);
    }
    Observation { launch, written }
}

fn answer(protocol: &mut dyn Protocol, written: &mut Vec<Vec<u8>>, answers: &mut Vec<Answer>) {
    for _ in 0..EXCHANGES {
        if answers.is_empty() {
            return;
        }
        for answer in std::mem::take(answers) {
            let input = match &answer {
                Answer::Line(line) => Input::Line(line),
                Answer::Reply { call, body } => Input::Server(ServerInput::Reply { call: *call, status: 200, body }),
                Answer::Event(event) => Input::Server(ServerInput::Event(event)),
                Answer::TimerElapsed => Input::TimerElapsed,
            };
            feed(protocol, input, written, answers);
        }
    }
}

fn feed(protocol: &mut dyn Protocol, input: Input<'_>, written: &mut Vec<Vec<u8>>, answers: &mut Vec<Answer>) {
    let mut actions = Vec::new();
    protocol.handle(input, &mut actions);
    for action in actions {
        match action {
            Action::Process(ProcessAction::Write(bytes)) => {
                answers.extend(bytes.split(|byte| *byte == b'\n').filter_map(reply));
                written.push(bytes);
            }
            Action::Server(ServerAction::Call(call)) => {
                let path = call.path.split('?').next().unwrap_or_default();
                // The result of these paths is a list and a map.
                let body = match path {
                    "/session" if call.method.as_str() == "GET" => json!([]),
                    "/mcp" => json!({}),
                    _ => anything(),
                };
                answers.push(Answer::Reply { call: call.id, body: body.to_string().into_bytes() });
                written.push([call.path.as_bytes(), b" ", call.body.as_deref().unwrap_or_default()].concat());
            }
            Action::Server(ServerAction::Subscribe { .. }) => {
                let event = json!({"id": "evt_1", "type": "server.connected", "properties": {}});
                answers.push(Answer::Event(event.to_string().into_bytes()));
            }
            Action::SetTimer(_) | Action::ClearTimer => {
                answers.retain(|answer| !matches!(answer, Answer::TimerElapsed));
                // It elapses after all other answers.
                answers.extend(matches!(action, Action::SetTimer(_)).then_some(Answer::TimerElapsed));
            }
            _ => {}
        }
    }
}

/// Returns the response to a JSON-RPC request, or `None` for any other line.
fn reply(line: &[u8]) -> Option<Answer> {
    let request: Value = serde_json::from_slice(line).ok()?;
    let (id, _) = (request.get("id")?, request.get("method")?);
    Some(Answer::Line(json!({"jsonrpc": "2.0", "id": id, "result": anything()}).to_string().into_bytes()))
}

/// Returns all result fields of the known protocols together: a reader ignores unknown fields.
fn anything() -> Value {
    let modes: Vec<_> = ["default", "plan", "ask", "autoEdit", "yolo"].map(|id| json!({"id": id, "name": id})).into();
    json!({
        "protocolVersion": 1, "authMethods": [], "agentInfo": {"name": "suite", "title": "Suite", "version": "1.0.0"},
        "agentCapabilities": {
            "loadSession": true, "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": true},
        },
        "sessionId": "suite", "modes": {"availableModes": modes, "currentModeId": "default"},
        "models": {"availableModels": [], "currentModelId": "suite"},
        "userAgent": "suite", "platformFamily": "unix", "platformOs": "linux", "cwd": super::requests::CWD, "model": "suite",
        "thread": {"id": "suite", "cliVersion": "1.0.0"}, "data": [],
        "turn": {"id": "suite", "status": "inProgress", "items": [], "error": null},
        "id": "ses_dff927d83ffeURFKuimpze0qb5", "directory": super::requests::CWD, "version": "1.0.0", "title": "Suite",
    })
}
