//! Distinguishes live runs from crashed ones, and removes the latter.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::Instant,
};

use rustix::{
    fs::{FlockOperation, flock, fstat},
    io::Errno,
    process::geteuid,
};

use super::{
    KnownRun, Removed, SkipReason,
    entry::{Content, Entry, PidScope},
    run_dir::{FILES, is_run_name, is_same_directory, open_directory, remove_if_there, remove_locked},
    search::{self, Outcome, Snapshot, Target},
};
use crate::{handle, process::Process, signal::Signal, supervise::SUPERVISOR_NAME, sys};

/// Why a directory is inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Inspect,
    Claim,
}

/// The result of inspecting a path in the directory of runs.
#[derive(Debug)]
pub(super) enum Found {
    /// It was removed meanwhile.
    Vanished,
    Live(KnownRun),
    Skipped(SkipReason),
    Leftover(Box<Claim>),
}

/// A crashed run and the lock on it: no other sweep removes it.
#[derive(Debug)]
pub(super) struct Claim {
    run: KnownRun,
    lock: OwnedFd,
    /// The entry, if processes of the run may be alive.
    entry_with_processes: Option<Entry>,
}

/// Inspects one entry of a directory of runs.
pub(super) fn inspect(path: &Path, scope: &PidScope, purpose: Purpose) -> Found {
    try_inspect(path, scope, purpose).unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Found::Vanished,
        _ => Found::Skipped(SkipReason::Io(error)),
    })
}

fn try_inspect(path: &Path, scope: &PidScope, purpose: Purpose) -> io::Result<Found> {
    if !is_run_name(path) {
        return Ok(Found::Skipped(SkipReason::NotARun));
    }
    let lock = match open_directory(path) {
        Ok(lock) => lock,
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Found::Skipped(SkipReason::NotARun)),
        Err(errno) => return Err(errno.into()),
    };
    if fstat(&lock)?.st_uid != geteuid().as_raw() {
        return Ok(Found::Skipped(SkipReason::NotARun));
    }
    let operation = match purpose {
        Purpose::Inspect => FlockOperation::NonBlockingLockShared,
        Purpose::Claim => FlockOperation::NonBlockingLockExclusive,
    };
    let held = match flock(&lock, operation) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        Err(errno) => return Err(errno.into()),
    };
    // The previous holder of the lock may have removed it.
    if !is_same_directory(path, lock.as_fd()) {
        return Ok(Found::Vanished);
    }
    let content = Entry::read(lock.as_fd())?;
    let run = known_run(path, &content, scope);
    if held && !is_held_by_stopped_keeper(&content, scope) {
        return Ok(Found::Live(run));
    }
    let entry_with_processes = match content {
        Content::Missing | Content::Damaged => None,
        Content::UnsupportedVersion(version) => return Ok(Found::Skipped(SkipReason::Newer { version })),
        // Its processes ended with its boot.
        Content::Entry(entry) if entry.scope.boot != scope.boot => None,
        Content::Entry(entry) if entry.scope != *scope => return Ok(Found::Skipped(SkipReason::OtherNamespace)),
        // A host that closed descriptors of this crate has lost the lock, but is alive.
        Content::Entry(entry) if entry.host.is_alive() && !entry.given_up => return Ok(Found::Live(run)),
        Content::Entry(entry) => Some(*entry),
    };
    Ok(Found::Leftover(Box::new(Claim { run, lock, entry_with_processes })))
}

/// Returns whether the host is gone and the keeper, which holds the lock, is stopped: nothing would
/// continue it. A keeper with a live supervisor does not stay stopped, and may be killed as well.
fn is_held_by_stopped_keeper(content: &Content, scope: &PidScope) -> bool {
    let Content::Entry(entry) = content else { return false };
    let is_stopped =
        |keeper: Process| sys::stat_of(keeper.pid).is_some_and(|stat| stat.start == keeper.start && stat.is_stopped());
    entry.scope == *scope && !entry.host.is_alive() && entry.keeper.is_some_and(is_stopped)
}

/// Continues the stopped supervisor of a keeper whose host is gone, so that it exits by itself.
fn continue_supervisor(keeper: Process) {
    let Some(stat) = sys::stat_of(keeper.pid).filter(|stat| stat.start == keeper.start) else { return };
    if let Some(parent) = sys::stat_of(stat.parent)
        && parent.name.as_bytes() == SUPERVISOR_NAME.to_bytes()
        && parent.is_stopped()
    {
        handle::send(&parent, Signal::Continue);
    }
}

