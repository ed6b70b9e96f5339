//! Linux.

mod children;
mod handle;
mod processes;
mod procfs;
mod program;
mod start;

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    str::FromStr,
};

use rustix::{
    fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create, openat},
    net::{RecvFlags, SendFlags},
    param::page_size,
    pipe::fcntl_setpipe_size,
    process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal},
    thread::CapabilitySet,
    time::ClockId,
};

pub(crate) use children::{is_own_child, own_children};
pub(crate) use handle::{signal, watch, watch_after_fork};
pub(crate) use processes::{
    can_see_processes, children, children_of_thread, environ, numbers, resident, snapshot, stat_of,
};
pub(crate) use procfs::{OWN_PROGRAM, adopt_proc, held_proc, hold_proc, in_held_proc};
pub(crate) use program::{close_inherited, own_program};
pub(crate) use start::{await_release, is_made_by_parent, is_privileged, own_thread};

/// The flags for writing to a socket: a closed connection is an error and raises no signal.
pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL;

/// The flags for reading from a socket: received descriptors are not inherited.
pub(crate) const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Signals that other systems do not have.
pub(crate) const SIGNALS: [(Signal, &str); 2] = [(Signal::STKFLT, "SIGSTKFLT"), (Signal::POWER, "SIGPWR")];

/// Whether [`adopt_orphans`] works: a process without children then has no descendants.
pub(crate) const ADOPTS_ORPHANS: bool = true;

/// The clock of leases. It continues while the machine sleeps.
pub(crate) const LEASE_CLOCK: ClockId = ClockId::Boottime;

/// Creates a file of `bytes` zeros in memory, which has no name and a fixed size.
pub(crate) fn shared_memory(bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create(c"teamster-lease", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    // A process that shrinks the file would crash those that have mapped it.
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Makes this process the parent of its orphaned descendants.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Requests that the system continues this process, if it is stopped, when its parent dies. No
/// other process would.
pub(crate) fn continue_with_parents_death() {
    _ = set_parent_process_death_signal(Some(Signal::CONT));
}

/// Makes writes to a closed socket raise no signal: [`SEND`] does that here.
pub(crate) fn without_signal(_socket: impl AsFd) {}

/// Sets the name that `ps` shows, cut to 15 bytes. Nothing depends on it.
pub(crate) fn name_process(name: &CStr) {
    _ = rustix::thread::set_name(name);
}

/// Returns the id of the system's boot.
pub(crate) fn boot() -> io::Result<String> {
    Ok(procfs::read_text(&procfs::any()?, "sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Returns the id of this process's pid namespace.
pub(crate) fn pid_namespace() -> io::Result<u64> {
    let namespace = openat(&procfs::any()?, "self/ns/pid", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(fstat(&namespace)?.st_ino)
}

/// Returns where this user's ledger is if `XDG_RUNTIME_DIR` was set when it was written.
#[expect(clippy::unnecessary_wraps, reason = "another system may have none")]
pub(crate) fn known_ledger(uid: u32) -> Option<PathBuf> {
    Some(format!("/run/user/{uid}/teamster").into())
}

/// Sets the capacity of a pipe, if the system permits it.
pub(crate) fn enlarge_pipe(pipe: impl AsFd, bytes: usize) -> bool {
    fcntl_setpipe_size(pipe, bytes).is_ok()
}

/// Returns how many bytes all pipes of this user may hold before the system makes new ones small;
/// `None` without a limit.
pub(crate) fn pipe_allowance() -> Option<usize> {
    let pages: usize = read_text_of_system(&procfs::any().ok()?, "sys/fs/pipe-user-pages-soft")?;
    let is_limited = pages > 0 && !is_above_limits();
    is_limited.then(|| pages.saturating_mul(page_size()))
}

/// Reads a number from a file of the procfs.
fn read_text_of_system<T: FromStr>(root: &procfs::Root, path: &str) -> Option<T> {
    procfs::read_text(root, path).ok()?.trim().parse().ok()
}

/// Returns whether the limits of users do not apply to this process. Root in a user namespace does
/// not count.
fn is_above_limits() -> bool {
    let above = CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN;
    let is_privileged = rustix::thread::capabilities(None).is_ok_and(|own| own.effective.intersects(above));
    let ids = procfs::any().and_then(|root| procfs::read_text(&root, "self/uid_map")).unwrap_or_default();
    is_privileged && ids.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}
