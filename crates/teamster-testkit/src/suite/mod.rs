//! A suite for anybody's [`Agent`]: what every agent owes to whoever runs it, held against chance.
//!
//! ```
//! use teamster_protocol::agent::claude::Claude;
//! use teamster_testkit::suite::Suite;
//!
//! let suite = Suite::new(&Claude).line(r#"{"type":"result","subtype":"success","is_error":false,"result":"hi"}"#);
//! suite.cases(64).run().expect("the agent keeps its promises");
//! ```
//!
//! - **Arguments are safe.** No value of a request becomes an argument of its own that begins with a dash; no secret
//!   stands in an argument at all.
//! - **The protocol is total.** Any lines in any order, cut and damaged, with an interrupt and the exit anywhere: no panic.
//! - **The stream keeps its rules**, whatever the lines were: [`check`](crate::check) finds nothing.
//! - **A session's protocol is total too**, where the agent has one: any orders of the caller's between any lines.
//! - **No option is ignored**: a schema, deny rules, MCP servers and `read-only` change how the CLI is started or what it is
//!   told, or are refused.
//!
//! Cases are made by proptest, and the smallest one that fails is told.

mod live;
mod options;
mod peer;
mod requests;
mod steps;

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use teamster_protocol::agent::Agent;
use teamster_protocol::event::Event;
use teamster_protocol::protocol::{Action, ExitReport, Input};
use teamster_protocol::request::RunRequest;
use teamster_protocol::transcript::{End, Transcript};

use crate::check::check;
use steps::Step;

/// What an agent does not keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{promise}: {case}")]
#[non_exhaustive]
pub struct Broken {
    /// The promise, in a sentence.
    pub promise: &'static str,
    /// The smallest case that breaks it, and how.
    pub case: String,
}

/// The suite over one agent.
pub struct Suite<'a> {
    agent: &'a dyn Agent,
    request: RunRequest,
    lines: Vec<Vec<u8>>,
    greetings: Vec<Vec<u8>>,
    without_tools: bool,
    cases: u32,
}

impl<'a> Suite<'a> {
    /// A suite over this agent.
    pub fn new(agent: &'a dyn Agent) -> Self {
        let request = requests::placed(RunRequest::new("Say hello"));
        Self { agent, request, lines: Vec::new(), greetings: Vec::new(), without_tools: false, cases: 256 }
    }

    /// The request under which lines are read, where a plain one will not do.
    pub fn request(mut self, request: RunRequest) -> Self {
        self.request = request;
        self
    }

    /// Adds a line as the CLI writes it; lines are mixed, cut and damaged. The more kinds, the deeper the suite looks.
    pub fn line(mut self, line: impl AsRef<[u8]>) -> Self {
        self.lines.push(line.as_ref().to_vec());
        self
    }

    /// Adds a line that the CLI writes at its start, before it is told anything, where the protocol waits for one.
    ///
    /// The suite looks whether an option makes a difference to what the CLI is told. Requests by JSON-RPC are answered with the
    /// fields that known protocols need; a protocol that waits for something else has to be helped with this.
    pub fn greeting(mut self, line: impl AsRef<[u8]>) -> Self {
        self.greetings.push(line.as_ref().to_vec());
        self
    }

    /// The agent has no tools, and cannot change anything: `read-only` holds by itself.
    pub fn without_tools(mut self) -> Self {
        self.without_tools = true;
        self
    }

    /// How many cases each promise is held against; 256 unless told.
    pub fn cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// Runs it.
    ///
    /// # Errors
    /// Every promise that does not hold.
    pub fn run(&self) -> Result<(), Vec<Broken>> {
        let played = [self.arguments(), self.streams(), self.sessions()];
        let broken: Vec<_> = played.into_iter().flatten().chain(self.options()).collect();
        if broken.is_empty() { Ok(()) } else { Err(broken) }
    }

    fn runner(&self) -> TestRunner {
        TestRunner::new(Config { cases: self.cases, failure_persistence: None, ..Config::default() })
    }

    fn arguments(&self) -> Option<Broken> {
        let tested = self.runner().run(&requests::case(), |case| {
            let request = case.request();
            let refused = request.validate().is_err()
                || self
                    .agent
                    .abilities()
                    .is_some_and(|abilities| abilities.check(self.agent.name(), &request).is_err());
            if refused {
                return Ok(());
            }
            match self.agent.plan(&request) {
                Ok(plan) => requests::look_at(&plan.launch, &case).map_err(TestCaseError::fail),
                Err(_) => Ok(()),
            }
        });
        let promise = "no value becomes a flag, and no secret stands in an argument";
        tested.err().map(|error| Broken { promise, case: error.to_string() })
    }

    fn streams(&self) -> Option<Broken> {
        let steps = proptest::collection::vec(steps::step(self.lines.clone()), 0..24);
        let tested = self.runner().run(&steps, |steps| {
            let played = catch_unwind(AssertUnwindSafe(|| self.play(&steps)));
            let events = played.map_err(|_| TestCaseError::fail("the protocol panicked"))?;
            let violations = match events {
                Some(events) => check(&events).err().unwrap_or_default(),
                None => return Err(TestCaseError::fail("the agent refuses the suite's request")),
            };
            match violations.first() {
                None => Ok(()),
                Some(violation) => Err(TestCaseError::fail(violation.to_string())),
            }
        });
        let promise = "the protocol is total, and its stream keeps the rules";
        tested.err().map(|error| Broken { promise, case: error.to_string() })
    }

    fn play(&self, steps: &[Step]) -> Option<Vec<Event>> {
        let mut protocol = self.agent.plan(&self.request).ok()?.protocol;
        let (mut transcript, mut events) = (Transcript::new(), Vec::new());
        let mut tell = |input: Input<'_>, transcript: &mut Transcript, events: &mut Vec<Event>| {
            let mut actions = Vec::new();
            protocol.handle(input, &mut actions);
            for action in actions {
                match action {
                    Action::Emit(event) => transcript.push(event, events),
                    Action::Outcome(outcome) => transcript.set_outcome(*outcome),
                    _ => {}
                }
            }
        };
        tell(Input::Started, &mut transcript, &mut events);
        for step in steps {
            match step {
                Step::Line(line) => tell(Input::Line(line), &mut transcript, &mut events),
                Step::Interrupt => tell(Input::Interrupt, &mut transcript, &mut events),
            }
        }
        let exit = ExitReport { code: Some(1), signal: None, stderr: "Error: something" };
        tell(Input::Exited(exit), &mut transcript, &mut events);
        transcript.end(&End { exit: Some(exit), ..End::default() }, &mut events);
        Some(events)
    }
}

impl std::fmt::Debug for Suite<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines = self.lines.len();
        formatter
            .debug_struct("Suite")
            .field("agent", &self.agent.name())
            .field("lines", &lines)
            .finish_non_exhaustive()
    }
}
