//! What the ledger contains, and what a sweep did.

use std::{fmt, io, path::PathBuf, time::SystemTime};

use super::error::LedgerError;
use crate::survivor::Survivor;

/// A run in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownRun {
    /// Its directory.
    pub path: PathBuf,
    /// The label of the run; unknown if its entry was never written or is damaged.
    pub label: Option<String>,
    /// When it was registered.
    pub began: Option<SystemTime>,
    /// Whether its host is gone. If the run is live, its keeper is ending it.
    pub is_orphaned: bool,
}

/// The contents of the ledger.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Live runs.
    pub live: Vec<KnownRun>,
    /// Crashed runs, which the next sweep kills and removes.
    pub leftovers: Vec<KnownRun>,
    /// Entries that a sweep would skip.
    pub skipped: Vec<Skipped>,
    /// Directories that could not be read.
    pub problems: Vec<LedgerError>,
}

/// The result of a sweep.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sweep {
    /// The crashed runs that were removed.
    pub removed: Vec<Removed>,
    /// Entries that were skipped or could not be removed.
    pub skipped: Vec<Skipped>,
    /// The number of live runs, which were not touched.
    pub live: usize,
    /// The number of live runs whose host is gone. Their keepers end them, within about two seconds.
    pub ending: usize,
    /// Directories that could not be read.
    pub problems: Vec<LedgerError>,
}

impl Sweep {
    /// Returns whether no remains of a crash are known.
    pub fn is_clean(&self) -> bool {
        self.skipped.is_empty() && self.problems.is_empty()
    }
}

/// A crashed run that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The run.
    pub run: KnownRun,
    /// Its processes that were still alive and were killed.
    pub killed: Vec<Survivor>,
}

/// An entry that a sweep skipped.
#[derive(Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// The file or directory.
    pub path: PathBuf,
    /// Why it was skipped.
    pub reason: SkipReason,
}

/// Why a sweep skipped an entry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is not a run.
    #[error("it is not a run; inspect it and remove it by hand")]
    NotARun,
    /// A newer version of this program created it.
    #[error("a newer version created it (format {version}); sweep with that version")]
    Newer {
        /// Its format.
        version: u32,
    },
    /// Its processes have other pids here, or cannot be seen.
    #[error(
        "a run in another container (pid namespace) created it; sweep there, or remove it by hand if the container is gone"
    )]
    OtherNamespace,
    /// The sweeping process belongs to the run.
    #[error("this process belongs to that run; sweep from outside of it")]
    OwnRun,
    /// Processes of the run could not be killed.
    #[error("its processes cannot be killed: {}", names(.0))]
    Alive(Vec<Survivor>),
    /// It could not be read or removed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn names(survivors: &[Survivor]) -> impl fmt::Display {
    survivors.iter().map(|one| format!("{} ({})", one.pid, one.name)).collect::<Vec<_>>().join(", ")
}
