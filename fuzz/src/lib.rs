//! Fuzz targets. A protocol gets any bytes as output, in pieces of any size, and its events must keep the rules of the stream. A
//! document is any text, and must be restored unchanged.

mod server;
mod stores;
#[path = "../../crates/teamster-agents/tests/it/rules_shell/stub_shell.rs"]
mod stub_shell;

pub use server::server;
pub use stores::session_stores;

use bytes::BufMut as _;
use serde_json::json;
use teamster_agents::agent::Agent;
use teamster_agents::protocol::{Action, Command, ExitReport, Input, Protocol, SessionAction};
use teamster_agents::transcript::{End, Transcript};
use teamster_config::document::{DocumentError, Entries, Format, Location, merge, take_out};
use teamster_process::{Frame, LineFramer};
use teamster_testkit::check::check;
use teamster_types::event::{Event, RequestId};
use teamster_types::request::{AgentInterface, Answer, Conversation, OutputMode, PermissionMode, RunRequest};

/// The maximum length of a line. The driver also skips longer lines than its limit.
const MAX_LINE: usize = 8 << 10;

thread_local! {
    static SHELL: stub_shell::StubShell = stub_shell::StubShell::new().expect("a directory with stubs");
}

/// Runs the commands that a rule for `git diff` allows, with stubs as programs. Few random texts are commands, so each text is also
/// used as arguments.
pub fn rules(text: &str) {
    SHELL.with(|shell| {
        for command in [text.to_owned(), format!("git diff {text}"), format!("bash -c 'git diff {text}'")] {
            if shell.allows(&command)
                && let Err(problem) = shell.check(&command)
            {
                panic!("{problem}");
            }
        }
    });
}

/// Feeds the bytes to the agent's protocol like the driver. The first byte selects the output mode, the position of an interrupt,
/// and the size of the pieces.
pub fn protocol(agent: &dyn Agent, bytes: &[u8]) {
    let Some((&choice, lines)) = bytes.split_first() else { return };
    let mut request = RunRequest::new("fuzz");
    // The corpus has lines of this interface.
    request.interface = AgentInterface::Exec;
    request.output = if choice & 1 == 1 { OutputMode::Batch } else { OutputMode::Stream };
    let Ok(plan) = agent.plan(&request) else { return };
    let mut protocol = plan.protocol;
    let (mut transcript, mut events) = (Transcript::new(), Vec::<Event>::new());
    let mut handle = |input: Input<'_>| {
        let mut actions = Vec::new();
        protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => transcript.push(event, &mut events),
                Action::Outcome(outcome) => transcript.set_outcome(*outcome),
                _ => {}
            }
        }
    };
    handle(Input::Started);
    let mut number = 0;
    let mut frame = |frame: Frame<'_>| {
        if number == usize::from(choice >> 1) {
            handle(Input::Interrupt);
        }
        number += 1;
        if let Frame::Line(line) | Frame::Unterminated(line) = frame {
            handle(Input::Line(line));
        }
    };
    let mut framer = LineFramer::new(MAX_LINE);
    for piece in lines.chunks(usize::from(choice) * usize::from(choice) + 1) {
        framer.space().put_slice(piece);
        while let Some(next) = framer.next() {
            frame(next);
        }
    }
    while let Some(last) = framer.finish() {
        frame(last);
    }
    let exit = ExitReport { code: Some(i32::from(choice & 1)), signal: None, stderr: "" };
    handle(Input::Exited(exit));
    transcript.end(&End { exit: Some(exit), ..End::default() }, &mut events);
    assert_eq!(check(&events), Ok(()), "{events:#?}");
}

/// Feeds the bytes to the agent's session, turn by turn. The first byte decides how often commands are sent between the lines.
pub fn session(agent: &dyn Agent, bytes: &[u8]) {
    session_with(false, agent, bytes);
}

