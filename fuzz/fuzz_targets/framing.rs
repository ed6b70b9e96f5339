//! The driver's framing with random chunking: the same frames as a plain split, in memory and through a pipe.
#![no_main]

use std::io::Write as _;

use bytes::BufMut as _;
use teamster_process::{Frame, LineFramer, OutputReader};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::{Builder, Runtime};

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

/// The bytes, in pieces of these sizes, over and over.
fn pieces<'a>(bytes: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = usize::from(*sizes.next().unwrap_or(&255)).clamp(1, rest.len().max(1));
        let (piece, more) = rest.split_at_checked(size)?;
        rest = more;
        Some(piece)
    })
}

fn framed<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Expected> {
    let mut framer = LineFramer::new(MAX_LINE);
    let mut frames = Vec::new();
    for piece in pieces {
        framer.space().put_slice(piece);
        while let Some(frame) = framer.next() {
            frames.push(owned(frame));
        }
    }
    while let Some(frame) = framer.finish() {
        frames.push(owned(frame));
    }
    frames
}

/// The same through a pipe, as the driver reads it: now by waiting, now by looking.
async fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Expected> {
    let (ours, mut theirs) = std::io::pipe().expect("a pipe");
    let pipe = Receiver::from_owned_fd(ours.into()).expect("a reader");
    let mut reader = OutputReader::new(pipe, MAX_LINE);
    let mut frames = Vec::new();
    for (number, piece) in pieces.enumerate() {
        theirs.write_all(piece).expect("room in the pipe");
        if number % 2 == 0 {
            reader.fill().await.expect("output");
        }
        loop {
            while let Some(frame) = reader.next() {
                frames.push(owned(frame));
            }
            if reader.fill_now().expect("output").is_none() {
                break;
            }
        }
    }
    drop(theirs);
    assert_eq!(reader.fill().await.expect("the end"), 0);
    while let Some(frame) = reader.finish() {
        frames.push(owned(frame));
    }
    frames
}

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
}

libfuzzer_sys::fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (bytes, sizes) = input;
    let expected = split(&bytes);
    assert_eq!(framed(pieces(&bytes, &sizes)), expected);
    let through_a_pipe = RUNTIME.with(|runtime| runtime.block_on(read(pieces(&bytes, &sizes))));
    assert_eq!(through_a_pipe, expected);
});
