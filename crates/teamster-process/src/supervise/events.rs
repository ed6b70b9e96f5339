//! The events that a supervisor or keeper waits for: readable sockets, exits of children, timeouts.

use std::{
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, WaitOptions, WaitStatus},
};
use signal_hook::{SigId, consts::signal, flag, low_level};

/// Signals that supervisors and keepers discard; they exit when the host closes the connection. The
/// signals are caught, not ignored, since started programs would inherit an ignored signal.
const DISCARDED_SIGNALS: [i32; 14] = [
    signal::SIGHUP,
    signal::SIGINT,
    signal::SIGQUIT,
    signal::SIGTERM,
    signal::SIGPIPE,
    signal::SIGUSR1,
    signal::SIGUSR2,
    signal::SIGALRM,
    signal::SIGTSTP,
    signal::SIGTTIN,
    signal::SIGTTOU,
    signal::SIGVTALRM,
    signal::SIGPROF,
    signal::SIGWINCH,
];

/// Catches and discards every signal that would end or stop this process, except SIGKILL, SIGSTOP
/// and its own faults.
pub(super) fn discard_signals() -> io::Result<()> {
    for signal in DISCARDED_SIGNALS {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Reports through a pipe that a child has ended (SIGCHLD).
#[derive(Debug)]
pub(super) struct ChildWatch {
    signals: UnixStream,
    handler: SigId,
}

impl ChildWatch {
    pub(super) fn watch() -> io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        Ok(Self { signals, handler: low_level::pipe::register(signal::SIGCHLD, sender)? })
    }

    fn drain(&mut self) {
        let mut buffer = [0; 64];
        while matches!(self.signals.read(&mut buffer), Ok(1..)) {}
    }
}

impl Drop for ChildWatch {
    fn drop(&mut self) {
        low_level::unregister(self.handler);
    }
}

/// The result of one wait for children.
#[derive(Debug)]
pub(super) enum Reaped {
    /// This child ended and was reaped.
    One(Pid, WaitStatus),
    /// This child is stopped. Only [`reap_or_stopped`] reports it.
    Stopped(Pid),
    /// There are children, and none has ended.
    NoneYet,
    /// There are no children. On Linux, this process then has no descendants.
    Childless,
}

/// Reaps the next child that has ended.
pub(super) fn reap() -> Reaped {
    wait_any(WaitOptions::NOHANG)
}

/// Like [`reap`], and also reports each child that was stopped.
pub(super) fn reap_or_stopped() -> Reaped {
    wait_any(WaitOptions::NOHANG | WaitOptions::UNTRACED)
}

fn wait_any(options: WaitOptions) -> Reaped {
    loop {
        return match rustix::process::wait(options) {
            Err(Errno::INTR) => continue,
            Ok(Some((pid, status))) if status.stopped() => Reaped::Stopped(pid),
            Ok(Some((pid, status))) => Reaped::One(pid, status),
            Ok(None) => Reaped::NoneYet,
            Err(_) => Reaped::Childless,
        };
    }
}

/// Waits until a socket is readable, a child has ended, or `until` has passed. Returns which
/// sockets are readable.
pub(super) fn wait<const N: usize>(
    sockets: [Option<BorrowedFd<'_>>; N],
    children: &mut ChildWatch,
    until: Option<Instant>,
) -> io::Result<[bool; N]> {
    let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let signals = children.signals.as_fd();
    let mut waited: Vec<_> = sockets.iter().flatten().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    waited.push(PollFd::new(&signals, PollFlags::IN));
    match poll(&mut waited, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut seen = waited.iter().map(|polled| !polled.revents().is_empty());
    let readable = sockets.map(|socket| socket.is_some() && seen.next().unwrap_or(false));
    drop(waited);
    children.drain();
    Ok(readable)
}
