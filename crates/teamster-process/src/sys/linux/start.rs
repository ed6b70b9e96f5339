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

/// How often it is looked whether the system has released a thread that has ended. It takes microseconds.
const RELEASE_LOOKS: u32 = 200;
const RELEASE_PAUSE: Duration = Duration::from_micros(50);

/// Whether the file of this program gave it rights that whoever started it does not have (setuid, setgid, capabilities): what
/// the environment says is not to be trusted then.
#[expect(unsafe_code, reason = "no safe call reads this value")]
pub(crate) fn is_privileged() -> bool {
    // SAFETY: it takes a number and gives one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether the parent of this process has made this socket, as the user who runs this process.
pub(crate) fn is_made_by_parent(socket: BorrowedFd<'_>) -> bool {
    // Of a pair of sockets, both ends name the process that has made it.
    socket_peercred(socket.as_fd()).is_ok_and(|maker| Some(maker.pid) == getppid() && maker.uid == getuid())
}

/// The number of this thread.
pub(crate) fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Waits until a thread of this process that has ended is no longer counted. Joining it returns a moment before that.
#[expect(unsafe_code, reason = "no safe call asks about a thread")]
pub(crate) fn await_release(thread: i32) {
    for _ in 0..RELEASE_LOOKS {
        let process = std::process::id();
        // SAFETY: without a signal nothing is sent. The numbers are those of a process and of a thread.
        if unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) } != 0 {
            return;
        }
        thread::sleep(RELEASE_PAUSE);
    }
}
