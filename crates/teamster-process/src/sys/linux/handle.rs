//! Pidfds.

use std::os::fd::OwnedFd;

use rustix::{
    io::Result,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::stat::Stat;

/// Opens a descriptor that identifies a process for good and is readable once it has ended.
pub(crate) fn watch(pid: Pid) -> Result<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty())
}

/// Converts a handle for use in a forked child of the process that opened it.
#[expect(clippy::unnecessary_wraps, reason = "another system has to ask anew")]
pub(crate) fn watch_after_fork(handle: OwnedFd, _pid: Pid) -> Option<OwnedFd> {
    Some(handle)
}

/// Sends a signal to the process of a handle.
pub(crate) fn signal(handle: &OwnedFd, _stat: &Stat, signal: Signal) -> Result<()> {
    pidfd_send_signal(handle, signal)
}
