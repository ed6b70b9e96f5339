//! What a command line points to: files and standard input.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

/// Where the texts come from.
pub(crate) trait Inputs {
    /// The directory that relative paths count from.
    fn here(&self) -> std::io::Result<PathBuf>;
    /// The content of a file.
    fn file(&mut self, path: &Path) -> std::io::Result<Vec<u8>>;
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// Whether a person would have to type what standard input gives.
    fn stdin_is_terminal(&self) -> bool;
    /// All of standard input.
    fn stdin(&mut self) -> std::io::Result<Vec<u8>>;
}

/// This process's own.
#[derive(Debug)]
pub(crate) struct Machine;

impl Inputs for Machine {
    fn here(&self) -> std::io::Result<PathBuf> {
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
