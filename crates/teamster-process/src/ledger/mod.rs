//! The ledger: live runs are known on disk, so that whatever a crash left of them can be ended and removed.
//!
//! Each run has a directory of its own: what is needed to find its processes again ([`RunDir`]), and its private
//! files. It goes with the run. When the host was killed and everything that watched over the run with it, the
//! directory stays, and the next [`sweep`](Ledger::sweep) ends whoever is left of the run and removes it.
//!
//! Whether somebody still cares for a run is told by a lock (`flock`) on its directory, which the system frees with
//! its last holder; never by the age of a file. (Cleaners of `/tmp` leave a locked directory alone.) A directory is
//! visible for a moment before it is locked. A sweep may take it then, and its maker takes another one. One holder of a lock
//! does not count: a keeper that is stopped (`SIGSTOP`) while its host is gone.
//!
//! Invariants: no process is hit that is not proved to be of a run whose host is gone, in this boot and this process
//! namespace: it bears the run's mark, or is its leader by number and start time, or descends from one of them. No
//! directory is removed while its lock is held. No link is followed. What is not understood is left alone and told.

mod process_scan;
mod entry;
mod leftover;
mod ledger_dir;
mod run_dir;
pub(crate) mod search;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crate::tree::Survivor;

use entry::PidScope;
use leftover::{Claim, Found, Purpose};
use ledger_dir::LedgerDir;

pub use ledger_dir::LEDGER_VARIABLE;
pub(crate) use run_dir::Registration;
pub use run_dir::RunDir;

/// How long a sweep waits, in all, for the system to take down what it has killed.
pub const SWEEP_SETTLE: Duration = Duration::from_secs(2);

/// How long it waits at least for each run's processes.
const LEAST_SETTLE: Duration = Duration::from_millis(100);

/// Runs inside a run that is ended are left by that: a sweep looks again, at most so often.
const PASSES: usize = 3;

/// How many runs a sweep holds at a time, each with a descriptor.
const CLAIMS: usize = 64;

/// Where live runs are known.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// The first that can be used takes new runs.
    candidates: Vec<LedgerDir>,
    /// All that may hold runs.
    all_dirs: Vec<LedgerDir>,
}

/// Why a run could not be registered, or a directory of the ledger not be read.
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
        /// What the system said: no space, a read-only file system, or that it has no locks.
        source: io::Error,
    },
    /// The system does not tell who is who.
    #[error("the ledger of runs needs to know all processes (on Linux: /proc of this process namespace)")]
    Proc {
        /// What the system said.
        source: io::Error,
    },
    /// None of the directories can be used.
    #[error("no directory can hold the ledger of runs: {}", causes(.tried))]
    NoUsableDirectory {
        /// What was wrong with each.
        tried: Vec<LedgerError>,
    },
}

/// Why a directory is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A link, or a file.
    #[error("it is a link or no directory")]
    NotADirectory,
    /// Somebody else made it.
    #[error("it belongs to another user")]
    OtherUser,
    /// Others may read what is in it.
    #[error("other users may enter it; `chmod 700` it")]
    OthersMayEnter,
    /// Others may put something else in its dir.
    #[error("other users may replace it, since they can write to its parent")]
    OthersMayReplace,
}

/// A run that the ledger knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownRun {
    /// Its directory.
    pub path: PathBuf,
    /// What runs there, as it was registered; unknown if its entry was never written or is damaged.
    pub label: Option<String>,
    /// When it was registered.
    pub began: Option<SystemTime>,
}

/// What the ledger holds.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Runs that somebody cares for.
    pub live: Vec<KnownRun>,
    /// What crashes left: the next sweep ends and removes them.
    pub leftovers: Vec<KnownRun>,
    /// What no sweep would touch.
    pub skipped: Vec<Skipped>,
    /// Directories that could not be looked through.
    pub problems: Vec<LedgerError>,
}

/// What a sweep did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sweep {
    /// The leftovers that are gone.
    pub removed: Vec<Removed>,
    /// What was left alone, or could not be removed.
    pub skipped: Vec<Skipped>,
    /// How many runs live: they were not touched.
    pub live: usize,
    /// Directories that could not be looked through.
    pub problems: Vec<LedgerError>,
}

