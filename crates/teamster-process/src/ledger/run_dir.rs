//! The directory of one live run.

use std::{
    fs::{self, Permissions},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, open, statat},
    io::Errno,
};

use super::{
    entry::Entry,
    error::{LedgerError, io_error},
    ledger_dir::LedgerDir,
};
use crate::{
    env_marker::EnvMarker,
    private::{PrivateDir, PrivateError, give_owner_rights},
    process::Process,
};

/// The directory of private files in a run's directory.
pub(super) const FILES: &str = "files";

/// The length of a run directory's name.
const NAME_BYTES: usize = 16;

/// How often creating a directory is tried. A sweep may remove one before it is locked, or remove
/// an empty ledger.
const ATTEMPTS: usize = 64;

/// A run's directory in the ledger, which is removed with its contents on drop. If the run's
/// process tree may still be alive then, only the private files are removed at once, and the rest
/// when the tree is gone.
///
/// The run counts as live while [`lock`](Self::lock) is open in any process.
#[derive(Debug)]
pub struct RunDir {
    registration: Arc<Registration>,
    marker: EnvMarker,
}

/// The ledger entry of a run, shared by the run and its tree. The last of them removes it.
#[derive(Debug)]
pub(crate) struct Registration {
    path: PathBuf,
    lock: OwnedFd,
    ledger_dir: LedgerDir,
    entry: Mutex<Entry>,
    keep: AtomicBool,
}

impl RunDir {
    pub(super) fn register(ledger_dir: &LedgerDir, label: &str) -> Result<Self, LedgerError> {
        let marker = EnvMarker::unique();
        let entry = Entry::new(label, &marker).map_err(|source| LedgerError::Proc { source })?;
        let (path, lock) = create(ledger_dir)?;
        let (ledger_dir, keep) = (ledger_dir.clone(), AtomicBool::new(false));
        let registration = Arc::new(Registration { path, lock, ledger_dir, entry: Mutex::new(entry), keep });
        // If this fails, dropping it removes the directory.
        registration.change(|_| ())?;
        Ok(Self { registration, marker })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.registration.path
    }

    /// The lock: a descriptor of the directory. A process that inherits it, or a duplicate, also
    /// keeps the run live.
    pub fn lock(&self) -> BorrowedFd<'_> {
        self.registration.lock.as_fd()
    }

    /// Creates the directory for the run's private files. Only one exists at a time.
    pub fn private_dir(&self) -> Result<PrivateDir, PrivateError> {
        PrivateDir::create_named(self.path(), FILES)
    }

    /// Records the leader and the keeper of the started tree. The leader is then found even if it
    /// cleared its environment, and a stopped keeper does not make a crashed run look live. Other
    /// members are found by their environment marker.
    ///
    /// It writes a file, so call it on a thread that may block.
    pub fn record_tree(&mut self, leader: u32, keeper: Option<u32>) -> Result<(), LedgerError> {
        let process = |pid: u32| i32::try_from(pid).ok().and_then(Process::of);
        let (leader, keeper) = (process(leader), keeper.and_then(process));
        self.registration.change(|entry| (entry.leader, entry.keeper) = (leader, keeper))
    }

    /// Removes the directory and its contents. In contrast to a drop, it reports errors. While
    /// processes of the run may be alive, its ledger entry stays for a later sweep.
    pub fn remove(self) -> Result<(), LedgerError> {
        let registration = self.registration.clone();
        drop(self);
        Arc::try_unwrap(registration).map_or_else(|held| held.remove_files(), |last| last.clear())
    }

    /// The environment marker of the run's processes.
    pub(crate) fn env_marker(&self) -> &EnvMarker {
        &self.marker
    }

    /// Returns the entry that a tree of this run holds until it is gone.
    pub(crate) fn registration(&self) -> Arc<Registration> {
        Arc::clone(&self.registration)
    }
}

