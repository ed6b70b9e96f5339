//! The driver's framing with random chunking: the same frames as a plain split, and bounded memory.
#![no_main]

use bytes::BufMut as _;
use teamster_process::{Frame, LineFramer};

const MAX_LINE: usize = 64;

#[derive(Debug, PartialEq)]
enum Expected {
    Line(Vec<u8>),
    TooLong(u64),
    Unterminated(Vec<u8>),
}

fn owned(frame: Frame<'_>) -> Expected {
    match frame {
        Frame::Line(line) => Expected::Line(line.to_vec()),
        Frame::TooLong { length, .. } => Expected::TooLong(length),
        Frame::Unterminated(line) => Expected::Unterminated(line.to_vec()),
    }
}

fn split(bytes: &[u8]) -> Vec<Expected> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let whole = lines.into_iter().map(|line| match line {
        line if line.len() > MAX_LINE => Expected::TooLong(line.len() as u64),
        line => Expected::Line(line.strip_suffix(b"\r").unwrap_or(line).to_vec()),
    });
    let rest = match last {
        [] => None,
        last if last.len() > MAX_LINE => Some(Expected::TooLong(last.len() as u64)),
        last => Some(Expected::Unterminated(last.to_vec())),
    };
    whole.chain(rest).collect()
}

libfuzzer_sys::fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (bytes, sizes) = input;
    let mut framer = LineFramer::new(MAX_LINE);
    let mut frames = Vec::new();
    let mut rest = bytes.as_slice();
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = usize::from(*sizes.next().unwrap_or(&255)).clamp(1, rest.len());
        let (chunk, more) = rest.split_at(size);
        framer.space().put_slice(chunk);
        rest = more;
        while let Some(frame) = framer.next() {
            frames.push(owned(frame));
        }
    }
    while let Some(frame) = framer.finish() {
        frames.push(owned(frame));
    }
    assert_eq!(frames, split(&bytes));
});
