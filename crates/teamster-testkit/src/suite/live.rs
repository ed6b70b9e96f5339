//! Property tests of a session's protocol: any input from the caller and the CLI, in any order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use teamster_agents::protocol::{Action, Command, ExitReport, Input, Protocol, ServerInput};
use teamster_agents::transcript::{End, Transcript};
use teamster_types::event::{Event, RequestId, SteerId};
use teamster_types::request::{Answer, PermissionMode, Prompt};

use super::steps::{self, Step};
use super::{BrokenPromise, Suite};
use crate::check::check;

/// An input of a session.
#[derive(Clone, Debug)]
enum SessionStep {
    Output(Step),
    Send,
    Steer,
    Answer { allow: bool },
    SetModel,
    SetPermissionMode,
    Close,
}

fn session_step(lines: Vec<Vec<u8>>) -> impl Strategy<Value = SessionStep> {
    prop_oneof![
        8 => steps::step(lines).prop_map(SessionStep::Output),
        2 => Just(SessionStep::Send),
        1 => Just(SessionStep::Steer),
        1 => any::<bool>().prop_map(|allow| SessionStep::Answer { allow }),
        1 => Just(SessionStep::SetModel),
        1 => Just(SessionStep::SetPermissionMode),
        1 => Just(SessionStep::Close),
    ]
}

/// A session that is being tested.
struct SessionRun {
    protocol: Box<dyn Protocol>,
    has_server: bool,
    transcript: Transcript,
    events: Vec<Event>,
    /// The id of the agent's last permission request.
    last_request: RequestId,
    in_turn: bool,
    is_timer_set: bool,
    sent: u32,
}

impl Suite<'_> {
    /// Tests sessions, if the agent supports them.
    pub(super) fn sessions(&self) -> Option<BrokenPromise> {
        let mut frame = self.request.clone();
        frame.prompt.clear();
        let has_sessions = || self.agent.plan_session(&frame).is_ok_and(|plan| plan.is_some());
        if !catch_unwind(AssertUnwindSafe(has_sessions)).unwrap_or(true) {
            return None;
        }
        let steps = proptest::collection::vec(session_step(self.lines.clone()), 0..24);
        let tested = self.runner().run(&steps, |steps| {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let plan = self.agent.plan_session(&frame).ok()??;
                let has_server = plan.launch.server.is_some();
                Some(SessionRun::new(plan.protocol, has_server).play(&steps))
            }));
            match outcome {
                Err(_) => Err(TestCaseError::fail("the protocol panicked")),
                Ok(Some(Err(violation))) => Err(TestCaseError::fail(violation)),
                Ok(_) => Ok(()),
            }
        });
        let promise = "a session's protocol is total, and its streams follow the rules";
        tested.err().map(|error| BrokenPromise { promise, case: error.to_string() })
    }
}

impl SessionRun {
    fn new(protocol: Box<dyn Protocol>, has_server: bool) -> Self {
        let (transcript, events, last_request) = (Transcript::new(), Vec::new(), RequestId::from("none".to_owned()));
        Self { protocol, has_server, transcript, events, last_request, in_turn: false, is_timer_set: false, sent: 0 }
    }

    fn play(mut self, steps: &[SessionStep]) -> Result<(), String> {
        self.input(Input::Started)?;
        for step in steps {
            self.step(step)?;
        }
        let exit = ExitReport { code: Some(1), signal: None, stderr: "Error: something" };
        self.input(Input::Exited(exit))?;
        self.end(&End { exit: Some(exit), ..End::default() })
    }

    fn step(&mut self, step: &SessionStep) -> Result<(), String> {
        let prompt = Prompt::from("Say hello");
        let last_request = self.last_request.clone();
        self.sent += 1;
        let id = SteerId::from(format!("suite-{}", self.sent));
        let command = match step {
            SessionStep::Output(Step::Line(line)) => {
                if self.has_server {
                    self.input(Input::Server(ServerInput::Event(line)))?;
                }
                return self.input(Input::Line(line));
            }
            SessionStep::Output(Step::Interrupt) => return self.input(Input::Interrupt),
            SessionStep::Output(Step::TimerElapsed) => {
                let is_set = std::mem::take(&mut self.is_timer_set);
                return if is_set { self.input(Input::TimerElapsed) } else { Ok(()) };
            }
            // The driver sends a new prompt only after the previous turn's outcome.
            SessionStep::Send if self.in_turn => return Ok(()),
            SessionStep::Send => {
                self.in_turn = true;
                Command::Send { id: &id, prompt: &prompt }
            }
            SessionStep::Steer if self.in_turn && self.protocol.supports_steering() => {
                Command::Steer { id: &id, prompt: &prompt }
            }
            SessionStep::Steer => return Ok(()),
            SessionStep::Answer { allow } => {
                let answer = if *allow { Answer::Allow { input: None } } else { Answer::Deny { message: None } };
                return self.input(Input::Command(Command::Answer { request: &last_request, answer: &answer }));
            }
            SessionStep::SetModel => Command::SetModel("other"),
            SessionStep::SetPermissionMode => Command::SetPermissionMode(PermissionMode::ReadOnly),
            SessionStep::Close => Command::Close,
        };
        self.input(Input::Command(command))
    }

    fn input(&mut self, input: Input<'_>) -> Result<(), String> {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => {
                    if let Event::PermissionRequest(request) = &event {
                        self.last_request = request.request_id.clone();
                    }
                    self.transcript.push(event, &mut self.events);
                }
                Action::Outcome(outcome) => {
                    self.transcript.set_outcome(*outcome);
                    self.in_turn = false;
                    self.end(&End::default())?;
                }
                Action::SetTimer(_) => self.is_timer_set = true,
                Action::ClearTimer => self.is_timer_set = false,
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends a turn and checks its events.
    fn end(&mut self, end: &End<'_>) -> Result<(), String> {
        std::mem::take(&mut self.transcript).end(end, &mut self.events);
        match check(&std::mem::take(&mut self.events)).err().unwrap_or_default().first() {
            None => Ok(()),
            Some(violation) => Err(violation.to_string()),
        }
    }
}