impl Registration {
    /// Keeps the entry when its last holder drops it: processes remain that could not be killed. A
    /// sweep tries again.
    pub(crate) fn keep_entry(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    fn change(&self, change: impl FnOnce(&mut Entry)) -> Result<(), LedgerError> {
        let mut entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut entry);
        entry.write(&self.path).map_err(|error| io_error(&self.path, error))
    }

    fn clear(&self) -> Result<(), LedgerError> {
        if self.keep.load(Ordering::Relaxed) {
            self.remove_files()?;
            return if is_same_directory(&self.path, self.lock()) {
                self.change(|entry| entry.given_up = true)
            } else {
                Ok(())
            };
        }
        let removed = remove_locked(&self.path, self.lock()).map_err(|error| io_error(&self.path, error));
        self.ledger_dir.prune();
        removed
    }

    fn remove_files(&self) -> Result<(), LedgerError> {
        if !is_same_directory(&self.path, self.lock()) {
            return Ok(());
        }
        remove_if_there(&self.path.join(FILES)).map_err(|error| io_error(&self.path, error))
    }

    fn lock(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        // A tree still holds the entry; the private files are removed now.
        if Arc::strong_count(&self.registration) > 1
            && let Err(error) = self.registration.remove_files()
        {
            tracing::warn!(%error, path = %self.path().display(), "cannot remove the private files of a run");
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the directory of a run");
        }
    }
}

/// Removes a directory and its contents. A missing directory is not an error.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates and locks a directory.
fn create(ledger_dir: &LedgerDir) -> Result<(PathBuf, OwnedFd), LedgerError> {
    let mut last = Errno::BUSY.into();
    for _ in 0..ATTEMPTS {
        match try_create(ledger_dir) {
            Ok(Some(made)) => return Ok(made),
            Ok(None) => {}
            // An empty ledger was removed meanwhile, or its parent does not exist.
            Err(LedgerError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => last = source,
            Err(error) => return Err(error),
        }
    }
    Err(io_error(ledger_dir.path(), last))
}

/// Creates and locks a directory; `None` if a sweep removed it first.
fn try_create(ledger_dir: &LedgerDir) -> Result<Option<(PathBuf, OwnedFd)>, LedgerError> {
    let runs = ledger_dir.create()?;
    let failed = |error: io::Error| io_error(&runs, error);
    let directory = tempfile::Builder::new()
        .prefix("")
        .rand_bytes(NAME_BYTES)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(&runs)
        .map_err(failed)?;
    let lock = lock_new(directory.path()).map_err(failed);
    if let Ok(Some(lock)) = lock {
        return Ok(Some((directory.keep(), lock)));
    }
    // The removal of an empty directory needs no descriptor. There may be none left.
    _ = fs::remove_dir(directory.keep());
    ledger_dir.prune();
    lock.map(|_| None)
}

/// Locks a new directory; `None` if a sweep has locked or removed it first.
fn lock_new(path: &Path) -> io::Result<Option<OwnedFd>> {
    give_owner_rights(path)?;
    let lock = open_directory(path)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if is_same_directory(path, lock.as_fd()) => Ok(Some(lock)),
        Ok(()) | Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a directory, without following a link.
pub(super) fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Returns whether a path has the name of a run.
pub(super) fn is_run_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns whether the path still names the opened directory.
pub(super) fn is_same_directory(path: &Path, directory: BorrowedFd<'_>) -> bool {
    let there = statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    let opened = fstat(directory);
    matches!((there, opened), (Ok(there), Ok(opened)) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino))
}

/// Removes a locked directory and its contents, if it still exists. No link is followed.
pub(super) fn remove_locked(path: &Path, lock: BorrowedFd<'_>) -> io::Result<()> {
    if !is_same_directory(path, lock) {
        return Ok(());
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(path),
        // The removal of an empty directory needs no descriptor. There may be none left.
        removed => removed,
    }
}
