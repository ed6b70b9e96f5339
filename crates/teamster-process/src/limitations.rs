//! The guarantees that do not hold where the system refuses access to processes.

use std::io;

use rustix::{io::Errno, process::getpid};

use crate::sys;

/// A refusal of the system, which voids a guarantee about process trees.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Limitation {
    /// Process handles (`pidfd_open`) are refused, as under the seccomp filters of older
    /// containers.
    #[error(
        "the system refuses handles of processes (pidfd_open: {source}), so processes are killed by number, right after their \
         start time was compared: it is not guaranteed that no other process gets the number in between, and if this program \
         forks copies of itself, its processes may outlive it until the copies end"
    )]
    NoHandles {
        /// The error of the system.
        source: io::Error,
    },
    /// Processes cannot be listed: `/proc` is missing or belongs to another pid namespace.
    #[error(
        "processes cannot be seen ({source}), so those of a run are found one generation at a time, as their parents end: it is \
         not guaranteed that all of them are ended in time, nor that those left are all named, and what a crash leaves is not \
         swept; mount a /proc of this process namespace"
    )]
    NoProcesses {
        /// Why.
        source: io::Error,
    },
}

/// Returns what the system refuses to this program now. Empty if all guarantees of this crate hold.
///
/// The check takes microseconds. The helper processes of this crate are started by this program, so
/// the same is refused to them.
pub fn limitations() -> Vec<Limitation> {
    let handles = match sys::watch(getpid()) {
        // Out of descriptors is a temporary error, which a start reports itself.
        Ok(_) | Err(Errno::MFILE | Errno::NFILE) => None,
        Err(errno) => Some(Limitation::NoHandles { source: errno.into() }),
    };
    let processes = sys::can_see_processes().err().filter(|error| !is_exhausted(error));
    handles.into_iter().chain(processes.map(|source| Limitation::NoProcesses { source })).collect()
}

/// Joins several limitations into one text.
pub fn join(limitations: &[Limitation]) -> String {
    limitations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_refusals_has_no_limitations() {
        assert!(limitations().is_empty(), "{:?}", limitations());
    }
}
