//! Linux.

use std::{fs, os::fd::AsFd};

use rustix::{param::page_size, pipe::fcntl_setpipe_size, thread::CapabilitySet};

/// Makes a pipe hold so many bytes, if the system lets this user.
pub(crate) fn enlarge_pipe(pipe: impl AsFd, bytes: usize) -> bool {
    fcntl_setpipe_size(pipe, bytes).is_ok()
}

/// How many bytes all pipes of this user may hold before the system makes new ones small; `None` without a limit.
pub(crate) fn pipe_allowance() -> Option<usize> {
    let pages = fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").ok()?.trim().parse::<usize>().ok()?;
    let is_limited = pages > 0 && !is_above_limits();
    is_limited.then(|| pages.saturating_mul(page_size()))
}

/// Whether limits of users are not this process's. What root may do in a user namespace of its own does not count.
fn is_above_limits() -> bool {
    let above = CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN;
    let is_privileged = rustix::thread::capabilities(None).is_ok_and(|own| own.effective.intersects(above));
    let ids = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    is_privileged && ids.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}
