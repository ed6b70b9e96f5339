//! The sources of a command line's inputs: files, environment variables and standard input.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

/// Reads the inputs that a command line names.
pub(crate) trait Inputs {
    /// Returns the directory against which relative paths are resolved.
    fn working_directory(&self) -> std::io::Result<PathBuf>;
    /// Reads a file.
    fn file(&mut self, path: &Path) -> std::io::Result<Vec<u8>>;
    /// Returns the value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// Returns whether standard input is a terminal.
    fn stdin_is_terminal(&self) -> bool;
    /// Reads standard input to its end.
    fn stdin(&mut self) -> std::io::Result<Vec<u8>>;
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

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn stdin_is_terminal(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    fn stdin(&mut self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
