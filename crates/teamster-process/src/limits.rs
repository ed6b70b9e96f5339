//! The user's limits: which one caused an error, and whether more threads and files are possible.

use std::{
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Open files of this process (`RLIMIT_NOFILE`).
    OpenFiles {
        /// The number; `None` without a limit.
        limit: Option<u64>,
    },
    /// Open files of the whole system.
    SystemFiles,
    /// Processes and threads of this user or container (`RLIMIT_NPROC`, `pids.max`).
    Processes {
        /// The number; `None` without a limit of the user.
        limit: Option<u64>,
    },
    /// The size of a file (`RLIMIT_FSIZE`).
    FileSize {
        /// In bytes; `None` without a limit of the user.
        limit: Option<u64>,
    },
}

impl Limit {
    /// Returns the limit that caused an error. `EAGAIN` is taken for the process limit, so pass
    /// only errors of starting a process or thread.
    pub fn behind(error: &io::Error) -> Option<Self> {
        let current = |resource| getrlimit(resource).current;
        match Errno::from_io_error(error)? {
            Errno::MFILE => Some(Self::OpenFiles { limit: current(Resource::Nofile) }),
            Errno::NFILE => Some(Self::SystemFiles),
            Errno::AGAIN => Some(Self::Processes { limit: current(Resource::Nproc) }),
            Errno::FBIG => Some(Self::FileSize { limit: current(Resource::Fsize) }),
            _ => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, limit) = match self {
            Self::OpenFiles { limit } => ("open files (`ulimit -n`", limit),
            Self::SystemFiles => return f.write_str("the limit of open files of the whole system is reached"),
            Self::Processes { limit } => ("processes and threads (`ulimit -u`", limit),
            Self::FileSize { limit } => ("the size of files (`ulimit -f`, in bytes", limit),
        };
        match limit {
            Some(limit) => write!(f, "the limit of {what}: {limit}) is reached"),
            None => write!(f, "the limit of {what}) is reached"),
        }
    }
}

/// Returns why a process or thread could not be started: the limit, if one caused the error.
pub(crate) fn reason(error: &io::Error) -> String {
    Limit::behind(error).map_or_else(|| "its memory is used up".to_owned(), |limit| limit.to_string())
}

/// Checks that this process can start `count` more threads now.
///
/// It starts them and waits until the system no longer counts them. Another process of the same
/// user may use up the limit right after.
///
/// # Errors
/// When the system refuses one of them; see [`Limit::behind`].
pub fn can_start_threads(count: usize) -> io::Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let start = |_| {
        let gate = Arc::clone(&gate);
        let probe = thread::Builder::new().name("teamster-probe".into()).stack_size(PROBE_STACK_BYTES);
        probe.spawn(move || {
            drop(gate.lock());
            crate::sys::own_thread()
        })
    };
    // All threads exist at the same time.
    let probes = (0..count).map(start).collect::<io::Result<Vec<_>>>();
    drop(closed);
    for thread in probes?.into_iter().filter_map(|probe| probe.join().ok()) {
        crate::sys::await_release(thread);
    }
    Ok(())
}

/// Checks that this process can open `count` more files now.
///
/// # Errors
/// When the system refuses one of them; see [`Limit::behind`].
pub fn can_open_files(count: usize) -> io::Result<()> {
    let (end, _) = io::pipe()?;
    (2..count).map(|_| end.try_clone()).collect::<io::Result<Vec<_>>>().map(drop)
}

/// The stack size of a probe thread. The system may round it up.
const PROBE_STACK_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_limit_that_caused_it() {
        let text = |errno: Errno| Limit::behind(&errno.into()).map(|limit| limit.to_string());
        assert!(text(Errno::MFILE).unwrap().contains("open files (`ulimit -n`"));
        assert!(text(Errno::AGAIN).unwrap().contains("processes and threads (`ulimit -u`"));
        assert!(text(Errno::FBIG).unwrap().contains("the size of files (`ulimit -f`"));
        assert_eq!(text(Errno::NOENT), None);
    }

    #[test]
    fn probe_threads_are_no_longer_counted_afterwards() {
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        // Other tests start threads meanwhile, so a single comparison proves nothing.
        assert!((0..20).any(|_| {
            let before = threads();
            can_start_threads(2).unwrap();
            threads() <= before
        }));
    }
}
