//! Writes the lines of standard output on a separate thread, and flushes each.

use std::io::{self, Write as _};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;
use teamster::event::{ErrorCode, Failure};
use teamster::{Event, StampedEvent};
use tokio::sync::{mpsc, oneshot};

use super::command::{Origin, Rejection};
use crate::render::write_document;

/// The number of lines that wait for the writer thread.
const WAITING_LINES: usize = 16;

/// The line for a rejected command.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectedLine<'a> {
    #[serde(flatten)]
    event: &'a Event,
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<&'a str>,
}

/// The line for text that was sent with `now` and has joined the running turn.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JoinedLine<'a> {
    r#type: &'static str,
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
}

/// Formats the line for text that has joined this turn.
pub(super) fn joined(origin: &Origin, turn: Option<&str>) -> String {
    document(&JoinedLine { r#type: "joined", line: origin.line, command_id: origin.id.as_deref(), turn_id: turn })
}

/// Formats an event as a line.
pub(super) fn event(event: &StampedEvent) -> String {
    document(event)
}

/// Formats a rejection as a line.
pub(super) fn rejection(rejection: &Rejection) -> String {
    let Rejection { origin, problem, retryable } = rejection;
    let mut failure = Failure::new(ErrorCode::InvalidRequest, format!("line {}: {problem}", origin.line));
    failure.retryable = Some(*retryable);
    let event = Event::Error(Box::new(failure));
    document(&RejectedLine { event: &event, line: origin.line, command_id: origin.id.as_deref() })
}

/// Serializes a value as JSON. This cannot fail, since every key is a string.
fn document(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Starts the writer thread. The line channel closes when a write fails; the second channel returns the result.
pub(super) fn start() -> io::Result<(mpsc::Sender<String>, oneshot::Receiver<io::Result<()>>)> {
    let (sender, mut lines) = mpsc::channel::<String>(WAITING_LINES);
    let (end, written) = oneshot::channel();
    let mut write = move || {
        let mut out = io::stdout().lock();
        while let Some(line) = lines.blocking_recv() {
            write_document(&line, &mut out)?;
        }
        out.flush()
    };
    std::thread::Builder::new().name("writer".to_owned()).spawn(move || drop(end.send(write())))?;
    Ok((sender, written))
}

/// Starts a thread that detects when the reader closes standard output, even while nothing is written. The thread is
/// never joined.
pub(super) fn watch_reader() -> io::Result<oneshot::Receiver<ReaderClosed>> {
    let (closed, receiver) = oneshot::channel();
    let watch = move || {
        let out = io::stdout();
        // `poll` always reports errors and hang-ups, without a request for them.
        let mut watched = [PollFd::new(&out, PollFlags::empty())];
        while matches!(poll(&mut watched, None), Err(Errno::INTR)) {}
        if watched.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)) {
            // An error means that the session has already ended.
            _ = closed.send(ReaderClosed);
        }
    };
    std::thread::Builder::new().name("watch".to_owned()).spawn(watch)?;
    Ok(receiver)
}

/// The message that the reader has closed standard output.
#[derive(Debug)]
pub(super) struct ReaderClosed;
