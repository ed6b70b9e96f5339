//! The other side of a protocol: answers what the protocol writes, as far as that can be done without knowing the agent.

use serde_json::{Value, json};
use teamster_protocol::agent::Plan;
use teamster_protocol::event::SteerId;
use teamster_protocol::launch::Launch;
use teamster_protocol::protocol::{Action, CallId, Command, FromServer, Input, Protocol};
use teamster_protocol::request::Prompt;

/// The longest exchange: an agent that asks more is not waiting for the answers that are given here.
const EXCHANGES: usize = 64;

/// What an agent does with a request, as far as it can be seen from outside: how it starts its CLI, and what it tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    launch: Launch,
    told: Vec<Vec<u8>>,
}

/// Something that the protocol waits for.
enum Answer {
    Line(Vec<u8>),
    Reply { call: CallId, body: Vec<u8> },
    Event(Vec<u8>),
}

/// Starts a plan, tells the protocol the lines that the CLI begins with, and a prompt where it is one of a session.
pub(super) fn watch(plan: Plan, prompt: Option<&Prompt>, greetings: &[Vec<u8>]) -> Seen {
    let Plan { launch, mut protocol } = plan;
    let mut told = Vec::new();
    let mut answers = Vec::new();
    hear(&mut *protocol, Input::Started, &mut told, &mut answers);
    for line in greetings {
        hear(&mut *protocol, Input::Line(line), &mut told, &mut answers);
    }
    answer(&mut *protocol, &mut told, &mut answers);
    if let Some(prompt) = prompt {
        let id = SteerId::from("suite".to_owned());
        hear(&mut *protocol, Input::Command(Command::Send { id: &id, prompt }), &mut told, &mut answers);
        answer(&mut *protocol, &mut told, &mut answers);
    }
    Seen { launch, told }
}

fn answer(protocol: &mut dyn Protocol, told: &mut Vec<Vec<u8>>, answers: &mut Vec<Answer>) {
    for _ in 0..EXCHANGES {
        if answers.is_empty() {
            return;
        }
        for answer in std::mem::take(answers) {
            let input = match &answer {
                Answer::Line(line) => Input::Line(line),
                Answer::Reply { call, body } => Input::Server(FromServer::Reply { call: *call, status: 200, body }),
                Answer::Event(event) => Input::Server(FromServer::Event(event)),
            };
            hear(protocol, input, told, answers);
        }
    }
}

fn hear(protocol: &mut dyn Protocol, input: Input<'_>, told: &mut Vec<Vec<u8>>, answers: &mut Vec<Answer>) {
    let mut actions = Vec::new();
    protocol.handle(input, &mut actions);
    for action in actions {
        match action {
            Action::Write(bytes) => {
                answers.extend(bytes.split(|byte| *byte == b'\n').filter_map(reply));
                told.push(bytes);
            }
            Action::Call(call) => {
                let path = call.path.split('?').next().unwrap_or_default();
                // What is asked for without a name of its own is a list, or a table.
                let body = match path {
                    "/session" if call.method.as_str() == "GET" => json!([]),
                    "/mcp" => json!({}),
                    _ => anything(),
                };
                answers.push(Answer::Reply { call: call.id, body: body.to_string().into_bytes() });
                told.push([call.path.as_bytes(), b" ", call.body.as_deref().unwrap_or_default()].concat());
            }
            Action::Listen { .. } => {
                let event = json!({"id": "evt_1", "type": "server.connected", "properties": {}});
                answers.push(Answer::Event(event.to_string().into_bytes()));
            }
            _ => {}
        }
    }
}

/// The answer to a request by JSON-RPC, which a line that asks for nothing has not.
fn reply(line: &[u8]) -> Option<Answer> {
    let request: Value = serde_json::from_slice(line).ok()?;
    let (id, _) = (request.get("id")?, request.get("method")?);
    Some(Answer::Line(json!({"jsonrpc": "2.0", "id": id, "result": anything()}).to_string().into_bytes()))
}

/// Fields that requests of known protocols are answered with, all together: what a reader does not know it passes over.
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
