//! Kernel queues that report the exit of a process.

use std::os::fd::OwnedFd;

use rustix::{
    event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue},
    io::{Errno, Result},
    process::{Pid, Signal, kill_process},
};

use crate::stat::Stat;

/// Opens a descriptor that is readable once the process has ended.
#[expect(unsafe_code, reason = "the safe crate has no safe call for it")]
pub(crate) fn watch(pid: Pid) -> Result<OwnedFd> {
    let queue = kqueue()?;
    let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    // The event stays in the queue, so that every waiter sees it.
    let exit = Event::new(filter, EventFlags::ADD, std::ptr::null_mut());
    let mut no_events: [Event; 0] = [];
    // SAFETY: the filter names a process and no descriptor that could be closed.
    unsafe { kevent(&queue, &[exit], &mut no_events[..], None) }?;
    Ok(queue)
}

/// Opens the handle again in a forked child: queues are not inherited.
pub(crate) fn watch_after_fork(_handle: OwnedFd, pid: Pid) -> Option<OwnedFd> {
    watch(pid).ok()
}

/// Sends a signal to a process. Its pid could be reused between the check and the signal, and the
/// system has no better call; pids are reused only after all others.
pub(crate) fn signal(_handle: &OwnedFd, stat: &Stat, signal: Signal) -> Result<()> {
    match Pid::from_raw(stat.pid) {
        Some(pid) if stat.is_still() => kill_process(pid, signal),
        _ => Err(Errno::SRCH),
    }
}
