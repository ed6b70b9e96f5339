//! The ledger: a record of live runs on disk, from which the next start cleans up after a crash.
//!
//! Each run has its own directory ([`RunDir`]). It holds the run's private files and the data by
//! which its processes are found again, and is removed with the run. If the host and all helper
//! processes were killed, the directory stays. The next [`sweep`](Ledger::sweep) kills the
//! remaining processes of the run and removes it.
//!
//! A lock (`flock`) on the directory shows that a run is live; the system releases it with its last
//! holder. The age of a file is never used. (Cleaners of `/tmp` skip a locked directory.) A new
//! directory is visible for a moment before it is locked. If a sweep takes it then, its creator
//! creates another one. A stopped (`SIGSTOP`) keeper whose host is gone does not count as a holder.
//!
//! Invariants: a process is killed only if it provably belongs to a run whose host is gone, in this
//! boot and this pid namespace. It has the run's environment marker, or is its leader by pid and
//! start time, or is in its keeper's session, or descends from one of these. No locked directory is
//! removed. No link is followed. Anything that is not understood is skipped and reported.

mod entry;
mod error;
mod ledger_dir;
mod leftover;
mod process_scan;
mod report;
mod run_dir;
pub(crate) mod search;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use entry::PidScope;
use ledger_dir::LedgerDir;
use leftover::{Claim, Found, Purpose};

pub use error::{LedgerError, Refusal};
pub use ledger_dir::LEDGER_VARIABLE;
pub use report::{KnownRun, Removed, SkipReason, Skipped, Survey, Sweep};
pub(crate) use run_dir::Registration;
pub use run_dir::RunDir;

/// How long a sweep waits, in total, for killed processes to disappear.
pub const SWEEP_SETTLE: Duration = Duration::from_secs(2);

/// The shortest wait for the processes of one run.
const LEAST_SETTLE: Duration = Duration::from_millis(100);

/// Killing a run can leave runs that it had started. A sweep repeats at most this often.
const PASSES: usize = 3;

/// How many runs a sweep locks at a time; each needs a descriptor.
const CLAIMS: usize = 64;

/// The ledger of live runs.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// The first usable directory registers new runs.
    candidates: Vec<LedgerDir>,
    /// All directories that may hold runs.
    all_dirs: Vec<LedgerDir>,
}

impl Ledger {
    /// Returns this user's ledger. A new run is registered in the first of these directories that
    /// is usable and private:
    ///
    /// - `$XDG_RUNTIME_DIR/teamster`, if that directory belongs to this user and no other user can enter it;
    /// - `teamster-UID` in the directory for temporary files (`$TMPDIR`), and in `/tmp`;
    /// - `$XDG_STATE_HOME/teamster`, or `~/.local/state/teamster`.
    ///
    /// A sweep reads all of them and `/run/user/UID/teamster`. If `TEAMSTER_LEDGER_DIR` is set,
    /// only that directory is used.
    pub fn of_user() -> Self {
        let (candidates, all_dirs) = ledger_dir::of_user(|name| std::env::var_os(name));
        Self { candidates, all_dirs }
    }

    /// Returns a ledger in one directory, which is created with the first run. Its parent must
    /// exist.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        let dir = LedgerDir::new(path.into());
        Self { candidates: vec![dir.clone()], all_dirs: vec![dir] }
    }

    /// Registers a run, before its processes are started. `label` describes the run for people.
    ///
    /// It waits for the disk, and so does dropping the result. Do both on a thread that may block.
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

    /// Returns the contents of the ledger and changes nothing.
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

    /// Kills the processes of crashed runs and removes their directories.
    ///
    /// A run whose host is gone is not removed while its keeper ends it ([`Sweep::ending`]).
    ///
    /// Sweeps may run concurrently with each other and with runs that start and end. A sweep
    /// blocks: less than a millisecond if there is nothing to remove, and up to [`SWEEP_SETTLE`]
    /// plus 0.1 s for each run whose processes cannot be killed.
    pub fn sweep(&self) -> Sweep {
        let mut sweep = Sweep::default();
        let deadline = Instant::now() + SWEEP_SETTLE;
        for _ in 0..PASSES {
            let pass = self.pass(deadline);
            let killed_processes = pass.removed.iter().any(|removed| !removed.killed.is_empty());
            sweep.removed.extend(pass.removed);
            // Skipped entries are found again by each pass.
            (sweep.skipped, sweep.problems) = (pass.skipped, pass.problems);
            (sweep.live, sweep.ending) = (pass.live, pass.ending);
            if !killed_processes {
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
                Found::Live(run) => {
                    sweep.live += 1;
                    sweep.ending += usize::from(run.is_orphaned);
                }
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

    /// Returns the paths in all ledger directories.
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

/// Kills the processes of claimed runs and removes the runs.
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
                tracing::info!(path = %path.display(), killed = removed.killed.len(), "a crashed run was removed");
                sweep.removed.push(removed);
            }
            Err(reason) => sweep.skipped.push(Skipped { path, reason }),
        }
    }
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
