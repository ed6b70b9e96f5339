//! The result of a restore.

use std::path::{Path, PathBuf};

use crate::document::DocumentError;
use crate::error::TargetProblem;

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The resolved path of the file.
    pub path: PathBuf,
    /// The outcome.
    pub how: RestoreOutcome,
    /// Entries that were changed since they were added. They remain.
    pub changed: Vec<String>,
    /// Whether the file got another name (a hard link) since the entries were added. The entries remain under that name.
    pub other_names: bool,
}

/// The outcome for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreOutcome {
    /// The file has its previous content, byte for byte, or was removed again.
    Exactly,
    /// The file was edited meanwhile. The edit is kept, and the entries are removed.
    EditKept,
    /// Other holders still need their entries. The entries of this holder are removed.
    Shared,
    /// The file was not changed.
    NotRestored {
        /// The reason.
        reason: NotRestoredReason,
        /// The path of the user's kept content, if there was any.
        original: Option<PathBuf>,
    },
}

/// Why a file was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRestoredReason {
    /// The file was removed.
    #[error("it was removed meanwhile")]
    Deleted,
    /// Something else has its path.
    #[error("{0}")]
    NotAFile(TargetProblem),
    /// The user's content cannot be distinguished from the entries.
    #[error("{0}")]
    Unreadable(DocumentError),
}

impl Restored {
    pub(crate) fn new(path: &Path, how: RestoreOutcome, changed: Vec<String>) -> Self {
        Self { path: path.to_owned(), how, changed, other_names: false }
    }
}
