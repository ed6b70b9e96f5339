//! A working directory, in the forms in which CLIs store it.

use std::path::{Path, PathBuf};

/// A working directory as it was given, and without links.
#[derive(Debug)]
pub(super) struct Directory {
    given: PathBuf,
    canonical: PathBuf,
}

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        let given = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let canonical = path.canonicalize().unwrap_or_else(|_| given.clone());
        Self { given, canonical }
    }

    pub(super) fn is(&self, stored: &Path) -> bool {
        stored == self.given || stored == self.canonical
    }

    /// Returns both forms.
    pub(super) fn forms(&self) -> [&Path; 2] {
        [&self.given, &self.canonical]
    }
}
