//! What every protocol is fuzzed for: any bytes as its output, in pieces of any size, and the rules of the stream at the end.
//! And what documents are: any text, and it comes back as it was.

mod server;
#[path = "../../crates/teamster-agents/tests/it/rules_shell/stub_shell.rs"]
mod stub_shell;

pub use server::server;

use bytes::BufMut as _;
use serde_json::json;
use teamster_config::document::{DocumentError, Entries, Format, Place, merge, take_out};
use teamster_process::{Frame, LineFramer};
use teamster_agents::agent::Agent;
use teamster_types::event::{Event, RequestId};
use teamster_agents::protocol::{Action, Command, ExitReport, Input, SessionAction};
use teamster_types::request::{Answer, Conversation, AgentInterface, OutputMode, PermissionMode, RunRequest};
use teamster_agents::transcript::{End, Transcript};
use teamster_testkit::check::check;

/// Longer lines are skipped, as the driver skips those that are longer than its limit.
const MAX_LINE: usize = 8 << 10;

thread_local! {
    static SHELL: stub_shell::StubShell = stub_shell::StubShell::new().expect("a directory with stubs");
}

/// Runs what a rule for `git diff` allows among stubs. Most random texts are no command, so each is also tried as its arguments.
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

/// Feeds the bytes to the agent's protocol, as the driver does. The first byte chooses the mode, where an interrupt falls,
/// and how large the pieces are that are read.
pub fn protocol(agent: &dyn Agent, bytes: &[u8]) {
    let Some((&choice, lines)) = bytes.split_first() else { return };
    let mut request = RunRequest::new("fuzz");
    // The form whose lines are in the corpus.
    request.interface = AgentInterface::Exec;
    request.output = if choice & 1 == 1 { OutputMode::Batch } else { OutputMode::Stream };
    let Ok(plan) = agent.plan(&request) else { return };
    let mut protocol = plan.protocol;
    let (mut transcript, mut events) = (Transcript::new(), Vec::<Event>::new());
    let mut tell = |input: Input<'_>| {
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
    tell(Input::Started);
    let mut number = 0;
    let mut frame = |frame: Frame<'_>| {
        if number == usize::from(choice >> 1) {
            tell(Input::Interrupt);
        }
        number += 1;
        if let Frame::Line(line) | Frame::Unterminated(line) = frame {
            tell(Input::Line(line));
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
    tell(Input::Exited(exit));
    transcript.end(&End { exit: Some(exit), ..End::default() }, &mut events);
    assert_eq!(check(&events), Ok(()), "{events:#?}");
}

/// Feeds the bytes to the agent's session, turn by turn. The first byte chooses how often the caller says something amid the
/// lines, and what.
pub fn session(agent: &dyn Agent, bytes: &[u8]) {
    session_with(false, agent, bytes);
}

/// The same, where the agent may begin turns by itself or not.
pub fn session_with(background: bool, agent: &dyn Agent, bytes: &[u8]) {
    let Some((&choice, lines)) = bytes.split_first() else { return };
    let mut frame = RunRequest::default();
    (frame.cwd, frame.cli_path) = (Some("/home/dev/project".into()), Some("agent".into()));
    frame.background_tasks = background;
    if choice & 2 == 2 {
        frame.conversation = Conversation::Resume("00000000-0000-4000-8000-000000000001".into());
    }
    let Some(plan) = agent.plan_session(&frame).expect("a frame that every agent takes") else { return };
    let mut protocol = plan.protocol;
    let (mut turn, mut asked) = (None::<(Transcript, Vec<Event>)>, Vec::new());
    let mut tell = |input: Input<'_>, turn: &mut Option<(Transcript, Vec<Event>)>, asked: &mut Vec<RequestId>| {
        let mut actions = Vec::new();
        protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => {
                    match &event {
                        Event::PermissionRequest(request) => asked.push(request.request_id.clone()),
                        Event::Question(question) => asked.push(question.request_id.clone()),
                        _ => {}
                    }
                    if let Some((transcript, events)) = turn {
                        transcript.push(event, events);
                    }
                }
                Action::Session(SessionAction::Withdraw(request)) => asked.retain(|other| *other != request),
                Action::Session(SessionAction::PromptNotAccepted) => drop(turn.take().expect("no turn runs that could be untaken")),
                Action::Session(SessionAction::AgentTurnStarted) | Action::Session(SessionAction::SteerTurnStarted) => {
                    assert!(turn.is_none(), "a turn begins within another one");
                    *turn = Some(Default::default());
                }
                Action::Outcome(outcome) => {
                    if let Some((mut transcript, mut events)) = turn.take() {
                        transcript.set_outcome(*outcome);
                        transcript.end(&End::default(), &mut events);
                        assert_eq!(check(&events), Ok(()), "{events:#?}");
                    }
                }
                _ => {}
            }
        }
    };
    tell(Input::Started, &mut turn, &mut asked);
    for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        let word = number.wrapping_mul(usize::from(choice) | 1);
        if turn.is_none() && word % 3 == 0 {
            turn = Some(Default::default());
            tell(Input::Command(Command::Send { id: &"w1".into(), prompt: &"x".into() }), &mut turn, &mut asked);
        } else if word % 7 == 0 && turn.is_some() {
            tell(Input::Interrupt, &mut turn, &mut asked);
        } else if word % 5 == 0
            && let Some(request) = asked.pop()
        {
            let answer = if word % 2 == 0 { Answer::AllowAlways } else { Answer::Deny { message: Some("$x".into()) } };
            tell(Input::Command(Command::Answer { request: &request, answer: &answer }), &mut turn, &mut asked);
        } else if word % 11 == 0 {
            tell(Input::Command(Command::SetModel("m")), &mut turn, &mut asked);
        } else if word % 13 == 0 {
            let mode = if word % 2 == 0 { PermissionMode::ReadOnly } else { PermissionMode::Full };
            tell(Input::Command(Command::SetPermissionMode(mode)), &mut turn, &mut asked);
        }
        tell(Input::Line(line), &mut turn, &mut asked);
    }
}

/// Puts entries into the first part of the bytes, a document, and takes them out of what that gives and of the second part.
pub fn document(format: Format, bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0xff);
    let (base, current) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let place = Place { format, at: vec!["m".to_owned()] };
    let value = || json!({"a": ["x\n", 1, true], "b": {"c": 0.5}});
    let entries: Entries = [("ours".to_owned(), value()), ("u".to_owned(), json!({}))].into();
    match merge(Some(base), &place, &entries) {
        Ok(merged) => {
            let taken = take_out(&merged, Some(base), &place, std::slice::from_ref(&entries));
            assert_eq!(taken.map(|taken| taken.bytes).as_deref(), Ok(base));
        }
        Err(error) => assert_ne!(error, DocumentError::Unfaithful),
    }
    _ = take_out(current, Some(base), &place, &[entries]);
}
