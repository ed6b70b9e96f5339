//! Protocols that use a server of the CLI.

use teamster_agents::agent::Agent;
use teamster_agents::protocol::{Action, CallId, Command, ExitReport, Input, ServerInput};
use teamster_agents::transcript::{End, Transcript};
use teamster_testkit::check::check;
use teamster_types::event::Event;
use teamster_types::request::{Prompt, RunRequest};

/// Feeds the bytes to the session of an agent that uses its own server. Each line is an event, a line of output, a command, or a
/// reply to one of the first calls.
pub fn server(agent: &dyn Agent, bytes: &[u8]) {
    let request = RunRequest::default();
    let Ok(Some(plan)) = agent.plan_session(&request) else { return };
    let mut protocol = plan.protocol;
    let (mut transcript, mut events, mut running) = (Transcript::new(), Vec::<Event>::new(), false);
    for line in bytes.split(|byte| *byte == b'\n').chain([&b"!exit"[..]]) {
        let prompt = Prompt::from("fuzz");
        let input = match line {
            b"!send" if running => continue,
            b"!send" => {
                (transcript, running) = (Transcript::new(), true);
                Input::Command(Command::Send { id: &"w1".into(), prompt: &prompt })
            }
            b"!interrupt" => Input::Interrupt,
            b"!exit" => Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() }),
            [b'>', call, body @ ..] => {
                let status = if call & 0x80 == 0 { 200 } else { 404 };
                Input::Server(ServerInput::Reply { call: CallId(u64::from(call & 0x7)), status, body })
            }
            [b'o', ..] => Input::Line(line),
            data => Input::Server(ServerInput::Event(data)),
        };
        let mut actions = Vec::new();
        protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) if running => transcript.push(event, &mut events),
                Action::Outcome(outcome) => {
                    assert!(running, "an outcome of no turn");
                    running = false;
                    transcript.set_outcome(*outcome);
                    transcript.end(&End::default(), &mut events);
                    assert_eq!(check(&events), Ok(()), "{events:#?}");
                    events.clear();
                }
                _ => {}
            }
        }
    }
    assert!(!running, "a turn without an outcome");
}
