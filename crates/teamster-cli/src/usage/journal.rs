//! Appends one line for each finished run or turn.
//!
//! A separate thread writes, so that a slow disk does not delay the agent. Each line is written with one call and
//! `O_APPEND`, so lines of commands that run at once are never mixed.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use rustix::fs::OFlags;
use teamster::RunResult;
use teamster::request::RunRequest;
use tokio::sync::oneshot;

use super::entry::{Entry, Subject};
use crate::printable::{Printable, printable};
use crate::render::write_notice;
use crate::runtime::FINAL_OUTPUT_TIMEOUT;

/// The number of attempts to open a journal that others create or remove meanwhile.
const MAX_ATTEMPTS: usize = 10;

/// The usage journal of a command, if it is on.
#[derive(Debug)]
pub(crate) struct Journal(Option<Writer>);

#[derive(Debug)]
struct Writer {
    path: PathBuf,
    subject: Subject,
    /// The lines that wait for the disk. There are at most as many as turns.
    entries: Sender<Entry>,
    /// The first error of the thread, at its end.
    outcome: oneshot::Receiver<Option<io::Error>>,
}

impl Journal {
    /// Opens the journal, if there is a path. A journal that cannot be opened is off, with a warning.
    pub(crate) fn open(path: Option<PathBuf>, agent: &str, request: &RunRequest) -> Self {
        let Some(path) = path else { return Self(None) };
        let directory = request.cwd.clone().map_or_else(std::env::current_dir, Ok);
        let started = directory.and_then(|directory| Ok((Subject::new(agent, &directory, request), start(&path)?)));
        match started {
            Ok((subject, (entries, outcome))) => Self(Some(Writer { path, subject, entries, outcome })),
            Err(error) => {
                write_notice(&warning(&path, &error));
                Self(None)
            }
        }
    }

    /// Notes that later runs are of this agent and this request, in the same directory.
    pub(crate) fn start_conversation(&mut self, agent: &str, request: &RunRequest) {
        if let Some(writer) = &mut self.0 {
            writer.subject.start_conversation(agent, request);
        }
    }

    /// Notes that later runs request this model.
    pub(crate) fn set_model(&mut self, model: String) {
        if let Some(writer) = &mut self.0 {
            writer.subject.set_model(model);
        }
    }

    /// Appends a line for a run that has ended.
    pub(crate) fn add(&self, result: &RunResult) {
        if let Some(writer) = &self.0 {
            // The thread ends after the sender.
            _ = writer.entries.send(Entry::new(&writer.subject, result));
        }
    }

    /// Waits until all lines are written, for a limited time: the disk may hang.
    pub(crate) async fn close(self) {
        let Some(Writer { path, entries, outcome, .. }) = self.0 else { return };
        drop(entries);
        let error = match tokio::time::timeout(FINAL_OUTPUT_TIMEOUT, outcome).await {
            Ok(outcome) => outcome.unwrap_or_default(),
            Err(_) => Some(io::ErrorKind::TimedOut.into()),
        };
        if let Some(error) = error {
            write_notice(&warning(&path, &error));
        }
    }
}

fn warning(path: &Path, error: &io::Error) -> Printable {
    printable!("cannot write the usage journal {}: {}", path, Printable::error(error))
}

/// Starts the thread, if the journal can be opened.
fn start(path: &Path) -> io::Result<(Sender<Entry>, oneshot::Receiver<Option<io::Error>>)> {
    open(path)?;
    let (sender, entries) = channel::<Entry>();
    let (end, outcome) = oneshot::channel();
    let path = path.to_owned();
    let body = move || {
        let mut first = None;
        for entry in entries {
            first = first.or(append(&path, &entry).err());
        }
        _ = end.send(first);
    };
    std::thread::Builder::new().name("usage".to_owned()).spawn(body)?;
    Ok((sender, outcome))
}

/// Appends a line with one call. If only a part of it fits on the disk, the reader skips that part.
fn append(path: &Path, entry: &Entry) -> io::Result<()> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    let mut file = open(path)?;
    let written = loop {
        match file.write(&line) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => break written?,
        }
    };
    if written < line.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// Opens the journal at its end. Only the user can read a new one. The directory must exist, unless it is the state
/// directory of Teamster.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A named pipe without a reader is an error and does not block.
    options.append(true).custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    let is_ours = is_in_state_directory(path);
    for _ in 0..MAX_ATTEMPTS {
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        if let Some(parent) = path.parent().filter(|_| is_ours) {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        match options.clone().create_new(true).mode(0o600).open(path) {
            // Another command has created it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // The end of a run removes directories that it created, while they are empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_ours => {}
            created => {
                let file = created?;
                // The umask may have removed these permissions.
                file.set_permissions(Permissions::from_mode(0o600))?;
                return Ok(file);
            }
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn is_in_state_directory(path: &Path) -> bool {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")));
    path.parent() == state.map(|state| state.join("teamster")).as_deref()
}
