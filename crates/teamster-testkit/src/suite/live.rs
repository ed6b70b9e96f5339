//! A session's protocol: anything that the caller and the CLI may do, in any order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use teamster_protocol::event::{Event, RequestId, SteerId};
use teamster_protocol::protocol::{Action, Command, ExitReport, FromServer, Input, Protocol};
use teamster_protocol::request::{Answer, PermissionMode, Prompt};
use teamster_protocol::transcript::{End, Transcript};

use super::steps::{self, Step};
use super::{Broken, Suite};
use crate::check::check;

/// Something that happens in a session.
#[derive(Clone, Debug)]
enum Happens {
    Says(Step),
    Send,
    Steer,
    Answer { allow: bool },
    SetModel,
    SetPermissionMode,
    Close,
}

fn happens(lines: Vec<Vec<u8>>) -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => steps::step(lines).prop_map(Happens::Says),
        2 => Just(Happens::Send),
        1 => Just(Happens::Steer),
        1 => any::<bool>().prop_map(|allow| Happens::Answer { allow }),
        1 => Just(Happens::SetModel),
        1 => Just(Happens::SetPermissionMode),
        1 => Just(Happens::Close),
    ]
}

/// A session that is played.
struct Played {
    protocol: Box<dyn Protocol>,
    has_server: bool,
    transcript: Transcript,
    events: Vec<Event>,
    /// The request that the agent made last.
    asked: RequestId,
    in_turn: bool,
    sent: u32,
}

impl Suite<'_> {
    /// Plays sessions, if the agent has a form for them.
    pub(super) fn sessions(&self) -> Option<Broken> {
        let mut frame = self.request.clone();
        frame.prompt.clear();
        let has_sessions = || self.agent.plan_session(&frame).is_ok_and(|plan| plan.is_some());
        if !catch_unwind(AssertUnwindSafe(has_sessions)).unwrap_or(true) {
            return None;
        }
        let steps = proptest::collection::vec(happens(self.lines.clone()), 0..24);
        let tested = self.runner().run(&steps, |steps| {
            let played = catch_unwind(AssertUnwindSafe(|| {
                let plan = self.agent.plan_session(&frame).ok()??;
                let has_server = plan.launch.server.is_some();
                Some(Played::new(plan.protocol, has_server).play(&steps))
            }));
            match played {
                Err(_) => Err(TestCaseError::fail("the protocol panicked")),
                Ok(Some(Err(violation))) => Err(TestCaseError::fail(violation)),
                Ok(_) => Ok(()),
            }
        });
        let promise = "a session's protocol is total, and its streams keep the rules";
        tested.err().map(|error| Broken { promise, case: error.to_string() })
    }
}

impl Played {
    fn new(protocol: Box<dyn Protocol>, has_server: bool) -> Self {
        let (transcript, events, asked) = (Transcript::new(), Vec::new(), RequestId::from("none".to_owned()));
        Self { protocol, has_server, transcript, events, asked, in_turn: false, sent: 0 }
    }

    fn play(mut self, steps: &[Happens]) -> Result<(), String> {
        self.tell(Input::Started)?;
        for step in steps {
            self.step(step)?;
        }
        let exit = ExitReport { code: Some(1), signal: None, stderr: "Error: something" };
        self.tell(Input::Exited(exit))?;
        self.end(&End { exit: Some(exit), ..End::default() })
    }

    fn step(&mut self, step: &Happens) -> Result<(), String> {
        let prompt = Prompt::from("Say hello");
        let asked = self.asked.clone();
        self.sent += 1;
        let id = SteerId::from(format!("suite-{}", self.sent));
        let command = match step {
            Happens::Says(Step::Line(line)) => {
                if self.has_server {
                    self.tell(Input::Server(FromServer::Event(line)))?;
                }
                return self.tell(Input::Line(line));
            }
            Happens::Says(Step::Interrupt) => return self.tell(Input::Interrupt),
            // The last turn has had its outcome before the next one is sent.
            Happens::Send if self.in_turn => return Ok(()),
            Happens::Send => {
                self.in_turn = true;
                Command::Send { id: &id, prompt: &prompt }
            }
            Happens::Steer if self.in_turn && self.protocol.steers() => Command::Steer { id: &id, prompt: &prompt },
            Happens::Steer => return Ok(()),
            Happens::Answer { allow } => {
                let answer = if *allow { Answer::Allow { input: None } } else { Answer::Deny { message: None } };
                return self.tell(Input::Command(Command::Answer { request: &asked, answer: &answer }));
            }
            Happens::SetModel => Command::SetModel("other"),
            Happens::SetPermissionMode => Command::SetPermissionMode(PermissionMode::ReadOnly),
            Happens::Close => Command::Close,
        };
        self.tell(Input::Command(command))
    }

    fn tell(&mut self, input: Input<'_>) -> Result<(), String> {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => {
                    if let Event::PermissionRequest(request) = &event {
                        self.asked = request.request_id.clone();
                    }
                    self.transcript.push(event, &mut self.events);
                }
                Action::Outcome(outcome) => {
                    self.transcript.set_outcome(*outcome);
                    self.in_turn = false;
                    self.end(&End::default())?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A turn is over.
    fn end(&mut self, end: &End<'_>) -> Result<(), String> {
        std::mem::take(&mut self.transcript).end(end, &mut self.events);
        match check(&std::mem::take(&mut self.events)).err().unwrap_or_default().first() {
            None => Ok(()),
            Some(violation) => Err(violation.to_string()),
        }
    }
}
