//! The inputs of a command line, in memory.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster::Runtime;
use teamster::event::SessionId;
use teamster::sessions::{SessionList, SessionQuery, StoredSession};

use crate::plan::Inputs;
use crate::plan::stdin::StdinError;
use crate::printable::Printable;

/// Files, variables and standard input in memory.
#[derive(Default)]
pub(crate) struct TestInputs {
    pub(crate) files: Vec<(&'static str, &'static [u8])>,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    /// `None` is a terminal.
    pub(crate) stdin: Option<&'static [u8]>,
}

impl Inputs for TestInputs {
    fn working_directory(&self) -> io::Result<PathBuf> {
        Ok("/here".into())
    }

    fn file(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let found = self.files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, content)| content.to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn limited_file(&mut self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
        self.file(path)
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.iter().any(|(name, _)| Path::new(name).starts_with(path))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn variable_os(&self, name: &str) -> Option<OsString> {
        let found = self.variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        found.or_else(|| (name == "KEY").then(|| "k3y".into()))
    }

    fn stdin_is_terminal(&self) -> bool {
        self.stdin.is_none()
    }

    fn stdout_is_terminal(&self) -> bool {
        false
    }

    fn sessions(&mut self, _: &Runtime, _: &SessionQuery) -> SessionList {
        SessionList::default()
    }

    fn newest_session(&mut self, _: &Runtime, _: &SessionQuery) -> Option<StoredSession> {
        None
    }

    fn note(&mut self, _: &Printable) {}

    fn choose_session(&mut self, _: Printable, _: &[StoredSession]) -> Option<SessionId> {
        None
    }

    fn stdin(&mut self, _: Option<Duration>) -> Result<Vec<u8>, StdinError> {
        Ok(self.stdin.unwrap_or(b"typed").to_vec())
    }
}
