//! A verified procfs that is held open.
//!
//! `/proc` may be unmounted, or covered by another mount, at any time; an open descriptor still
//! shows the processes. It must be a procfs of this pid namespace: another one shows other
//! processes under the same pids.

use std::{
    ffi::OsString,
    fs, io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::{
    fs::{Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, open, openat, readlinkat},
    io::{Errno, fcntl_dupfd_cloexec},
    process::getpid,
};

/// The path of this program's file.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

static HELD: OnceLock<OwnedFd> = OnceLock::new();

/// The root of a procfs.
pub(super) enum Root {
    Held(&'static OwnedFd),
    /// The host has closed the held descriptor, which it does not own.
    New(OwnedFd),
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Held(root) => root.as_fd(),
            Self::New(root) => root.as_fd(),
        }
    }
}

/// Opens `/proc` and holds it, if it is a procfs. Called early, since it may be missing later.
pub(crate) fn hold_proc() {
    _ = any();
}

/// Returns a copy of the held descriptor, for a program that may not find `/proc`.
pub(crate) fn held_proc() -> Option<OwnedFd> {
    any().ok()?.as_fd().try_clone_to_owned().ok()
}

/// Holds the directory of this descriptor, if it is a procfs.
pub(crate) fn adopt_proc(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    if is_procfs(descriptor) {
        _ = HELD.set(fcntl_dupfd_cloexec(descriptor, 3)?);
    }
    Ok(())
}

/// Returns the path of this program's file in the held procfs, if `/proc` is covered by another
/// mount.
pub(crate) fn in_held_proc(program: &Path) -> Option<&'static str> {
    (program == Path::new(OWN_PROGRAM) && fs::symlink_metadata(OWN_PROGRAM).is_err()).then_some("self/exe")
}

/// Returns a procfs of this pid namespace.
pub(super) fn of_this_namespace() -> io::Result<Root> {
    let root = any()?;
    match own_number(root.as_fd())? {
        Some(own) if own == getpid().as_raw_nonzero().get() => Ok(root),
        _ => Err(io::Error::other("/proc belongs to another process namespace: it shows other numbers")),
    }
}

/// Returns a procfs of any pid namespace, which shows this process as `self`.
pub(super) fn any() -> io::Result<Root> {
    if let Some(root) = HELD.get()
        && is_procfs(root.as_fd())
    {
        return Ok(Root::Held(root));
    }
    let root = open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    if !is_procfs(root.as_fd()) {
        return Err(io::Error::other("/proc is not mounted, or something else is mounted over it"));
    }
    match HELD.set(root) {
        Ok(()) => HELD.get().map(Root::Held).ok_or_else(|| Errno::NOENT.into()),
        Err(root) => Ok(Root::New(root)),
    }
}

/// Reads a whole file.
pub(super) fn read(root: &Root, path: &str) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    fs::File::from(file).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole text file.
pub(super) fn read_text(root: &Root, path: &str) -> io::Result<String> {
    String::from_utf8(read(root, path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the target of a link.
pub(super) fn link(root: &Root, path: &str) -> io::Result<PathBuf> {
    let target = readlinkat(root, path, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// Returns the pid that this procfs shows for this process.
fn own_number(root: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    let target = readlinkat(root, "self", Vec::new())?;
    Ok(target.to_str().ok().and_then(|number| number.parse().ok()))
}

fn is_procfs(root: BorrowedFd<'_>) -> bool {
    fstatfs(root).is_ok_and(|fs| fs.f_type == PROC_SUPER_MAGIC)
}
