//! Why a file cannot be edited or restored.

use std::io;
use std::path::{Path, PathBuf};

use crate::document::DocumentError;

/// Why a merge or its reversal failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The user's file is not a file that can be edited.
    #[error("cannot edit {path:?}: {problem}")]
    Target {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: TargetProblem,
    },
    /// The user's file could not be read or written.
    #[error("cannot {what} {path:?}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The content of the user's file cannot take entries.
    #[error("cannot edit {path:?}: {problem}")]
    Document {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: DocumentError,
    },
    /// Another holder has put a different entry with this name into the file, and still needs it.
    #[error(
        "{path:?} has another entry {name:?} of {by}, which still runs; give it another name, or wait until that has ended"
    )]
    Taken {
        /// The file.
        path: PathBuf,
        /// The entry.
        name: String,
        /// The holder.
        by: String,
    },
    /// Another holder has put entries at another location of the same file.
    #[error("{path:?} has entries in another location or format, for {by}, which still runs")]
    OtherLocation {
        /// The file.
        path: PathBuf,
        /// The holder.
        by: String,
    },
    /// Another process holds the lock, or keeps changing the file.
    #[error("{path:?} is being changed by another process all the time; try again")]
    Busy {
        /// The file, or the lock.
        path: PathBuf,
    },
    /// The directory for journals cannot be trusted.
    #[error("{path:?} cannot hold journals: {problem}")]
    Refused {
        /// The directory.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// This version cannot read a journal. Nothing was changed.
    #[error("the journal {path:?} {problem}")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },
}

/// Why a file cannot be edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetProblem {
    /// It is a directory, a pipe or a device.
    #[error("it is no regular file")]
    NotAFile,
    /// Its mode does not let its owner write.
    #[error("it is read-only; `chmod u+w` it")]
    ReadOnly,
    /// It is larger than [`MAX_BYTES`](crate::MAX_BYTES).
    #[error("it is larger than 16 MiB")]
    TooLarge,
    /// It is a dangling link.
    #[error("it is a link that leads nowhere")]
    DanglingLink,
    /// It has several names (hard links), and an edit would change only one of them.
    #[error("it has several names (hard links), and only one of them would be edited")]
    HardLinks,
    /// A link that belongs to another user, or that leads out of the project, leads to it.
    #[error("a link leads to it that belongs to another user or leads out of the project")]
    ForeignLink,
    /// Its directory does not exist and cannot be created.
    #[error("its directory is not there and cannot be made")]
    NoDirectory,
}

pub(crate) fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ConfigError {
    move |source| ConfigError::Io { what, path: path.to_owned(), source }
}

pub(crate) fn target(path: &Path, problem: TargetProblem) -> ConfigError {
    ConfigError::Target { path: path.to_owned(), problem }
}
