//! Records the input and output of a run's processes, and the events of its caller.
//!
//! Invariants: a run waits for the file only at its end, for a moment, and never fails because of it. If the disk is too slow,
//! entries are dropped, and an entry in their place reports that. If nothing can be written any more, a warning reports it.
//! Known secrets are removed from every line, unless the request asks for the exact bytes.

mod edit;
mod file;
pub(crate) mod redact;
mod scan;

pub use teamster_types::recording::*;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use teamster_agents::protocol::ServerCall;
use teamster_process::{Exit, Frame};
use teamster_types::event::{Event, Warning, WarningCode};
use teamster_types::request::RunRequest;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use self::edit::Editor;
use self::redact::Redactor;
use crate::agent_server::ServerEvent;
use crate::events::size;
use crate::threads::{explain, track};

/// The maximum number of entries that wait for the disk.
const WAITING: usize = 8192;

/// The maximum size of these entries, in bytes, estimated.
const WAITING_BYTES: usize = 64 * 1024 * 1024;

/// How long the end of a run waits for the disk, so that it can report problems.
const SETTLE: Duration = Duration::from_secs(1);

enum Item {
    Entry {
        entry: Box<Entry>,
        /// The estimated size in bytes.
        bytes: usize,
        /// The redactor of the secrets that the entry may contain.
        redactor: Option<Arc<Redactor>>,
    },
    /// Answered when everything before it is written.
    Settle(oneshot::Sender<()>),
}

/// A recording in progress.
#[derive(Clone)]
pub(crate) struct Recording {
    began: Instant,
    items: mpsc::Sender<Item>,
    /// The size of the waiting entries, in bytes.
    waiting: Arc<AtomicUsize>,
    /// Whether the exact bytes are recorded, including secrets.
    raw: bool,
    /// The number of entries that were dropped since the last entry.
    lost: Arc<AtomicU64>,
    problem: Arc<OnceLock<String>>,
}

/// Records the input and output of one process, if the run is recorded.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Option<(Recording, Arc<Redactor>)>);

impl Recording {
    /// Creates the file and starts a recording in it. It is complete when the tracker's tasks have ended.
    pub(crate) fn create(path: &Path, agent: &str, request: &RunRequest, writers: &TaskTracker) -> io::Result<Self> {
        let file = file::create(path, request.record_overwrite)?;
        Self::write_to(file, path, agent, request.record_raw, writers)
    }

    fn write_to(file: File, path: &Path, agent: &str, raw: bool, writers: &TaskTracker) -> io::Result<Self> {
        let (items, written) = mpsc::channel(WAITING);
        let (lost, waiting, problem) = (Arc::default(), Arc::default(), Arc::default());
        let recording = Self { began: Instant::now(), items, waiting, raw, lost, problem };
        let (problem, path) = (Arc::clone(&recording.problem), path.to_owned());
        let waiting = Arc::clone(&recording.waiting);
        track(writers, move || {
            // Dropped last, so that a task that waits for the channel finds the problem.
            let (mut written, mut asked) = (written, Vec::new());
            if let Err(error) = write(file, &mut written, &mut asked, &waiting) {
                _ = problem.set(format!("the recording {} is incomplete: {error}", path.display()));
            }
        })
        .map_err(|error| io::Error::new(error.kind(), explain(&error)))?;
        recording.note(RecordedItem::Recording { version: VERSION, agent: agent.to_owned() }, None);
        Ok(recording)
    }

    /// Records an event of the caller.
    pub(crate) fn event(&self, event: &Event, redactor: &Arc<Redactor>) {
        self.note(RecordedItem::Event { event: Box::new(event.clone()) }, Some(redactor));
    }

    /// Returns a warning if the recording is incomplete, as far as that is known within [`SETTLE`].
    pub(crate) async fn problem(&self) -> Option<Warning> {
        let (written, settled) = oneshot::channel();
        let settles = async { self.items.send(Item::Settle(written)).await.is_ok() && settled.await.is_ok() };
        _ = timeout(SETTLE, settles).await;
        self.problem.get().map(|problem| Warning::new(WarningCode::RecordingIncomplete, problem.clone()))
    }

