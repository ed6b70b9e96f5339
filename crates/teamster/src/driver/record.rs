//! Writes down what goes in and out of a run's processes, and what its caller is told.
//!
//! Invariants: no run waits for the file, but at its end, for a moment; and none ends because of it. What the disk is too slow
//! for is left out, and its place says so; when nothing can be written any more, a warning tells it.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use teamster_process::{Exit, Frame};
use teamster_protocol::event::{Event, Warning, WarningCode};
use teamster_protocol::protocol::ServerCall;
use teamster_protocol::recording::{Entry, Happening, Said, VERSION};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::redact::Redactor;
use super::server::Heard;
use super::threads::{explain, track};

/// Entries that wait for the disk.
const WAITING: usize = 8192;

/// How long the end of a run waits for the disk, to be able to tell what is wrong with it.
const SETTLE: Duration = Duration::from_secs(1);

enum Item {
    Entry(Box<Entry>),
    /// Tells when all before it is written.
    Settle(oneshot::Sender<()>),
}

/// A recording that is being written.
#[derive(Clone)]
pub(crate) struct Recording {
    began: Instant,
    items: mpsc::Sender<Item>,
    /// What was left out since the last entry.
    lost: Arc<AtomicU64>,
    problem: Arc<OnceLock<String>>,
}

/// Writes down what goes in and out of one process, where that is wanted.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Option<(Recording, Arc<Redactor>)>);

impl Recording {
    /// Begins a recording in a file of this name, which is made anew and is the user's alone. It is whole when the tracker's
    /// tasks have ended.
    pub(crate) fn begin(path: &Path, agent: &str, writers: &TaskTracker) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let (items, written) = mpsc::channel(WAITING);
        let recording = Self { began: Instant::now(), items, lost: Arc::default(), problem: Arc::default() };
        let (problem, path) = (Arc::clone(&recording.problem), path.to_owned());
        track(writers, move || {
            // Dropped last, so that whoever waits for it finds the problem.
            let mut written = written;
            if let Err(error) = write(file, &mut written) {
                _ = problem.set(format!("the recording {} is not whole: {error}", path.display()));
            }
        })
        .map_err(|error| io::Error::new(error.kind(), explain(&error)))?;
        recording.note(Happening::Recording { version: VERSION, agent: agent.to_owned() });
        Ok(recording)
    }

    /// The caller is told this. Secrets have been taken out of it.
    pub(crate) fn event(&self, event: &Event) {
        self.note(Happening::Event { event: Box::new(event.clone()) });
    }

    /// What keeps it from being whole, if that is known soon.
    pub(crate) async fn problem(&self) -> Option<Warning> {
        let (written, settled) = oneshot::channel();
        let settles = async { self.items.send(Item::Settle(written)).await.is_ok() && settled.await.is_ok() };
        _ = timeout(SETTLE, settles).await;
        self.problem.get().map(|problem| Warning::new(WarningCode::RecordingIncomplete, problem.clone()))
    }

    fn note(&self, happening: Happening) {
        let at_ms = self.began.elapsed().as_secs_f64() * 1000.0;
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let send = |happening| self.items.try_send(Item::Entry(Box::new(Entry { at_ms, happening }))).is_ok();
        if lost > 0 && !send(Happening::Lost { lines: lost }) {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
        if !send(happening) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Recorder {
    /// For a process that was given these secrets.
    pub(crate) fn new(recording: Option<&Recording>, redactor: &Arc<Redactor>) -> Self {
        Self(recording.map(|recording| (recording.clone(), Arc::clone(redactor))))
    }

    pub(crate) fn start(&self, program: &Path, args: &[OsString]) {
        self.note(|redactor| {
            let text = |text: &OsStr| redactor.text(&text.to_string_lossy()).into_owned();
            Happening::Start { program: text(program.as_os_str()), args: args.iter().map(|arg| text(arg)).collect() }
        });
    }

    pub(crate) fn input(&self, bytes: &[u8]) {
        self.note(|redactor| Happening::In(said(bytes, redactor)));
    }

    pub(crate) fn input_end(&self) {
        self.note(|_| Happening::InEnd);
    }

    /// What came on the protocol's stream. A line that is too long to be read is left out.
    pub(crate) fn output(&self, frame: &Frame<'_>) {
        self.note(|redactor| match frame {
            Frame::Line(line) => Happening::Out(said(&[line, b"\n".as_slice()].concat(), redactor)),
            Frame::Unterminated(line) => Happening::Out(said(line, redactor)),
            Frame::TooLong { .. } => Happening::Lost { lines: 1 },
        });
    }

    pub(crate) fn diagnostic(&self, line: &[u8]) {
        self.note(|redactor| Happening::Err(said(&[line, b"\n"].concat(), redactor)));
    }

    pub(crate) fn call(&self, call: &ServerCall) {
        self.note(|redactor| Happening::Call {
            id: Some(call.id.0),
            method: call.method.as_str().to_owned(),
            path: redactor.text(&call.path).into_owned(),
            body: call.body.as_deref().map(|body| said(body, redactor)),
        });
    }

    /// What the CLI's server said.
    pub(super) fn heard(&self, heard: &Heard) {
        self.note(|redactor| match heard {
            Heard::Reply { call, status, body } => {
                Happening::Reply { call: Some(call.0), status: *status, body: said(body, redactor) }
            }
            Heard::Event(data) => Happening::ServerEvent(said(data, redactor)),
            Heard::TooLong { .. } | Heard::Broken { .. } => Happening::Lost { lines: 1 },
        });
    }

    pub(crate) fn exit(&self, exit: Exit) {
        let signal = exit.signal_name().map(Cow::into_owned);
        self.note(|_| Happening::Exit { code: exit.code, signal });
    }

    fn note(&self, happening: impl FnOnce(&Redactor) -> Happening) {
        if let Some((recording, redactor)) = &self.0 {
            recording.note(happening(redactor));
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Recorder").field(&self.0.is_some()).finish()
    }
}

fn said(bytes: &[u8], redactor: &Redactor) -> Said {
    let text = String::from_utf8_lossy(bytes);
    match redactor.text(&text) {
        redacted if redacted != text => Said::Text(redacted.into_owned()),
        _ => Said::of(bytes),
    }
}

/// Writes what comes, until all who could say more are gone.
fn write(file: File, items: &mut mpsc::Receiver<Item>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    while let Some(item) = items.blocking_recv() {
        match item {
            Item::Entry(entry) => {
                serde_json::to_writer(&mut file, &entry)?;
                file.write_all(b"\n")?;
            }
            // Who asked may have gone.
            Item::Settle(written) => _ = file.flush().map(|()| written.send(()))?,
        }
        // Whoever looks at it while the run goes on sees all of it.
        if items.is_empty() {
            file.flush()?;
        }
    }
    file.flush()
}
