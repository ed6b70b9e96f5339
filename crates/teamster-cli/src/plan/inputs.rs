//! The sources of a command line's inputs: files, environment variables and standard input.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster::Runtime;
use teamster::event::SessionId;
use teamster::sessions::{SessionList, SessionQuery, StoredSession};

use super::stdin::{self, StdinError};
use crate::printable::Printable;
use crate::render::write_notice;

/// Reads the inputs that a command line names.
pub(crate) trait Inputs {
    /// Returns the directory against which relative paths are resolved.
    fn working_directory(&self) -> std::io::Result<PathBuf>;
    /// Reads a file.
    fn file(&mut self, path: &Path) -> std::io::Result<Vec<u8>>;
    /// Returns whether a path exists.
    fn exists(&self, path: &Path) -> bool;
    /// Returns a path without links.
    fn canonical(&self, path: &Path) -> std::io::Result<PathBuf>;
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
    /// Lets the person at the terminal choose a session.
    fn choose_session(&mut self, title: Printable, sessions: &[StoredSession]) -> Option<SessionId>;
    /// Reads standard input to its end. It fails if nothing arrives for `max_silence`.
    fn stdin(&mut self, max_silence: Option<Duration>) -> Result<Vec<u8>, StdinError>;
}

/// The inputs of this process.
#[derive(Debug)]
pub(crate) struct SystemInputs;

impl Inputs for SystemInputs {
    fn working_directory(&self) -> std::io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn file(&mut self, path: &Path) -> std::io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn canonical(&self, path: &Path) -> std::io::Result<PathBuf> {
        path.canonicalize()
    }

    fn variable_os(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn stdin_is_terminal(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    fn stdout_is_terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    fn sessions(&mut self, runtime: &Runtime, query: &SessionQuery) -> SessionList {
        // The agent's name was checked before.
        runtime.sessions(query).unwrap_or_default()
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
        stdin::read_to_end(std::io::stdin().lock(), max_silence.filter(|_| !is_terminal), notice)
    }
}
