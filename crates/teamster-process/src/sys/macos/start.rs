//! How this process was started, and how its threads end.

use std::os::fd::BorrowedFd;

/// Returns whether this program's file grants rights that its caller lacks (setuid, setgid). The
/// environment is then untrusted.
#[expect(unsafe_code, reason = "no safe call asks this")]
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the call takes nothing and returns a number.
    unsafe { libc::issetugid() != 0 }
}

/// Returns `true`: the system does not report the creator of a socket pair.
pub(crate) fn is_made_by_parent(_socket: BorrowedFd<'_>) -> bool {
    true
}

/// Returns 0: thread ids are not needed here.
pub(crate) fn own_thread() -> i32 {
    0
}

/// Does nothing: a joined thread is no longer counted.
pub(crate) fn await_release(_thread: i32) {}
