//! The pipes to a program, and how much of what the user may have in pipes they take.
//!
//! A user who is not root has an allowance for all pipes, and once it is spent every new one holds two pages, those of
//! any other program of this user too. So of this process's runs no more than half of it is taken for large pipes.

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

/// How much a program can write to its output before somebody reads it, if the user's allowance for pipes lets it. Agents
/// that end while the pipe is full lose what it did not take, so it is as large as an unprivileged user may ask for.
pub const PIPE_BYTES: usize = 1024 * 1024;

/// What a pipe holds by itself, while the user's allowance lasts.
const DEFAULT_PIPE_BYTES: usize = 64 * 1024;

/// Our ends of a program's pipes. They do not block, and no other child inherits them.
#[derive(Debug)]
pub struct Pipes {
    /// What the program reads, if it was started with [`Stdin::Pipe`].
    pub stdin: Option<pipe::Sender>,
    /// What the program writes to stdout.
    pub stdout: pipe::Receiver,
    /// What the program writes to stderr.
    pub stderr: pipe::Receiver,
}

/// The pipes of a program that is about to be started.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) ours: Pipes,
    /// The ends of the program, in the order of their numbers.
    pub(crate) theirs: Vec<OwnedFd>,
    pub(crate) share: Share,
}

/// How much may be taken for large pipes.
#[derive(Debug)]
struct Allowance {
    left: Arc<AtomicUsize>,
}

/// What was taken of it, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

/// Of all runs of this process.
static ALLOWANCE: LazyLock<Allowance> = LazyLock::new(|| Allowance::of(sys::pipe_allowance()));

/// Makes the pipes.
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
    /// Half of what a user may have.
    fn of(user: Option<usize>) -> Self {
        Self { left: Arc::new(AtomicUsize::new(user.map_or(usize::MAX, |bytes| bytes / 2))) }
    }

    /// Makes a pipe as large as there is room for.
    fn enlarge(&self, pipe: &OwnedFd) -> Share {
        let mut bytes = PIPE_BYTES;
        while bytes > DEFAULT_PIPE_BYTES {
            // Others of this user may have taken the rest.
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

    /// A pipe that was made as large as there is room for, and how much it holds.
    fn enlarged(allowance: &Allowance) -> (Share, usize) {
        let (read, _write) = pair().unwrap();
        let share = allowance.enlarge(&read);
        (share, fcntl_getpipe_size(&read).unwrap())
    }

    #[test]
    fn large_pipes_take_no_more_than_half_of_what_the_user_may_have() {
        let allowance = Allowance::of(Some(5 * MIB));
        let pipes: Vec<_> = (0..5).map(|_| enlarged(&allowance)).collect();
        let sizes: Vec<_> = pipes.iter().map(|(_, size)| *size).collect();
        assert_eq!(sizes, [MIB, MIB, MIB / 2, DEFAULT_PIPE_BYTES, DEFAULT_PIPE_BYTES]);
    }

    #[test]
    fn what_a_pipe_took_is_free_again_when_it_is_gone() {
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
