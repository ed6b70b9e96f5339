//! The pipes to a program, and their share of the user's pipe allowance.
//!
//! The memory of all pipes of an unprivileged user is limited. Once the limit is reached, every new
//! pipe of the user holds only two pages, also in other programs. So this process uses at most half
//! of the allowance for large pipes.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::net::unix::pipe;

use crate::{
    spawn::{Output, Spawn, Stdin},
    sys,
};

/// The capacity of an output pipe, if the user's pipe allowance permits it. Some agents lose output
/// that does not fit when they exit, so it is as large as an unprivileged user may request.
pub const PIPE_BYTES: usize = 1024 * 1024;

/// The default capacity of a pipe.
const DEFAULT_PIPE_BYTES: usize = 64 * 1024;

/// This program's ends of the pipes to a started program. They do not block, and no other child
/// inherits them.
#[derive(Debug)]
pub struct Pipes {
    /// The program's stdin, if it was started with [`Stdin::Pipe`].
    pub stdin: Option<pipe::Sender>,
    /// The program's stdout.
    pub stdout: pipe::Receiver,
    /// The program's stderr.
    pub stderr: pipe::Receiver,
}

/// The pipes of a program that is about to be started.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) ours: Pipes,
    /// The program's ends, in the order of their descriptors.
    pub(crate) theirs: Vec<OwnedFd>,
    pub(crate) share: Share,
}

/// The allowance for large pipes.
#[derive(Debug)]
struct Allowance {
    left: Arc<AtomicUsize>,
}

/// A share of the allowance, which is returned on drop.
#[derive(Debug, Default)]
pub(crate) struct Share {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

/// The allowance of all runs of this process.
static ALLOWANCE: LazyLock<Allowance> = LazyLock::new(|| Allowance::of(sys::pipe_allowance()));

/// Creates the pipes.
pub(crate) fn make(spawn: &Spawn) -> io::Result<Made> {
    let mut theirs = Vec::with_capacity(3);
    let stdin = match spawn.stdin {
        Stdin::Null => None,
        Stdin::Pipe => {
            let (read, write) = pair()?;
            theirs.push(read);
            Some(pipe::Sender::from_owned_fd(write)?)
        }
    };
    let (stdout, write) = pair()?;
    theirs.push(write);
    let (stderr, write) = pair()?;
    theirs.push(write);
    let share = ALLOWANCE.enlarge(match spawn.output {
        Output::Stdout => &stdout,
        Output::Stderr => &stderr,
    });
    let [stdout, stderr] = [stdout, stderr].map(pipe::Receiver::from_owned_fd);
    Ok(Made { ours: Pipes { stdin, stdout: stdout?, stderr: stderr? }, theirs, share })
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}

impl Allowance {
    /// Returns half of the user's allowance.
    fn of(user: Option<usize>) -> Self {
        Self { left: Arc::new(AtomicUsize::new(user.map_or(usize::MAX, |bytes| bytes / 2))) }
    }

    /// Makes a pipe as large as the allowance permits.
    fn enlarge(&self, pipe: &OwnedFd) -> Share {
        let mut bytes = PIPE_BYTES;
        while bytes > DEFAULT_PIPE_BYTES {
            // Other programs of this user may have used the rest.
            if let Some(share) = self.take(bytes)
                && sys::enlarge_pipe(pipe, bytes)
            {
                return share;
            }
            bytes /= 2;
        }
        Share::default()
    }

    fn take(&self, bytes: usize) -> Option<Share> {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.is_ok().then(|| Share { of: Arc::clone(&self.left), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::fcntl_getpipe_size;

    use super::*;

    const MIB: usize = 1024 * 1024;

    /// Returns the share of an enlarged pipe, and the pipe's capacity.
    fn enlarged(allowance: &Allowance) -> (Share, usize) {
        let (read, _write) = pair().unwrap();
        let share = allowance.enlarge(&read);
        (share, fcntl_getpipe_size(&read).unwrap())
    }

    #[test]
    fn large_pipes_use_at_most_half_of_the_users_allowance() {
        let allowance = Allowance::of(Some(5 * MIB));
        let pipes: Vec<_> = (0..5).map(|_| enlarged(&allowance)).collect();
        let sizes: Vec<_> = pipes.iter().map(|(_, size)| *size).collect();
        assert_eq!(sizes, [MIB, MIB, MIB / 2, DEFAULT_PIPE_BYTES, DEFAULT_PIPE_BYTES]);
    }

    #[test]
    fn a_dropped_pipe_returns_its_share() {
        let allowance = Allowance::of(Some(2 * MIB));
        for _ in 0..3 {
            let (_share, size) = enlarged(&allowance);
            assert_eq!((size, enlarged(&allowance).1), (MIB, DEFAULT_PIPE_BYTES));
        }
    }

    #[test]
    fn without_a_limit_every_pipe_is_large() {
        let allowance = Allowance::of(None);
        let pipes: Vec<_> = (0..100).map(|_| enlarged(&allowance)).collect();
        assert!(pipes.iter().all(|(_, size)| *size == MIB));
    }
}
