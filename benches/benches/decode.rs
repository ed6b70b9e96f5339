//! Decoding of recorded runs: from the bytes of the lines to events that passed the transcript.
//!
//! Beside it, in the same run, the floor: the same bytes split into lines, and the same lines read as
//! `serde_json::Value`. Only the ratios mean something on a busy machine.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use teamster::agent::protocol::{Action, Input};
use teamster::agent::transcript::Transcript;
use teamster::agent::{Agent, claude::Claude};
use teamster::{Event, RunRequest};
use teamster_process::LineFramer;

/// A run of text, and a run with tools: the recorded lines, repeated until the figures are steady.
const RUNS: [&str; 2] = ["text", "file_edit"];
const REPEAT: usize = 200;

fn main() {
    divan::main();
}

fn recorded(name: &str) -> Vec<u8> {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/teamster-agents/tests/captures/claude");
    std::fs::read(format!("{captures}/{name}/stdout.ndjson")).unwrap().repeat(REPEAT)
}

fn counters(bytes: &[u8]) -> (BytesCount, ItemsCount) {
    (BytesCount::of_slice(bytes), ItemsCount::new(bytes.split(|&byte| byte == b'\n').count()))
}

#[divan::bench(args = RUNS)]
fn lines_to_events(bencher: Bencher<'_, '_>, run: &str) {
    let bytes = recorded(run);
    let (size, items) = counters(&bytes);
    bencher.counter(size).counter(items).bench(|| {
        let mut protocol = Claude.plan(&RunRequest::new("hi")).unwrap().protocol;
        let (mut transcript, mut actions, mut events) = (Transcript::new(), Vec::new(), Vec::<Event>::new());
        for line in bytes.split(|&byte| byte == b'\n') {
            protocol.handle(Input::Line(line), &mut actions);
            for action in actions.drain(..) {
                if let Action::Emit(event) = action {
                    transcript.push(event, &mut events);
                }
            }
            black_box(&events);
            events.clear();
        }
    });
}

#[divan::bench(args = RUNS)]
fn lines_to_json_values(bencher: Bencher<'_, '_>, run: &str) {
    let bytes = recorded(run);
    let (size, items) = counters(&bytes);
    bencher.counter(size).counter(items).bench(|| {
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            black_box(serde_json::from_slice::<serde_json::Value>(line).ok());
        }
    });
}

#[divan::bench(args = RUNS)]
fn bytes_to_lines(bencher: Bencher<'_, '_>, run: &str) {
    use bytes::BufMut as _;
    let bytes = recorded(run);
    let (size, items) = counters(&bytes);
    bencher.counter(size).counter(items).bench(|| {
        let mut framer = LineFramer::new(64 << 20);
        for chunk in bytes.chunks(64 << 10) {
            framer.space().put_slice(chunk);
            while let Some(frame) = framer.next() {
                black_box(frame);
            }
        }
    });
}
