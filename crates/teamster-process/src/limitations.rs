//! What the system lets this program do with processes, and what cannot be guaranteed where it refuses something.

use std::io;

use rustix::{io::Errno, process::getpid};

use crate::sys;

/// Something that the system refuses, so that a guarantee about process trees does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Limitation {
    /// There are no handles of processes (`pidfd_open`), as under the seccomp filters of older containers.
    #[error(
        "the system refuses handles of processes (pidfd_open: {source}), so processes are killed by number, right after their \
         start time was compared: it is not guaranteed that no other process gets the number in between, and if this program \
         forks copies of itself, its processes may outlive it until the copies end"
    )]
    NoHandles {
        /// What the system said.
        source: io::Error,
    },
    /// Processes cannot be seen: there is no `/proc`, or it is of another process namespace.
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

/// What the system refuses to this program now. Empty where every guarantee of this crate holds.
///
/// It asks the system, which takes microseconds. The helpers of this crate are started by this program, and the same is
/// refused to them.
pub fn limitations() -> Vec<Limitation> {
    let handles = match sys::watch(getpid()) {
        // Out of descriptors: that is no lasting refusal, and a start says so by itself.
        Ok(_) | Err(Errno::MFILE | Errno::NFILE) => None,
        Err(errno) => Some(Limitation::NoHandles { source: errno.into() }),
    };
    let processes = sys::can_see_processes().err().filter(|error| !is_exhausted(error));
    handles.into_iter().chain(processes.map(|source| Limitation::NoProcesses { source })).collect()
}

/// Several limitations as one text.
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
    fn on_a_system_that_refuses_nothing_there_is_no_limitation() {
        assert!(limitations().is_empty(), "{:?}", limitations());
    }
}
