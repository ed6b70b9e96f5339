//! What a supervisor or keeper waits for: its sockets, the ends of its children, the time.

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

/// Signals that neither a supervisor nor a keeper obeys: they end when this program lets go of them. They are caught and
/// not ignored, since what is ignored stays so in the programs that are started.
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

/// Makes the process deaf to whatever would end or halt it, but SIGKILL, SIGSTOP and its own faults.
pub(super) fn discard_signals() -> io::Result<()> {
    for signal in DISCARDED_SIGNALS {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Tells that a child has ended.
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

/// What looking for ended children gave.
#[derive(Debug)]
pub(super) enum Reaped {
    /// This one had ended.
    One(Pid, WaitStatus),
    /// This one is stopped. Only [`reap_or_stopped`] reports it.
    Stopped(Pid),
    /// There are children, and all of them live.
    NoneYet,
    /// There are none: whoever ever descended from this process has ended.
    Childless,
}

/// Reaps the next child that has ended.
pub(super) fn reap() -> Reaped {
    wait_any(WaitOptions::NOHANG)
}

/// The same, and returns each child once that was stopped since.
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

/// Waits until one of the sockets can be read, a child has ended, or it is time. Tells which sockets can be read.
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