impl Sweep {
    /// Whether nothing is left of any crash, as far as can be known.
    pub fn is_clean(&self) -> bool {
        self.skipped.is_empty() && self.problems.is_empty()
    }
}

/// A leftover that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The run.
    pub run: KnownRun,
    /// Its processes that were still alive, and were ended.
    pub ended: Vec<Survivor>,
}

/// What a sweep left.
#[derive(Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// The file or directory.
    pub path: PathBuf,
    /// Why.
    pub reason: SkipReason,
}

/// Why a sweep left something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// Nothing that a ledger makes.
    #[error("it is no run; look at it, and remove it by hand")]
    NotARun,
    /// A newer version of this program made it.
    #[error("a newer version made it (format {version}); sweep with that one")]
    Newer {
        /// Its format.
        version: u32,
    },
    /// Its processes have other numbers scope, or cannot be seen.
    #[error(
        "a run in another container (process namespace) made it; sweep there, or remove it by hand if that is gone"
    )]
    OtherNamespace,
    /// The process that sweeps is one of the run's own.
    #[error("this very process descends from that run; sweep from outside of it")]
    OwnRun,
    /// Processes of the run could not be ended.
    #[error("its processes cannot be ended: {}", names(.0))]
    Alive(Vec<Survivor>),
    /// It could not be read or removed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Ledger {
    /// This user's ledger. A new run is registered in the first of these directories that can be trusted and used:
    ///
    /// - `$XDG_RUNTIME_DIR/teamster`, if that variable names a directory that is this user's alone;
    /// - `teamster-UID` in the directory for temporary files (`$TMPDIR`), and in `/tmp`;
    /// - `$XDG_STATE_HOME/teamster`, or `~/.local/state/teamster`.
    ///
    /// A sweep goes through all of them, and through `/run/user/UID/teamster`. Where `TEAMSTER_LEDGER_DIR` is set, that
    /// is the only one.
    pub fn of_user() -> Self {
        let (candidates, all_dirs) = ledger_dir::of_user(|name| std::env::var_os(name));
        Self { candidates, all_dirs }
    }

    /// A ledger in this directory alone. It is made with the first run; its parent must be there.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        let dir = LedgerDir::new(path.into());
        Self { candidates: vec![dir.clone()], all_dirs: vec![dir] }
    }

    /// Makes a run known, before anything of it is started. `label` says what runs, for people.
    ///
    /// It waits for the disk, some milliseconds on a busy one, and so does dropping what it gives: keep both from threads
    /// that must not wait.
    pub fn register(&self, label: &str) -> Result<RunDir, LedgerError> {
        let mut tried = Vec::new();
        for dir in &self.candidates {
            match RunDir::register(dir, label) {
                Ok(run) => return Ok(run),
                Err(error) => tried.push(error),
            }
        }
        Err(if tried.len() == 1 { tried.remove(0) } else { LedgerError::NoUsableDirectory { tried } })
    }

    /// Tells what the ledger holds, and changes nothing.
    pub fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let scope = match PidScope::now() {
            Ok(scope) => scope,
            Err(source) => {
                survey.problems.push(LedgerError::Proc { source });
                return survey;
            }
        };
        for path in self.directories(&mut survey.problems) {
            match leftover::inspect(&path, &scope, Purpose::Inspect) {
                Found::Vanished => {}
                Found::Live(run) => survey.live.push(run),
                Found::Skipped(reason) => survey.skipped.push(Skipped { path, reason }),
                Found::Leftover(claim) => survey.leftovers.push(claim.run().clone()),
            }
        }
        survey
    }

    /// Ends the processes of runs that nobody cares for any more, and removes their directories.
    ///
    /// Any number of sweeps may run at once, and beside runs that start and end. It blocks: for less than a millisecond
    /// if nothing is left, and for up to [`SWEEP_SETTLE`] and a tenth of a second for each run if processes cannot be
    /// ended.
    pub fn sweep(&self) -> Sweep {
        let mut sweep = Sweep::default();
        let deadline = Instant::now() + SWEEP_SETTLE;
        for _ in 0..PASSES {
            let pass = self.pass(deadline);
            let ended_processes = pass.removed.iter().any(|removed| !removed.ended.is_empty());
            sweep.removed.extend(pass.removed);
            // What was left before is found again.
            (sweep.skipped, sweep.live, sweep.problems) = (pass.skipped, pass.live, pass.problems);
            if !ended_processes {
                break;
            }
        }
        sweep
    }

    fn pass(&self, deadline: Instant) -> Sweep {
        let mut sweep = Sweep::default();
        let scope = match PidScope::now() {
            Ok(scope) => scope,
            Err(source) => {
                sweep.problems.push(LedgerError::Proc { source });
                return sweep;
            }
        };
        let mut claims = Vec::new();
        for path in self.directories(&mut sweep.problems) {
            match leftover::inspect(&path, &scope, Purpose::Claim) {
                Found::Vanished => {}
                Found::Live(_) => sweep.live += 1,
                Found::Skipped(reason) => sweep.skipped.push(Skipped { path, reason }),
                Found::Leftover(claim) => claims.push(*claim),
            }
            if claims.len() == CLAIMS {
                remove_leftovers(std::mem::take(&mut claims), deadline, &mut sweep);
            }
        }
        remove_leftovers(claims, deadline, &mut sweep);
        for dir in &self.all_dirs {
            dir.prune();
        }
        sweep
    }

    /// What is in the ledger's directories.
    fn directories(&self, problems: &mut Vec<LedgerError>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for dir in &self.all_dirs {
            match dir.entries() {
                Ok(entries) => found.extend(entries),
                Err(error) => problems.push(error),
            }
        }
        found
    }
}