fn known_run(path: &Path, content: &Content, scope: &PidScope) -> KnownRun {
    let entry = match content {
        Content::Entry(entry) => Some(entry),
        _ => None,
    };
    let label = entry.map(|entry| entry.label.clone());
    let is_orphaned = entry.is_some_and(|entry| entry.scope == *scope && !entry.host.is_alive());
    KnownRun { path: path.to_owned(), label, began: entry.and_then(|entry| entry.began()), is_orphaned }
}

impl Claim {
    pub(super) fn run(&self) -> &KnownRun {
        &self.run
    }

    /// Returns the processes to search for, if any may be alive.
    pub(super) fn target(&self) -> Option<Target<'_>> {
        let entry = self.entry_with_processes.as_ref()?;
        let (leader, keeper) = (entry.leader, entry.keeper);
        Some(Target { marker: &entry.marker, leader, keeper, not_before: entry.host.start })
    }

    /// Kills the run's processes, and removes its directory if no process is left.
    pub(super) fn remove(self, snapshot: &Snapshot, deadline: Instant) -> Result<Removed, SkipReason> {
        if let Some(keeper) = self.entry_with_processes.as_ref().and_then(|entry| entry.keeper) {
            continue_supervisor(keeper);
        }
        let outcome = match self.target() {
            Some(target) if snapshot.has_any(&target) => search::kill(&target, deadline)?,
            _ => Outcome { killed: Vec::new(), alive: Vec::new() },
        };
        if !outcome.alive.is_empty() {
            // The entry is kept for the next sweep; the private files can be removed now.
            remove_if_there(&self.run.path.join(FILES))?;
            return Err(SkipReason::Alive(outcome.alive));
        }
        match remove_locked(&self.run.path, self.lock.as_fd()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(Removed { run: self.run, killed: outcome.killed }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{super::Ledger, *};

    /// The test holds the lock, as the keeper does.
    #[test]
    fn a_run_whose_keeper_is_ending_it_is_left_alone_and_counted() {
        let home = tempfile::tempdir().unwrap();
        let ledger = Ledger::in_directory(home.path().join("ledger"));
        let run = ledger.register("claude").unwrap();
        let sweep = ledger.sweep();
        assert_eq!((sweep.live, sweep.ending), (1, 0), "{sweep:?}");
        let Content::Entry(mut entry) = Entry::read(run.lock()).unwrap() else { panic!("there is an entry") };
        // An earlier process had the id of the host.
        entry.host.start -= 1;
        entry.write(run.path()).unwrap();
        let sweep = ledger.sweep();
        assert_eq!((sweep.live, sweep.ending), (1, 1), "{sweep:?}");
        assert!(ledger.survey().live[0].is_orphaned && run.path().exists());
    }

    /// A zombie that was not reaped replaces a process that cannot be killed.
    #[test]
    fn a_run_with_processes_that_do_not_end_keeps_its_entry_but_not_its_files() {
        let home = tempfile::tempdir().unwrap();
        let run = Ledger::in_directory(home.path().join("ledger")).register("claude").unwrap();
        let files = run.private_dir().unwrap();
        files.write("secret", b"x").unwrap();
        let mut member = Command::new("sleep").arg("300").env(run.env_marker().name(), "1").spawn().unwrap();

        let scope = PidScope::now().unwrap();
        let content = Entry::read(run.lock()).unwrap();
        let known = known_run(run.path(), &content, &scope);
        let Content::Entry(entry) = content else { panic!("{content:?}") };
        let lock = run.lock().try_clone_to_owned().unwrap();
        let claim = Claim { run: known, lock, entry_with_processes: Some(*entry) };
        let seen = Snapshot::take(claim.target().into_iter()).unwrap();
        let reason = claim.remove(&seen, Instant::now()).unwrap_err();
        assert!(matches!(&reason, SkipReason::Alive(alive) if alive.len() == 1), "{reason}");
        assert!(reason.to_string().contains(&member.id().to_string()), "{reason}");
        assert!(!files.path().exists());
        assert!(matches!(Entry::read(run.lock()).unwrap(), Content::Entry(entry) if entry.scope == scope));
        member.wait().unwrap();
    }
}
