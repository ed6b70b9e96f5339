//! The directory of one live run.

use std::{
    fs::{self, Permissions},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, open, statat},
    io::Errno,
};

use super::{
    LedgerError,
    entry::{Entry, Process},
    io_error,
    place::Place,
};
use crate::{
    mark::Mark,
    private::{PrivateDir, PrivateError, give_owner_rights},
};

/// The length of a run's name.
const NAME_BYTES: usize = 16;

/// How often another directory is tried. A sweep may take one before it is locked, or remove an empty ledger.
const ATTEMPTS: usize = 64;

/// A run's directory in the ledger, removed with everything in it when it is dropped.
///
/// The run is known as live for as long as [`lock`](Self::lock) is open anywhere, here or in another process.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    lock: OwnedFd,
    place: Place,
    entry: Entry,
    mark: Mark,
}

impl RunDir {
    pub(super) fn register(place: &Place, label: &str) -> Result<Self, LedgerError> {
        let mark = Mark::unique();
        let entry = Entry::new(label, &mark).map_err(|source| LedgerError::Proc { source })?;
        let (path, lock) = make(place)?;
        let run = Self { path, lock, place: place.clone(), entry, mark };
        // Dropped if it fails.
        run.write_entry()?;
        Ok(run)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lock: a descriptor of the directory. Whoever inherits it, or a duplicate of it, cares for the run too.
    pub fn lock(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    /// A directory for the run's private files, inside of this one. There is one at a time.
    pub fn private_dir(&self) -> Result<PrivateDir, PrivateError> {
        PrivateDir::create_named(&self.path, "files")
    }

    /// Notes the leader, once it is started: it is found again then even if it has thrown its environment away. (The
    /// rest of the tree is found by its mark.)
    pub fn set_leader(&mut self, pid: u32) -> Result<(), LedgerError> {
        self.entry.leader = i32::try_from(pid).ok().and_then(Process::of);
        self.write_entry()
    }

    /// Removes the directory with everything in it, and tells if that failed, as dropping it does not.
    pub fn remove(self) -> Result<(), LedgerError> {
        self.clear()
    }

    /// What the run's processes have in their environment.
    pub(crate) fn mark(&self) -> &Mark {
        &self.mark
    }

    fn write_entry(&self) -> Result<(), LedgerError> {
        self.entry.write(&self.path).map_err(|error| io_error(&self.path, error))
    }

    fn clear(&self) -> Result<(), LedgerError> {
        let removed = remove(&self.path, self.lock.as_fd()).map_err(|error| io_error(&self.path, error));
        self.place.prune();
        removed
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            tracing::warn!(%error, path = %self.path.display(), "a run's directory stays behind");
        }
    }
}

/// Makes a directory and locks it.
fn make(place: &Place) -> Result<(PathBuf, OwnedFd), LedgerError> {
    let mut last = Errno::BUSY.into();
    for _ in 0..ATTEMPTS {
        match try_make(place) {
            Ok(Some(made)) => return Ok(made),
            Ok(None) => {}
            // An empty ledger was removed between two steps, or its parent is not there.
            Err(LedgerError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => last = source,
            Err(error) => return Err(error),
        }
    }
    Err(io_error(place.path(), last))
}

/// `None` if a sweep took it away.
fn try_make(place: &Place) -> Result<Option<(PathBuf, OwnedFd)>, LedgerError> {
    let runs = place.make()?;
    let failed = |error: io::Error| io_error(&runs, error);
    let directory = tempfile::Builder::new()
        .prefix("")
        .rand_bytes(NAME_BYTES)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(&runs)
        .map_err(failed)?;
    give_owner_rights(directory.path()).map_err(failed)?;
    let lock = open_directory(directory.path()).map_err(|errno| failed(errno.into()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(errno) => return Err(failed(errno.into())),
    }
    if !names(directory.path(), lock.as_fd()) {
        return Ok(None);
    }
    Ok(Some((directory.keep(), lock)))
}

/// Opens a directory, but no link to one.
pub(super) fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Whether this could be the name of a run.
pub(super) fn is_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether the path still names the directory that was opened.
pub(super) fn names(path: &Path, directory: BorrowedFd<'_>) -> bool {
    let there = statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    let opened = fstat(directory);
    matches!((there, opened), (Ok(there), Ok(opened)) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino))
}

/// Removes a locked directory with everything in it, if it is still there. No link is followed.
pub(super) fn remove(path: &Path, lock: BorrowedFd<'_>) -> io::Result<()> {
    if names(path, lock) { fs::remove_dir_all(path) } else { Ok(()) }
}
