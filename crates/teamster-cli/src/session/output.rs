//! Writes the lines of standard output on a separate thread. Lines that are ready together are written with one call.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;
use teamster::event::{ErrorCode, Failure};
use teamster::{Event, Session, StampedEvent};
use tokio::sync::{mpsc, oneshot};

use super::command::{Origin, Rejection};
use crate::render::JsonWriter;

/// The number of lines that wait for the writer thread.
const WAITING_LINES: usize = 16;

/// The fields that every line carries: the session's run id, the time, and the caller's labels.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stamp<'a> {
    run_id: &'a str,
    time: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
}

impl<'a> Stamp<'a> {
    fn now(session: &'a Session) -> Self {
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        Self { run_id: session.run_id(), time, labels: session.labels() }
    }
}

/// The line for a rejected command.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectedLine<'a> {
    #[serde(flatten)]
    event: &'a Event,
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<&'a str>,
    #[serde(flatten)]
    stamp: Stamp<'a>,
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
    #[serde(flatten)]
    stamp: Stamp<'a>,
}

/// Formats the line for text that has joined this turn.
pub(super) fn joined(session: &Session, origin: &Origin, turn_id: Option<&str>) -> String {
    let Origin { line, id, .. } = origin;
    let command_id = id.as_deref();
    document(&JoinedLine { r#type: "joined", line: *line, command_id, turn_id, stamp: Stamp::now(session) })
}

/// Formats an event as a line.
pub(super) fn event(event: &StampedEvent) -> String {
    document(event)
}

/// Formats a rejection as a line.
pub(super) fn rejection(session: &Session, rejection: &Rejection) -> String {
    let Rejection { origin, problem, retryable } = rejection;
    let mut failure = Failure::new(ErrorCode::InvalidRequest, format!("line {}: {problem}", origin.line));
    failure.retryable = Some(*retryable);
    let event = Event::Error(Box::new(failure));
    let (command_id, stamp) = (origin.id.as_deref(), Stamp::now(session));
    document(&RejectedLine { event: &event, line: origin.line, command_id, stamp })
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
        let mut text = Vec::new();
        let mut to = JsonWriter { text: &mut text, out: &mut out };
        while let Some(line) = lines.blocking_recv() {
            to.write_all(line.as_bytes())?;
            to.end_line()?;
            while let Ok(line) = lines.try_recv() {
                to.write_all(line.as_bytes())?;
                to.end_line()?;
            }
            to.flush()?;
        }
        Ok(())
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
