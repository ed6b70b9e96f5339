//! How this process was started, and how its threads end.

use std::os::fd::BorrowedFd;

/// Whether the file of this program gave it rights that whoever started it does not have (setuid, setgid): what the environment
/// says is not to be trusted then.
#[expect(unsafe_code, reason = "no safe call asks this")]
pub(crate) fn is_privileged() -> bool {
    // SAFETY: it takes nothing and gives a number.
    unsafe { libc::issetugid() != 0 }
}

/// Whether the parent of this process has made this socket. The system names nobody for a pair of sockets.
pub(crate) fn is_made_by_parent(_socket: BorrowedFd<'_>) -> bool {
    true
}

/// Threads have no numbers that are needed here.
pub(crate) fn own_thread() -> i32 {
    0
}

/// A thread that was joined is no longer counted.
pub(crate) fn await_release(_thread: i32) {}
