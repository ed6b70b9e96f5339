//! macOS. This code is checked to compile, but not tested. `docs/security.md` lists what macOS
//! lacks and what is still guaranteed.

mod handle;
mod processes;
mod program;
mod start;

use std::{
    ffi::{CStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::PathBuf,
    ptr::null_mut,
};

use rustix::{
    net::{RecvFlags, SendFlags, sockopt::set_socket_nosigpipe},
    process::Signal,
    time::ClockId,
};

pub(crate) use handle::{signal, watch, watch_after_fork};
pub(crate) use processes::{
    adopt_proc, can_see_processes, children, children_of_thread, environ, held_proc, hold_proc, in_held_proc,
    is_own_child, numbers, own_children, resident, snapshot, stat_of,
};
pub(crate) use program::{OWN_PROGRAM, close_inherited, own_program};
pub(crate) use start::{await_release, is_made_by_parent, is_privileged, own_thread};

/// The flags for writing to a socket. No flag suppresses the signal: see [`without_signal`].
pub(crate) const SEND: SendFlags = SendFlags::empty();

/// The flags for reading from a socket. No flag keeps received descriptors from being inherited.
pub(crate) const RECEIVE: RecvFlags = RecvFlags::empty();

/// Signals that other systems do not have.
pub(crate) const SIGNALS: [(Signal, &str); 2] = [(Signal::EMT, "SIGEMT"), (Signal::INFO, "SIGINFO")];

/// Whether [`adopt_orphans`] works: a process without children then has no descendants.
pub(crate) const ADOPTS_ORPHANS: bool = false;

/// The clock of leases. It continues while the machine sleeps.
pub(crate) const LEASE_CLOCK: ClockId = ClockId::Monotonic;

/// Creates a temporary file of `bytes` zeros, which has no name.
pub(crate) fn shared_memory(bytes: usize) -> io::Result<OwnedFd> {
    let file = tempfile::tempfile()?;
    file.set_len(bytes as u64)?;
    Ok(file.into())
}

/// Does nothing: process 1 adopts all orphans here.
#[expect(clippy::unnecessary_wraps, reason = "another system may refuse")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Does nothing: the system has no such signal.
pub(crate) fn continue_with_parents_death() {}

/// Makes writes to a closed socket raise no signal. The host usually ignores the signal, and the
/// helper processes catch it; this is for hosts that do not.
pub(crate) fn without_signal(socket: impl AsFd) {
    _ = set_socket_nosigpipe(socket, true);
}

/// Does nothing: `ps` shows the first argument here, which was set at the start.
pub(crate) fn name_process(_name: &CStr) {}

/// Returns the id of the system's boot. (The boot time changes with the clock.)
#[expect(unsafe_code, reason = "no safe call asks the system by name")]
pub(crate) fn boot() -> io::Result<String> {
    // A UUID, as text.
    let mut text = vec![0_u8; 64];
    let mut size = text.len();
    // SAFETY: `size` is the size of the buffer, which lives longer than the call, and nothing is set.
    let asked = unsafe {
        libc::sysctlbyname(c"kern.bootsessionuuid".as_ptr(), text.as_mut_ptr().cast(), &raw mut size, null_mut(), 0)
    };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    let text = CStr::from_bytes_until_nul(&text).map_err(io::Error::other)?;
    Ok(text.to_string_lossy().into_owned())
}

/// Returns 0: there is one scope of pids.
#[expect(clippy::unnecessary_wraps, reason = "another system may fail")]
pub(crate) fn pid_namespace() -> io::Result<u64> {
    Ok(0)
}

/// Returns where this user's ledger is without `TMPDIR`: in the user's own directory for temporary
/// files.
#[expect(unsafe_code, reason = "no safe call asks for this directory")]
pub(crate) fn known_ledger(uid: u32) -> Option<PathBuf> {
    let mut path = vec![0_u8; 1024];
    // SAFETY: the buffer has this size and lives longer than the call, which writes no more than that.
    let needed = unsafe { libc::confstr(libc::_CS_DARWIN_USER_TEMP_DIR, path.as_mut_ptr().cast(), path.len()) };
    // With the NUL at the end.
    let length = needed.checked_sub(1).filter(|_| needed <= path.len())?;
    path.truncate(length);
    Some(PathBuf::from(OsString::from_vec(path)).join(format!("teamster-{uid}")))
}

/// Returns `false`: a pipe grows by itself, up to 64 KiB.
pub(crate) fn enlarge_pipe(_pipe: impl AsFd, _bytes: usize) -> bool {
    false
}

/// Returns `None`: no large pipes are requested here.
pub(crate) fn pipe_allowance() -> Option<usize> {
    None
}