/// Like [`session`], with or without background tasks.
pub fn session_with(background: bool, agent: &dyn Agent, bytes: &[u8]) {
    let Some((&choice, lines)) = bytes.split_first() else { return };
    let mut request = RunRequest::default();
    (request.cwd, request.cli_path) = (Some("/home/dev/project".into()), Some("agent".into()));
    request.background_tasks = background;
    if choice & 2 == 2 {
        request.conversation = Conversation::Resume("00000000-0000-4000-8000-000000000001".into());
    }
    let Some(plan) = agent.plan_session(&request).expect("every agent accepts the request") else { return };
    let mut session = FuzzSession { protocol: plan.protocol, turn: None, pending: Vec::new() };
    session.handle(Input::Started);
    for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        session.command(number.wrapping_mul(usize::from(choice) | 1));
        session.handle(Input::Line(line));
    }
}

/// A session whose turns are checked.
struct FuzzSession {
    protocol: Box<dyn Protocol>,
    turn: Option<(Transcript, Vec<Event>)>,
    /// Requests that wait for an answer.
    pending: Vec<RequestId>,
}

impl FuzzSession {
    /// Sends the command that the number selects, if any.
    fn command(&mut self, number: usize) {
        if self.turn.is_none() && number % 3 == 0 {
            self.turn = Some(Default::default());
            self.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &"x".into() }));
        } else if number % 7 == 0 && self.turn.is_some() {
            self.handle(Input::Interrupt);
        } else if number % 5 == 0
            && let Some(request) = self.pending.pop()
        {
            let answer =
                if number % 2 == 0 { Answer::AllowAlways } else { Answer::Deny { message: Some("$x".into()) } };
            self.handle(Input::Command(Command::Answer { request: &request, answer: &answer }));
        } else if number % 11 == 0 {
            self.handle(Input::Command(Command::SetModel("m")));
        } else if number % 13 == 0 {
            let mode = if number % 2 == 0 { PermissionMode::ReadOnly } else { PermissionMode::Full };
            self.handle(Input::Command(Command::SetPermissionMode(mode)));
        }
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
            Action::Emit(event) => {
                match &event {
                    Event::PermissionRequest(request) => self.pending.push(request.request_id.clone()),
                    Event::Question(question) => self.pending.push(question.request_id.clone()),
                    _ => {}
                }
                if let Some((transcript, events)) = &mut self.turn {
                    transcript.push(event, events);
                }
            }
            Action::Session(SessionAction::Withdraw(request)) => self.pending.retain(|other| *other != request),
            Action::Session(SessionAction::PromptNotAccepted) => drop(self.turn.take().expect("a turn runs")),
            Action::Session(SessionAction::AgentTurnStarted) | Action::Session(SessionAction::SteerTurnStarted) => {
                assert!(self.turn.is_none(), "a turn starts within another one");
                self.turn = Some(Default::default());
            }
            Action::Outcome(outcome) => {
                if let Some((mut transcript, mut events)) = self.turn.take() {
                    transcript.set_outcome(*outcome);
                    transcript.end(&End::default(), &mut events);
                    assert_eq!(check(&events), Ok(()), "{events:#?}");
                }
            }
            _ => {}
        }
    }
}

/// Adds entries to the first part of the bytes, a document, and removes them from the result and from the second part.
pub fn document(format: Format, bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0xff);
    let (base, current) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let location = Location { format, at: vec!["m".to_owned()] };
    let value = || json!({"a": ["x\n", 1, true], "b": {"c": 0.5}});
    let entries: Entries = [("ours".to_owned(), value()), ("u".to_owned(), json!({}))].into();
    match merge(Some(base), &location, &entries) {
        Ok(merged) => {
            let taken = take_out(&merged, Some(base), &location, std::slice::from_ref(&entries));
            assert_eq!(taken.map(|taken| taken.bytes).as_deref(), Ok(base));
        }
        Err(error) => assert_ne!(error, DocumentError::Unfaithful),
    }
    _ = take_out(current, Some(base), &location, &[entries]);
}
