//! Handles of processes: they name one process for good, while its number may pass to another.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, kill_process, pidfd_open, pidfd_send_signal, waitid,
    },
};

use crate::{
    procfs::{self, Stat},
    signal::Signal,
};

/// Asks for the end of a child, without waiting for it unless `options` say so.
pub(crate) fn wait(pidfd: BorrowedFd<'_>, options: WaitIdOptions) -> rustix::io::Result<Option<WaitIdStatus>> {
    loop {
        match waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED | options) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Blocks until the process has ended, but not longer than `limit`.
pub(crate) fn block_on_end(pidfd: BorrowedFd<'_>, limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else {
            return;
        };
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Blocks until all of these have ended, but not longer than `limit`. One that cannot be watched is not waited for.
pub(crate) fn block_on_ends(alive: &[Stat], limit: Duration) {
    let deadline = Instant::now() + limit;
    for stat in alive {
        if let Ok(Some(pidfd)) = open(stat) {
            block_on_end(pidfd.as_fd(), deadline.saturating_duration_since(Instant::now()));
        }
    }
}

/// Sends a signal to this very process, and to nobody who has its number by now.
pub(crate) fn send(stat: &Stat, signal: Signal) {
    let sent = match open(stat) {
        Ok(Some(pidfd)) => pidfd_send_signal(&pidfd, signal.raw()),
        Ok(None) => return,
        // Out of descriptors: a look just before the signal is the best that is left.
        Err(Errno::MFILE | Errno::NFILE) => kill_if_same(stat, signal),
        Err(errno) => Err(errno),
    };
    match sent {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(errno) => tracing::debug!(pid = stat.pid, ?signal, %errno, "a member took no signal"),
    }
}

/// `None` if the process is gone.
fn open(stat: &Stat) -> rustix::io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(stat.pid) else {
        return Ok(None);
    };
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    // If the number still means this process now, it did when the handle was opened.
    Ok((procfs::start_of(stat.pid) == Some(stat.start)).then_some(pidfd))
}

fn kill_if_same(stat: &Stat, signal: Signal) -> rustix::io::Result<()> {
    match Pid::from_raw(stat.pid) {
        Some(pid) if procfs::start_of(stat.pid) == Some(stat.start) => kill_process(pid, signal.raw()),
        _ => Ok(()),
    }
}
