//! Handles of processes: they name one process for good, while its number may pass to another.

use std::{
    future::poll_fn,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    task::Poll,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, kill_process, pidfd_open, pidfd_send_signal, waitid,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{
    procfs::{self, Stat},
    signal::Signal,
};

/// A handle of a child that was not reaped yet, readable when the child has ended.
pub(crate) fn of_child(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    watch(pidfd_open(pid, PidfdFlags::empty())?)
}

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

/// Waits until all of these have ended; for ever if one of them cannot be watched.
pub(crate) async fn all_ended(alive: &[Stat]) {
    let mut watched = Vec::new();
    let mut all = true;
    for stat in alive {
        match open(stat).map_err(io::Error::from).and_then(|pidfd| pidfd.map(watch).transpose()) {
            Ok(pidfd) => watched.extend(pidfd),
            Err(_) => all = false,
        }
    }
    poll_fn(|context| {
        watched.retain(|pidfd| pidfd.poll_read_ready(context).is_pending());
        if all && watched.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
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

#[expect(unsafe_code, reason = "tokio leaves it to the caller that the descriptor stays open while it is watched")]
fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by the `AsyncFd` and closed only with it, and an `OwnedFd` always gives the same
    // one.
    Ok(unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?)
}
