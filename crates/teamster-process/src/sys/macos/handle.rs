//! Kernel queues that tell when a process has ended.

use std::os::fd::OwnedFd;

use rustix::{
    event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue},
    io::{Errno, Result},
    process::{Pid, Signal, kill_process},
};

use crate::process::Stat;

/// A descriptor that can be read once this process has ended.
#[expect(unsafe_code, reason = "the safe crate has no safe call for it")]
pub(crate) fn watch(pid: Pid) -> Result<OwnedFd> {
    let queue = kqueue()?;
    let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    // It stays in the queue when it has come, so that everybody who waits sees it.
    let exit = Event::new(filter, EventFlags::ADD, std::ptr::null_mut());
    let mut no_events: [Event; 0] = [];
    // SAFETY: the filter names a process, and no descriptor that somebody could close.
    unsafe { kevent(&queue, &[exit], &mut no_events[..], None) }?;
    Ok(queue)
}

/// The same, in a child of the process that has made it: queues are not inherited.
pub(crate) fn watch_after_fork(_handle: OwnedFd, pid: Pid) -> Option<OwnedFd> {
    watch(pid).ok()
}

/// Sends a signal to a process. Its number could pass on between the look and the signal, and the system gives no better
/// way; numbers come round only after all others.
pub(crate) fn signal(_handle: &OwnedFd, stat: &Stat, signal: Signal) -> Result<()> {
    match Pid::from_raw(stat.pid) {
        Some(pid) if stat.is_still() => kill_process(pid, signal),
        _ => Err(Errno::SRCH),
    }
}