    fn note(&self, item: RecordedItem, redactor: Option<&Arc<Redactor>>) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 && !self.send(RecordedItem::Lost { lines: lost }, None) {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
        if !self.send(item, redactor.filter(|_| !self.raw)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn send(&self, item: RecordedItem, redactor: Option<&Arc<Redactor>>) -> bool {
        let at_ms = self.began.elapsed().as_secs_f64() * 1000.0;
        let bytes = entry_size(&item);
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let entry = Box::new(Entry { at_ms, item });
        // A single entry always fits.
        let fits = before == 0 || before.saturating_add(bytes) <= WAITING_BYTES;
        let sent = fits && self.items.try_send(Item::Entry { entry, bytes, redactor: redactor.cloned() }).is_ok();
        if !sent {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
        sent
    }
}

impl Recorder {
    /// Creates the recorder of a process that was given these secrets.
    pub(crate) fn new(recording: Option<&Recording>, redactor: &Arc<Redactor>) -> Self {
        Self(recording.map(|recording| (recording.clone(), Arc::clone(redactor))))
    }

    pub(crate) fn start(&self, program: &Path, args: &[OsString]) {
        self.note(|| {
            let args = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
            RecordedItem::Start { program: program.to_string_lossy().into_owned(), args }
        });
    }

    pub(crate) fn input(&self, bytes: &[u8]) {
        self.note(|| RecordedItem::In(Payload::new(bytes)));
    }

    pub(crate) fn input_end(&self) {
        self.note(|| RecordedItem::InEnd);
    }

    /// Records a line of the protocol stream. A line that was too long to read is recorded as lost.
    pub(crate) fn output(&self, frame: &Frame<'_>) {
        self.note(|| match frame {
            Frame::Line(line) => RecordedItem::Out(Payload::new(&[line, b"\n".as_slice()].concat())),
            Frame::Unterminated(line) => RecordedItem::Out(Payload::new(line)),
            Frame::TooLong { .. } => RecordedItem::Lost { lines: 1 },
        });
    }

    pub(crate) fn diagnostic(&self, line: &[u8]) {
        self.note(|| RecordedItem::Err(Payload::new(&[line, b"\n"].concat())));
    }

    pub(crate) fn call(&self, call: &ServerCall) {
        self.note(|| RecordedItem::Call {
            id: Some(call.id.0),
            method: call.method.as_str().to_owned(),
            path: call.path.clone(),
            body: call.body.as_deref().map(Payload::new),
        });
    }

    /// Records an event of the CLI's server.
    pub(crate) fn server_event(&self, event: &ServerEvent) {
        self.note(|| match event {
            ServerEvent::Reply { call, status, body } => {
                RecordedItem::Reply { call: Some(call.0), status: *status, body: Payload::new(body) }
            }
            ServerEvent::Event(data) => RecordedItem::ServerEvent(Payload::new(data)),
            ServerEvent::TooLong { .. } | ServerEvent::Unreachable { .. } => RecordedItem::Lost { lines: 1 },
        });
    }

    pub(crate) fn exit(&self, exit: Exit) {
        let signal = exit.signal_name().map(Cow::into_owned);
        self.note(|| RecordedItem::Exit { code: exit.code, signal });
    }

    fn note(&self, item: impl FnOnce() -> RecordedItem) {
        if let Some((recording, redactor)) = &self.0 {
            recording.note(item(), Some(redactor));
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Recorder").field(&self.0.is_some()).finish()
    }
}

/// Returns the estimated size of an entry in memory.
fn entry_size(item: &RecordedItem) -> usize {
    let size = |payload: &Payload| match payload {
        Payload::Text(text) | Payload::Base64(text) => text.len(),
    };
    let content = match item {
        RecordedItem::In(text)
        | RecordedItem::Out(text)
        | RecordedItem::Err(text)
        | RecordedItem::ServerEvent(text) => size(text),
        RecordedItem::Call { body, path, .. } => path.len() + body.as_ref().map_or(0, size),
        RecordedItem::Reply { body, .. } => size(body),
        RecordedItem::Event { event } => size::in_memory(event),
        _ => 0,
    };
    content + size_of::<Entry>()
}

/// Writes entries until all senders are gone.
fn write(
    file: File,
    items: &mut mpsc::Receiver<Item>,
    asked: &mut Vec<oneshot::Sender<()>>,
    waiting: &AtomicUsize,
) -> io::Result<()> {
    let (mut file, mut editor) = (BufWriter::new(file), Editor::default());
    while let Some(item) = items.blocking_recv() {
        match item {
            Item::Entry { entry, bytes, redactor } => {
                waiting.fetch_sub(bytes, Ordering::Relaxed);
                editor.push(*entry, redactor.as_ref());
                write_ready(&mut file, &mut editor)?;
            }
            Item::Settle(written) => {
                asked.push(written);
                editor.settle();
                write_ready(&mut file, &mut editor)?;
                file.flush()?;
                // The run that waits for it may have ended.
                asked.drain(..).for_each(|written| _ = written.send(()));
            }
        }
        // The file contains everything so far that certainly has no secret.
        if items.is_empty() {
            file.flush()?;
        }
    }
    editor.settle();
    write_ready(&mut file, &mut editor)?;
    file.flush()
}

fn write_ready(file: &mut BufWriter<File>, editor: &mut Editor) -> io::Result<()> {
    while let Some(entry) = editor.next() {
        serde_json::to_writer(&mut *file, &entry)?;
        file.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_recording_that_cannot_be_written_is_reported_at_the_end() {
        let (path, writers) = (Path::new("/dev/full"), TaskTracker::new());
        let full = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        let recording = Recording::write_to(full, path, "claude", false, &writers).unwrap();
        let warning = recording.problem().await.unwrap();
        assert_eq!(warning.code, WarningCode::RecordingIncomplete);
    }
}
