//! What every protocol is fuzzed for: any bytes as its lines, and the rules of the stream at the end.

use teamster_protocol::agent::Agent;
use teamster_protocol::event::Event;
use teamster_protocol::protocol::{Action, ExitReport, Input};
use teamster_protocol::request::{OutputMode, RunRequest};
use teamster_protocol::transcript::{End, Transcript};
use teamster_testkit::check::check;

/// Feeds the bytes to the agent's protocol, line by line. The first byte chooses the mode and where an interrupt falls.
pub fn protocol(agent: &dyn Agent, bytes: &[u8]) {
    let Some((&choice, lines)) = bytes.split_first() else { return };
    let mut request = RunRequest::new("fuzz");
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
    for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if number == usize::from(choice >> 1) {
            tell(Input::Interrupt);
        }
        tell(Input::Line(line));
    }
    let exit = ExitReport { code: Some(i32::from(choice & 1)), signal: None, stderr: "" };
    tell(Input::Exited(exit));
    transcript.end(&End { exit: Some(exit), ..End::default() }, &mut events);
    assert_eq!(check(&events), Ok(()), "{events:#?}");
}
