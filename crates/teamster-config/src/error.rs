//! Why a file cannot be merged into, or not be restored.

use std::io;
use std::path::{Path, PathBuf};

use crate::document::DocumentError;

/// Why a merge, or taking it back, did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The user's file is not one that can be edited.
    #[error("cannot edit {path:?}: {problem}")]
    Target {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: TargetProblem,
    },
    /// The user's file could not be read or written.
    #[error("cannot {what} {path:?}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What stands in the user's file cannot take entries.
    #[error("cannot edit {path:?}: {problem}")]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: DocumentError,
    },
    /// Somebody else has put another entry of that name into the file, and still needs it.
    #[error(
        "{path:?} has another entry {name:?} of {by}, which still runs; give it another name, or wait until that has ended"
    )]
    Taken {
        /// The file.
        path: PathBuf,
        /// The entry.
        name: String,
        /// Who needs it.
        by: String,
    },
    /// Somebody else has put entries elsewhere into the same file.
    #[error("{path:?} has entries in another place or format, for {by}, which still runs")]
    OtherPlace {
        /// The file.
        path: PathBuf,
        /// Who needs them.
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
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A journal that this version does not understand. Nothing was changed.
    #[error("the journal {path:?} {problem}")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Why a file cannot be edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetProblem {
    /// A directory, a pipe, a device.
    #[error("it is no regular file")]
    NotAFile,
    /// Its mode forbids its owner to write.
    #[error("it is read-only; `chmod u+w` it")]
    ReadOnly,
    /// More than [`MAX_BYTES`](crate::MAX_BYTES).
    #[error("it is larger than 16 MiB")]
    TooLarge,
    /// A link that leads nowhere.
    #[error("it is a link that leads nowhere")]
    DanglingLink,
    /// It has several names, of which an edit would reach only one.
    #[error("it has several names (hard links), and only one of them would be edited")]
    HardLinks,
    /// A link of another user leads to it, or one that leads out of the project.
    #[error("a link leads to it that belongs to another user or leads out of the project")]
    ForeignLink,
    /// Its directory would have to be made where there can be none.
    #[error("its directory is not there and cannot be made")]
    NoDirectory,
}

pub(crate) fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ConfigError {
    move |source| ConfigError::Io { what, path: path.to_owned(), source }
}

pub(crate) fn target(path: &Path, problem: TargetProblem) -> ConfigError {
    ConfigError::Target { path: path.to_owned(), problem }
}
