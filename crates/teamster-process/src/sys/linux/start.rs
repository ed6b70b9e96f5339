//! How this process was started, and how its threads end.

use std::{
    os::fd::{AsFd, BorrowedFd},
    thread,
    time::Duration,
};

use rustix::{
    net::sockopt::socket_peercred,
    process::{getppid, getuid},
};

/// How often to check whether the system has released an ended thread. It takes microseconds, which is less than the shortest
/// sleep. So the first checks only yield.
const RELEASE_LOOKS: u32 = 220;
const RELEASE_YIELDS: u32 = 20;
const RELEASE_PAUSE: Duration = Duration::from_micros(50);

/// Returns whether this program's file grants rights that its caller lacks (setuid, setgid,
/// capabilities). The environment is then untrusted.
#[expect(unsafe_code, reason = "no safe call reads this value")]
pub(crate) fn is_privileged() -> bool {
    // SAFETY: the call takes and returns numbers.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns whether the parent of this process created this socket, as the user that runs this
/// process.
pub(crate) fn is_made_by_parent(socket: BorrowedFd<'_>) -> bool {
    // Both ends of a socket pair name the process that created it.
    socket_peercred(socket.as_fd()).is_ok_and(|maker| Some(maker.pid) == getppid() && maker.uid == getuid())
}

/// Returns the id of this thread.
pub(crate) fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Waits until an ended thread is no longer counted. A join returns slightly earlier.
#[expect(unsafe_code, reason = "no safe call asks about a thread")]
pub(crate) fn await_release(thread: i32) {
    for look in 0..RELEASE_LOOKS {
        let process = std::process::id();
        // SAFETY: signal 0 only checks that the thread exists.
        if unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) } != 0 {
            return;
        }
        if look < RELEASE_YIELDS {
            thread::yield_now();
        } else {
            thread::sleep(RELEASE_PAUSE);
        }
    }
}
