//! Sessions of Claude Code: each line belongs to one turn, in any order of lines.

mod background;
mod permissions;
mod properties;

use serde_json::{Value, json};
use teamster_agents::agent::{Agent as _, claude::Claude};
use teamster_agents::protocol::{Action, Command, ExitReport, Input, ProcessAction, Protocol, SessionAction};
use teamster_agents::transcript::{End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::{Event, RequestId, SteerId};
use teamster_types::request::{Answer, RunRequest};

/// The side that started a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// The prompt with this number.
    Prompt(usize),
    /// The agent itself.
    Agent,
}

struct Turn {
    owner: Owner,
    transcript: Transcript,
    events: Vec<Event>,
}

/// A session with the same calls that the driver makes.
struct TestSession {
    protocol: Box<dyn Protocol>,
    turn: Option<Turn>,
    prompts: usize,
    /// The prompt that the CLI did not accept. It is sent again.
    not_accepted: Option<usize>,
    /// The ended turns, with their texts.
    ended: Vec<(Owner, String)>,
    /// Events between turns.
    between: Vec<Event>,
    written: Vec<Value>,
    pending: Vec<RequestId>,
    steering: Vec<SteerId>,
    stopped: bool,
}

impl TestSession {
    fn new(background: bool) -> Self {
        let mut request = RunRequest::default();
        request.background_tasks = background;
        Self::with(&request)
    }

    fn with(request: &RunRequest) -> Self {
        let protocol = Claude.plan_session(request).unwrap().unwrap().protocol;
        let mut session = Self {
            protocol,
            turn: None,
            prompts: 0,
            not_accepted: None,
            ended: Vec::new(),
            between: Vec::new(),
            written: Vec::new(),
            pending: Vec::new(),
            steering: Vec::new(),
            stopped: false,
        };
        session.handle(Input::Started);
        session
    }

    /// Sends the prompt that was not accepted, or else another one.
    fn send(&mut self) {
        assert!(self.turn.is_none(), "a turn runs");
        let number = self.not_accepted.take().unwrap_or_else(|| {
            self.prompts += 1;
            self.prompts
        });
        self.start_turn(Owner::Prompt(number));
        let id = SteerId::from(format!("w{}", self.written.len()));
        self.handle(Input::Command(Command::Send { id: &id, prompt: &format!("Prompt {number}.").into() }));
    }

    fn steer(&mut self) {
        if self.turn.is_none() || !self.protocol.supports_steering() {
            return;
        }
        let id = SteerId::from(format!("s{}", self.written.len()));
        self.steering.push(id.clone());
        self.handle(Input::Command(Command::Steer { id: &id, prompt: &"More.".into() }));
    }

    fn answer(&mut self, answer: &Answer) {
        if let Some(request) = self.pending.pop() {
            self.handle(Input::Command(Command::Answer { request: &request, answer }));
        }
    }

    fn line(&mut self, line: &Value) {
        self.handle(Input::Line(line.to_string().as_bytes()));
    }

    fn start_turn(&mut self, owner: Owner) {
        self.turn = Some(Turn { owner, transcript: Transcript::new(), events: Vec::new() });
    }

    fn handle(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            self.apply(action);
        }
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Process(ProcessAction::Write(bytes)) => {
                assert_eq!(bytes.iter().position(|byte| *byte == b'\n'), Some(bytes.len() - 1), "one line");
                self.written.push(serde_json::from_slice(&bytes).unwrap());
            }
            Action::Emit(event) => {
                match &event {
                    Event::PermissionRequest(request) => self.pending.push(request.request_id.clone()),
                    Event::Question(question) => self.pending.push(question.request_id.clone()),
                    _ => {}
                }
                match &mut self.turn {
                    Some(turn) => turn.transcript.push(event, &mut turn.events),
                    None => self.between.push(event),
                }
            }
            Action::Outcome(outcome) => {
                if let Some(mut turn) = self.turn.take() {
                    turn.transcript.set_outcome(*outcome);
                    self.finish(turn, &End::default());
                }
            }
            Action::Session(SessionAction::PromptNotAccepted) => {
                let turn = self.turn.take().expect("no turn runs");
                let is_notice = |event: &Event| matches!(event, Event::Warning(_) | Event::RateLimit(_));
                assert!(
                    turn.events.iter().all(is_notice),
                    "events of a prompt that was not accepted: {:?}",
                    turn.events
                );
                let Owner::Prompt(number) = turn.owner else { panic!("no prompt started this turn") };
                self.not_accepted = Some(number);
            }
            Action::Session(SessionAction::AgentTurnStarted) => {
                assert!(self.turn.is_none(), "a turn starts within another one");
                self.start_turn(Owner::Agent);
            }
            // The CLI has started a turn with the late prompt.
            Action::Session(SessionAction::SteerTurnStarted) => {
                assert!(!std::mem::take(&mut self.steering).is_empty(), "no prompt was sent during the turn");
                self.prompts += 1;
                self.start_turn(Owner::Prompt(self.prompts));
            }
            Action::Session(SessionAction::Steered { id, .. }) => {
                let at = self.steering.iter().position(|other| *other == id).expect("the prompt was sent");
                self.steering.remove(at);
            }
            Action::Session(SessionAction::Withdraw(request)) => self.pending.retain(|other| *other != request),
            Action::Process(ProcessAction::Stop) => self.stopped = true,
            _ => {}
        }
    }

    fn finish(&mut self, mut turn: Turn, end: &End<'_>) {
        turn.transcript.end(end, &mut turn.events);
        assert_eq!(check(&turn.events), Ok(()), "{:#?}", turn.events);
        let text = turn.events.iter().filter_map(|event| match event {
            Event::Text(delta) => Some(delta.text.as_str()),
            _ => None,
        });
        let text = text.collect();
        self.ended.push((turn.owner, text));
    }

    /// Ends the process.
    fn exit(&mut self) {
        let exit = ExitReport { code: Some(1), ..ExitReport::default() };
        self.handle(Input::Exited(exit));
        if let Some(turn) = self.turn.take() {
            self.finish(turn, &End { exit: Some(exit), ..End::default() });
        }
    }
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s"})
}

fn assistant(text: &str) -> Value {
    json!({"type": "assistant", "message": {"id": text, "content": [{"type": "text", "text": text}]}})
}

/// Returns the end of a turn that a prompt started.
fn result() -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": "x"})
}

/// Returns the end of a turn that the CLI started by itself.
fn agent_turn_result() -> Value {
    let mut result = result();
    result["origin"] = json!({"kind": "task-notification"});
    result
}
