//! Linux.

mod children;
mod handle;
mod processes;
mod procfs;
mod program;
mod start;

use std::{ffi::CStr, io, os::fd::AsFd, path::PathBuf, str::FromStr};

use rustix::{
    fs::{Mode, OFlags, fstat, openat},
    net::{RecvFlags, SendFlags},
    param::page_size,
    pipe::fcntl_setpipe_size,
    process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal},
    thread::CapabilitySet,
};

pub(crate) use children::{is_own_child, own_children};
pub(crate) use handle::{signal, watch, watch_after_fork};
pub(crate) use processes::{can_see_processes, children, children_of_thread, environ, numbers, resident, snapshot, stat_of};
pub(crate) use procfs::{adopt_proc, held_proc, hold_proc, in_held_proc};
pub(crate) use program::{OWN_PROGRAM, close_inherited, own_program};
pub(crate) use start::{await_release, is_made_by_parent, is_privileged, own_thread};

/// What a socket is written to with: an end of the connection is an error and no signal.
pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL;

/// What a socket is read with: no program inherits the descriptors that come.
pub(crate) const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Signals that other systems do not have.
pub(crate) const SIGNALS: [(Signal, &str); 2] = [(Signal::STKFLT, "SIGSTKFLT"), (Signal::POWER, "SIGPWR")];

/// Whether [`adopt_orphans`] works: who has no children then has no descendants.
pub(crate) const ADOPTS_ORPHANS: bool = true;

/// Makes this process the parent of whoever descends from it and loses its parent.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Has the system continue this process, if it is stopped, when its parent dies: nobody else might then.
pub(crate) fn continue_with_parents_death() {
    _ = set_parent_process_death_signal(Some(Signal::CONT));
}

/// Has writing to a socket whose other end is closed send no signal: [`SEND`] does that.
pub(crate) fn without_signal(_socket: impl AsFd) {}

/// What `ps` shows, which is cut to 15 bytes. Nothing depends on it.
pub(crate) fn name_process(name: &CStr) {
    _ = rustix::thread::set_name(name);
}

/// Which start of the system this is.
pub(crate) fn boot() -> io::Result<String> {
    Ok(procfs::read_text(&procfs::any()?, "sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Where process numbers mean something.
pub(crate) fn pid_namespace() -> io::Result<u64> {
    let namespace = openat(&procfs::any()?, "self/ns/pid", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(fstat(&namespace)?.st_ino)
}

/// Where the ledger of this user is, if a variable says so that is not set everywhere.
#[expect(clippy::unnecessary_wraps, reason = "another system may have none")]
pub(crate) fn known_ledger(uid: u32) -> Option<PathBuf> {
    Some(format!("/run/user/{uid}/teamster").into())
}

/// Makes a pipe hold so many bytes, if the system lets this user.
pub(crate) fn enlarge_pipe(pipe: impl AsFd, bytes: usize) -> bool {
    fcntl_setpipe_size(pipe, bytes).is_ok()
}

/// How many bytes all pipes of this user may hold before the system makes new ones small; `None` without a limit.
pub(crate) fn pipe_allowance() -> Option<usize> {
    let pages: usize = read_text_of_system(&procfs::any().ok()?, "sys/fs/pipe-user-pages-soft")?;
    let is_limited = pages > 0 && !is_above_limits();
    is_limited.then(|| pages.saturating_mul(page_size()))
}

/// A number of the system.
fn read_text_of_system<T: FromStr>(root: &procfs::Root, path: &str) -> Option<T> {
    procfs::read_text(root, path).ok()?.trim().parse().ok()
}

/// Whether limits of users are not this process's. What root may do in a user namespace of its own does not count.
fn is_above_limits() -> bool {
    let above = CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN;
    let is_privileged = rustix::thread::capabilities(None).is_ok_and(|own| own.effective.intersects(above));
    let ids = procfs::any().and_then(|root| procfs::read_text(&root, "self/uid_map")).unwrap_or_default();
    is_privileged && ids.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}