/// Ends and removes leftovers that are ours to clear.
fn remove_leftovers(claims: Vec<Claim>, deadline: Instant, sweep: &mut Sweep) {
    if claims.is_empty() {
        return;
    }
    let snapshot = match search::Snapshot::take(claims.iter().filter_map(Claim::target)) {
        Ok(snapshot) => snapshot,
        Err(source) => {
            sweep.problems.push(LedgerError::Proc { source });
            return;
        }
    };
    for claim in claims {
        let path = claim.run().path.clone();
        match claim.remove(&snapshot, deadline.max(Instant::now() + LEAST_SETTLE)) {
            Ok(removed) => {
                tracing::info!(path = %path.display(), ended = removed.ended.len(), "a crashed run was swept");
                sweep.removed.push(removed);
            }
            Err(reason) => sweep.skipped.push(Skipped { path, reason }),
        }
    }
}

fn io_error(path: &Path, source: impl Into<io::Error>) -> LedgerError {
    LedgerError::Io { path: path.to_owned(), source: source.into() }
}

fn causes(tried: &[LedgerError]) -> String {
    let with_source = |error: &LedgerError| match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    tried.iter().map(with_source).collect::<Vec<_>>().join("; ")
}

fn names(survivors: &[Survivor]) -> impl fmt::Display {
    survivors.iter().map(|one| format!("{} ({})", one.pid, one.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_that_can_be_used_takes_the_run_and_all_are_swept() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let bad = [LedgerDir::new("/proc/ledger".into()), LedgerDir::new(file.clone())];
        let good = LedgerDir::new(home.path().join("good"));
        let candidates = [&bad[..], std::slice::from_ref(&good)].concat();
        let ledger = Ledger { candidates: candidates.clone(), all_dirs: candidates };
        let run = ledger.register("claude").unwrap();
        assert!(run.path().starts_with(good.path()));
        let sweep = ledger.sweep();
        assert_eq!((sweep.live, sweep.is_clean()), (1, true), "{sweep:?}");
        drop(run);

        let ledger = Ledger { candidates: bad.to_vec(), all_dirs: Vec::new() };
        let error = ledger.register("claude").unwrap_err().to_string();
        assert!(error.contains("/proc/ledger") && error.contains(file.to_str().unwrap()), "{error}");
    }
}
