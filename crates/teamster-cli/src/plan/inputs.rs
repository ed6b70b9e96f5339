//! The sources of a command line's inputs: files, environment variables and standard input.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use teamster::Runtime;
use teamster::event::SessionId;
use teamster::sessions::{SessionList, SessionQuery, StoredSession};

use super::stdin::{self, StdinError};
use crate::printable::Printable;
use crate::render::write_notice;

/// Reads the inputs that a command line names.
pub(crate) trait Inputs {
    /// Returns the directory against which relative paths are resolved.
    fn working_directory(&self) -> io::Result<PathBuf>;
    /// Reads a file.
    fn file(&mut self, path: &Path) -> io::Result<Vec<u8>>;
    /// Reads a file that others may have written. A pipe, a device, and a file with more than `max_bytes` are errors.
    fn limited_file(&mut self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>>;
    /// Returns whether a path exists.
    fn exists(&self, path: &Path) -> bool;
    /// Returns a path without links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Returns the value of an environment variable.
    fn variable_os(&self, name: &str) -> Option<OsString>;
    /// Returns the value of an environment variable, if it is UTF-8.
    fn variable(&self, name: &str) -> Option<String> {
        self.variable_os(name)?.into_string().ok()
    }
    /// Returns whether standard input is a terminal.
    fn stdin_is_terminal(&self) -> bool;
    /// Returns whether standard output is a terminal.
    fn stdout_is_terminal(&self) -> bool;
    /// Lists sessions that the agents store.
    fn sessions(&mut self, runtime: &Runtime, query: &SessionQuery) -> SessionList;
    /// Returns the session that was used last, without its content.
    fn newest_session(&mut self, runtime: &Runtime, query: &SessionQuery) -> Option<StoredSession>;
    /// Prints a note to standard error.
    fn note(&mut self, note: &Printable);
    /// Lets the person at the terminal choose a session.
    fn choose_session(&mut self, title: Printable, sessions: &[StoredSession]) -> Option<SessionId>;
    /// Reads standard input to its end. It fails if nothing arrives for `max_silence`.
    fn stdin(&mut self, max_silence: Option<Duration>) -> Result<Vec<u8>, StdinError>;
}

/// The inputs of this process.
#[derive(Debug)]
pub(crate) struct SystemInputs;

impl Inputs for SystemInputs {
    fn working_directory(&self) -> io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn file(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn limited_file(&mut self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
        // Otherwise a pipe without a writer would block.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(invalid("it is not a regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(invalid(format!("it has more than {max_bytes} bytes")));
        }
        Ok(bytes)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn variable_os(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn stdin_is_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }

    fn stdout_is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn sessions(&mut self, runtime: &Runtime, query: &SessionQuery) -> SessionList {
        // The agent's name was checked before.
        runtime.sessions(query).unwrap_or_default()
    }

    fn newest_session(&mut self, runtime: &Runtime, query: &SessionQuery) -> Option<StoredSession> {
        runtime.newest_session(query).ok().flatten()
    }

    fn note(&mut self, note: &Printable) {
        write_notice(note);
    }

    fn choose_session(&mut self, title: Printable, sessions: &[StoredSession]) -> Option<SessionId> {
        crate::sessions::choose(title, sessions).unwrap_or_else(|error| {
            write_notice(&Printable::error(&error));
            None
        })
    }

    fn stdin(&mut self, max_silence: Option<Duration>) -> Result<Vec<u8>, StdinError> {
        let is_terminal = self.stdin_is_terminal();
        let notice = || {
            if !is_terminal {
                write_notice(&"reading standard input to its end (to skip it: --stdin ignore)".into());
            }
        };
        // A person may think for longer.
        stdin::read_to_end(io::stdin().lock(), max_silence.filter(|_| !is_terminal), notice)
    }
}
