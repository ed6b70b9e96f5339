//! Errors of the ledger.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a run could not be registered, or a ledger directory could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The directory cannot be trusted.
    #[error("{path:?} cannot hold the ledger of runs: {reason}")]
    Refused {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: Refusal,
    },
    /// The directory could not be read or written.
    #[error("cannot use the ledger of runs in {path:?}")]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The error of the system: no space, a read-only file system, or no support for locks.
        source: io::Error,
    },
    /// Processes cannot be identified.
    #[error("the ledger of runs needs a list of all processes (on Linux: /proc of this pid namespace)")]
    Proc {
        /// The error of the system.
        source: io::Error,
    },
    /// None of the directories can be used.
    #[error("no directory can hold the ledger of runs: {}", causes(.tried))]
    NoUsableDirectory {
        /// The error of each directory.
        tried: Vec<LedgerError>,
    },
}

/// Why a directory is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is a link or a file.
    #[error("it is a link or not a directory")]
    NotADirectory,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    OtherUser,
    /// Other users may read its contents.
    #[error("other users may enter it; `chmod 700` it")]
    OthersMayEnter,
    /// Other users may replace it.
    #[error("other users may replace it, since its parent directory is writable for them")]
    OthersMayReplace,
}

pub(super) fn io_error(path: &Path, source: impl Into<io::Error>) -> LedgerError {
    LedgerError::Io { path: path.to_owned(), source: source.into() }
}

fn causes(tried: &[LedgerError]) -> String {
    let with_source = |error: &LedgerError| match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    tried.iter().map(with_source).collect::<Vec<_>>().join("; ")
}
