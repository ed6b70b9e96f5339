//! Lines of standard output, written by a thread of their own, each at once.

use std::io::{self, Write as _};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;
use teamster::event::{ErrorCode, Failure};
use teamster::{Event, StampedEvent};
use tokio::sync::{mpsc, oneshot};

use super::command::{Origin, Refusal};
use crate::render::write_document;

/// Lines that wait for the writer.
const WAITING_LINES: usize = 16;

/// What is said of a command that is not followed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Refused<'a> {
    #[serde(flatten)]
    event: &'a Event,
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<&'a str>,
}

/// What is said of words that were sent to be heard at once, and are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Joined<'a> {
    r#type: &'static str,
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
}

/// Word that what was sent is heard within this turn.
pub(super) fn joined(origin: &Origin, turn: Option<&str>) -> String {
    document(&Joined { r#type: "joined", line: origin.line, command_id: origin.id.as_deref(), turn_id: turn })
}

/// An event as a line.
pub(super) fn event(event: &StampedEvent) -> String {
    document(event)
}

/// A refusal as a line.
pub(super) fn refusal(refusal: &Refusal) -> String {
    let Refusal { origin, problem, passes } = refusal;
    let mut failure = Failure::new(ErrorCode::InvalidRequest, format!("line {}: {problem}", origin.line));
    failure.retryable = Some(*passes);
    let event = Event::Error(Box::new(failure));
    document(&Refused { event: &event, line: origin.line, command_id: origin.id.as_deref() })
}

/// Every key is a string, so nothing here can fail.
fn document(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Starts the writer. The channel closes when nothing can be written any more; the writer's end tells why it ended.
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

/// Watches standard output for its reader, from a thread that nobody waits for: the channel tells when nobody reads any more,
/// though nothing is written meanwhile.
pub(super) fn watch_reader() -> io::Result<oneshot::Receiver<Gone>> {
    let (tell, reader) = oneshot::channel();
    let watch = move || {
        let out = io::stdout();
        // What is told unasked is told always: errors and hang-ups.
        let mut watched = [PollFd::new(&out, PollFlags::empty())];
        while matches!(poll(&mut watched, None), Err(Errno::INTR)) {}
        if watched.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)) {
            // The conversation may be over.
            _ = tell.send(Gone);
        }
    };
    std::thread::Builder::new().name("watch".to_owned()).spawn(watch)?;
    Ok(reader)
}

/// Nobody reads any more.
#[derive(Debug)]
pub(super) struct Gone;
