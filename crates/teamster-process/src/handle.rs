//! Sends signals to processes and waits for their exit, without hitting a process that reuses a
//! pid.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, kill_process},
};

use crate::{
    signal::Signal,
    stat::{Stat, UNKNOWN_START},
    sys,
};

/// Blocks until the process has ended, for at most `limit`.
pub(crate) fn block_on_end(handle: BorrowedFd<'_>, limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else {
            return;
        };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Blocks until all of these have ended, for at most `limit`. Processes that cannot be watched are
/// skipped.
pub(crate) fn block_on_ends(alive: &[Stat], limit: Duration) {
    let deadline = Instant::now() + limit;
    for stat in alive {
        if let Ok(Some(handle)) = open(stat) {
            block_on_end(handle.as_fd(), deadline.saturating_duration_since(Instant::now()));
        }
    }
}

/// Sends a signal to exactly this process, never to one that reuses its pid.
pub(crate) fn send(stat: &Stat, signal: Signal) {
    let sent = match open(stat) {
        Ok(Some(handle)) => match sys::signal(&handle, stat, signal.raw()) {
            Err(Errno::NOSYS | Errno::PERM) => kill_if_same(stat, signal),
            sent => sent,
        },
        Ok(None) => return,
        // Out of descriptors, or pidfds are refused: comparing the start time just before the
        // signal is the best remaining check.
        Err(_) => kill_if_same(stat, signal),
    };
    match sent {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(errno) => tracing::debug!(pid = stat.pid, ?signal, %errno, "cannot send a signal to a process"),
    }
}

/// Opens a handle of the process; `None` if it is gone.
fn open(stat: &Stat) -> rustix::io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(stat.pid) else {
        return Ok(None);
    };
    let handle = match sys::watch(pid) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    // If the pid is still this process's own, it was so when the handle was opened.
    Ok(is_same(stat).then_some(handle))
}

fn kill_if_same(stat: &Stat, signal: Signal) -> rustix::io::Result<()> {
    match Pid::from_raw(stat.pid) {
        Some(pid) if is_same(stat) => kill_process(pid, signal.raw()),
        _ => Ok(()),
    }
}

/// Returns whether the pid is still this process's own. The pid of a child that was not reaped is
/// never reused.
fn is_same(stat: &Stat) -> bool {
    if stat.start == UNKNOWN_START { sys::is_own_child(stat.pid) } else { stat.is_still() }
}
