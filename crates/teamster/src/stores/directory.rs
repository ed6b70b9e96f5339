//! A working directory, in the forms in which CLIs store it.

use std::path::{Path, PathBuf};

/// A working directory as it was given, and without links.
#[derive(Debug)]
pub(crate) struct Directory {
    given: PathBuf,
    canonical: PathBuf,
}

impl Directory {
    pub(crate) fn new(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // Without a slash at the end: some stores compare text.
        let given: PathBuf = absolute.components().collect();
        let canonical = path.canonicalize().unwrap_or_else(|_| given.clone());
        Self { given, canonical }
    }

    /// Whether a stored path is this directory. It opens no file, because there may be thousands of stored paths.
    pub(crate) fn is(&self, stored: &Path) -> bool {
        stored == self.given || stored == self.canonical
    }

    /// Whether a stored path leads to this directory, also through links.
    pub(crate) fn is_reached_by(&self, stored: &Path) -> bool {
        self.is(stored) || stored.canonicalize().is_ok_and(|stored| stored == self.canonical)
    }

    /// Returns both forms.
    pub(crate) fn forms(&self) -> [&Path; 2] {
        [&self.given, &self.canonical]
    }
}
