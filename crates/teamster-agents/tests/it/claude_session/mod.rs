//! Claude Code as a session: whose turn is whose, however its lines come.

mod background;
mod chance;
mod permissions;

use serde_json::{Value, json};
use teamster_agents::agent::{Agent as _, claude::Claude};
use teamster_agents::protocol::{Action, Command, ExitReport, Input, ProcessAction, Protocol, SessionAction};
use teamster_agents::transcript::{End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::{Event, RequestId, SteerId};
use teamster_types::request::{Answer, RunRequest};

/// Whose a turn is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    /// That of the prompt with this number.
    Sent(usize),
    Own,
}

struct Turn {
    whose: Whose,
    transcript: Transcript,
    events: Vec<Event>,
}

/// A session, driven as the driver does it.
struct Talk {
    protocol: Box<dyn Protocol>,
    turn: Option<Turn>,
    prompts: usize,
    /// The prompt that was not taken, and is to be sent again.
    untaken: Option<usize>,
    /// All that have ended, with what they said.
    ended: Vec<(Whose, String)>,
    /// What was said between turns.
    between: Vec<Event>,
    written: Vec<Value>,
    asked: Vec<RequestId>,
    steering: Vec<SteerId>,
    stopped: bool,
}

impl Talk {
    fn new(background: bool) -> Self {
        let mut frame = RunRequest::default();
        frame.background_tasks = background;
        Self::with(&frame)
    }

    fn with(frame: &RunRequest) -> Self {
        let protocol = Claude.plan_session(frame).unwrap().unwrap().protocol;
        let mut talk = Self {
            protocol,
            turn: None,
            prompts: 0,
            untaken: None,
            ended: Vec::new(),
            between: Vec::new(),
            written: Vec::new(),
            asked: Vec::new(),
            steering: Vec::new(),
            stopped: false,
        };
        talk.tell(Input::Started);
        talk
    }

    /// Sends the prompt that was not taken, or else another one.
    fn send(&mut self) {
        assert!(self.turn.is_none(), "a turn runs");
        let number = self.untaken.take().unwrap_or_else(|| {
            self.prompts += 1;
            self.prompts
        });
        self.begin(Whose::Sent(number));
        let id = SteerId::from(format!("w{}", self.written.len()));
        self.tell(Input::Command(Command::Send { id: &id, prompt: &format!("Prompt {number}.").into() }));
    }

    fn steer(&mut self) {
        if self.turn.is_none() || !self.protocol.supports_steering() {
            return;
        }
        let id = SteerId::from(format!("s{}", self.written.len()));
        self.steering.push(id.clone());
        self.tell(Input::Command(Command::Steer { id: &id, prompt: &"More.".into() }));
    }

    fn answer(&mut self, answer: &Answer) {
        if let Some(request) = self.asked.pop() {
            self.tell(Input::Command(Command::Answer { request: &request, answer }));
        }
    }

    fn line(&mut self, line: &Value) {
        self.tell(Input::Line(line.to_string().as_bytes()));
    }

    fn begin(&mut self, whose: Whose) {
        self.turn = Some(Turn { whose, transcript: Transcript::new(), events: Vec::new() });
    }

    fn tell(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Process(ProcessAction::Write(bytes)) => {
                assert_eq!(bytes.iter().position(|byte| *byte == b'\n'), Some(bytes.len() - 1), "one line");
                self.written.push(serde_json::from_slice(&bytes).unwrap());
            }
            Action::Emit(event) => {
                match &event {
                    Event::PermissionRequest(request) => self.asked.push(request.request_id.clone()),
                    Event::Question(question) => self.asked.push(question.request_id.clone()),
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
                let turn = self.turn.take().expect("no turn runs that could be untaken");
                let is_aside = |event: &Event| matches!(event, Event::Warning(_) | Event::RateLimit(_));
                assert!(turn.events.iter().all(is_aside), "said of a prompt that was not taken: {:?}", turn.events);
                let Whose::Sent(number) = turn.whose else { panic!("nobody sent this turn") };
                self.untaken = Some(number);
            }
            Action::Session(SessionAction::AgentTurnStarted) => {
                assert!(self.turn.is_none(), "a turn begins within another one");
                self.begin(Whose::Own);
            }
            // The words are a turn that the CLI has begun.
            Action::Session(SessionAction::SteerTurnStarted) => {
                assert!(!std::mem::take(&mut self.steering).is_empty(), "nothing was said too late");
                self.prompts += 1;
                self.begin(Whose::Sent(self.prompts));
            }
            Action::Session(SessionAction::Steered { id, .. }) => {
                let at = self.steering.iter().position(|other| *other == id).expect("nobody waits for this");
                self.steering.remove(at);
            }
            Action::Session(SessionAction::Withdraw(request)) => self.asked.retain(|other| *other != request),
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
        self.ended.push((turn.whose, text));
    }

    /// The process ends.
    fn exit(&mut self) {
        let exit = ExitReport { code: Some(1), ..ExitReport::default() };
        self.tell(Input::Exited(exit));
        if let Some(turn) = self.turn.take() {
            self.finish(turn, &End { exit: Some(exit), ..End::default() });
        }
    }
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s"})
}

fn says(text: &str) -> Value {
    json!({"type": "assistant", "message": {"id": text, "content": [{"type": "text", "text": text}]}})
}

/// The end of a turn that was sent.
fn result() -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": "x"})
}

/// The end of a turn that the CLI began by itself.
fn own_result() -> Value {
    let mut result = result();
    result["origin"] = json!({"kind": "task-notification"});
    result
}
