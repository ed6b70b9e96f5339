//! Work whose instructions are counted: `cargo xtask bench count`.
//!
//! Its argument is the name of the work. Only what the functions `measured_...` do is counted. The work is the same in each
//! process, so the counts differ only by the hash keys of the process.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::hint::black_box;

use bytes::BufMut as _;
use teamster::agent::protocol::{Action, Input, Protocol};
use teamster::agent::transcript::Transcript;
use teamster::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster::request::AgentInterface;
use teamster::{Event, RunRequest};
use teamster_process::LineFramer;

/// How often a recorded run is decoded, each time by a new protocol.
const RUNS: usize = 20;

fn main() {
    let name = std::env::args().nth(1).unwrap();
    let (work, capture) = name.split_once(' ').unwrap();
    let bytes = recorded(capture);
    let count = match work {
        "framing" => measured_framing(&bytes.repeat(RUNS)),
        "decoding" => (0..RUNS).map(|_| measured_decoding(&mut *protocol(capture), &bytes)).sum(),
        "path" => (0..RUNS).map(|_| measured_path(&mut *protocol(capture), &bytes)).sum(),
        _ => 0,
    };
    println!("{count}");
}

fn recorded(capture: &str) -> Vec<u8> {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/teamster-agents/tests/captures");
    std::fs::read(format!("{captures}/{capture}/stdout.ndjson")).unwrap()
}

/// The protocol of a run, at its start.
fn protocol(capture: &str) -> Box<dyn Protocol> {
    let agent: &dyn Agent = match capture.split_once('/').unwrap().0 {
        "claude" => &Claude,
        "codex" => &Codex,
        "gemini" => &Gemini,
        _ => &OpenCode,
    };
    let mut request = RunRequest::new("recorded");
    request.interface = AgentInterface::Exec;
    let mut protocol = agent.plan(&request).unwrap().protocol;
    protocol.handle(Input::Started, &mut Vec::new());
    protocol
}

/// Splits output into lines. Returns their number.
#[inline(never)]
fn measured_framing(bytes: &[u8]) -> usize {
    let mut framer = LineFramer::new(64 << 20);
    let mut lines = 0;
    for chunk in bytes.chunks(64 << 10) {
        framer.space().put_slice(chunk);
        while let Some(frame) = framer.next() {
            black_box(frame);
            lines += 1;
        }
    }
    lines
}

/// Decodes lines to actions. Returns the number of events.
#[inline(never)]
fn measured_decoding(protocol: &mut dyn Protocol, bytes: &[u8]) -> usize {
    let (mut actions, mut events) = (Vec::new(), 0);
    for line in bytes.split(|byte| *byte == b'\n') {
        protocol.handle(Input::Line(line), &mut actions);
        events += actions.iter().filter(|action| matches!(action, Action::Emit(_))).count();
        black_box(&mut actions).clear();
    }
    events
}

/// From the bytes of the output to the lines of `--output ndjson`. Returns the number of events.
#[inline(never)]
fn measured_path(protocol: &mut dyn Protocol, bytes: &[u8]) -> usize {
    let (mut framer, mut transcript) = (LineFramer::new(64 << 20), Transcript::new());
    let (mut actions, mut events, mut lines, mut count) = (Vec::new(), Vec::<Event>::new(), Vec::new(), 0);
    framer.space().put_slice(bytes);
    while let Some(frame) = framer.next() {
        let teamster_process::Frame::Line(line) = frame else { continue };
        protocol.handle(Input::Line(line), &mut actions);
        for action in actions.drain(..) {
            let Action::Emit(event) = action else { continue };
            match transcript.push_delta(event) {
                Ok(delta) => events.extend(delta),
                Err(event) => transcript.push(event, &mut events),
            }
        }
        for event in events.drain(..) {
            serde_json::to_writer(&mut lines, &event).unwrap();
            count += 1;
        }
        black_box(&mut lines).clear();
    }
    count
}
