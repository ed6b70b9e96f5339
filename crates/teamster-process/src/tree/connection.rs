//! The connection to a tree's keeper: requests go out, reports come in.

use std::{
    io::ErrorKind,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{RecvFlags, SendFlags},
};
use tokio::{io::Interest, net::UnixStream, sync::Notify};

use crate::survivor::Survivor;
use crate::{
    process::Process,
    signal::Exit,
    supervise::wire::{self, Inbox, Report, Request},
};

#[derive(Debug)]
pub(super) struct Connection {
    socket: UnixStream,
    state: Mutex<KeeperState>,
    /// Wakes the other waiting tasks when one task has read reports.
    changed: Notify,
}

/// The reports that the keeper has sent so far.
#[derive(Debug, Default)]
pub(super) struct KeeperState {
    inbox: Inbox,
    pub(super) keeper: Option<Process>,
    started: Option<Result<Process, Option<i32>>>,
    pub(super) exit: Option<Exit>,
    /// Whether the keeper kills the tree, or did not start it, because its lease has expired.
    pub(super) lease_expired: bool,
    /// Set when the tree has ended: the processes that remain.
    pub(super) gone: Option<Vec<Survivor>>,
    /// The connection is closed. Without `gone`, the state of the tree is unknown.
    pub(super) lost: bool,
}

impl Connection {
    pub(super) fn new(socket: std::os::unix::net::UnixStream) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = UnixStream::from_std(socket)?;
        Ok(Self { socket, state: Mutex::default(), changed: Notify::new() })
    }

    /// Waits until a keeper runs at the other end.
    pub(super) async fn ready(&self) -> std::io::Result<Process> {
        let answer = |state: &KeeperState| state.keeper.map(Ok).or(state.started.and_then(Result::err).map(Err));
        match self.wait_for(answer).await {
            Some(Ok(keeper)) => Ok(keeper),
            Some(Err(errno)) => Err(start_error(errno)),
            None => Err(std::io::Error::other("its keeper was killed before it started the program")),
        }
    }

    /// Sends a start request. Returns the leader, or the error of the system.
    pub(super) async fn start(&self, request: &[u8], descriptors: &[BorrowedFd<'_>]) -> std::io::Result<Process> {
        match self.send_with_descriptors(request, descriptors).await {
            // The keeper is gone, but its report may still be readable.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            sent => sent?,
        }
        match self.wait_for(|state| state.started).await {
            Some(Ok(leader)) => Ok(leader),
            Some(Err(errno)) => Err(start_error(errno)),
            None => Err(std::io::Error::other("its keeper was killed before it started the program")),
        }
    }

    /// Writes all bytes; the descriptors are sent with the first of them.
    async fn send_with_descriptors(&self, mut bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        let mut descriptors = descriptors;
        while !bytes.is_empty() {
            let write = || wire::send(&self.socket, bytes, descriptors, SendFlags::DONTWAIT);
            let count = self.socket.async_io(Interest::WRITABLE, write).await?;
            bytes = bytes.get(count..).unwrap_or_default();
            descriptors = &[];
        }
        Ok(())
    }

    /// Sends a request without blocking. Requests are small and the keeper reads all of them, so
    /// the socket has room.
    pub(super) fn send(&self, request: &Request) {
        if let Err(error) = wire::send(&self.socket, &wire::encode(request), &[], SendFlags::DONTWAIT) {
            tracing::debug!(%error, ?request, "a request to the keeper could not be sent");
        }
    }

    /// Waits until `what` returns a value; `None` if the connection closes first.
    pub(super) async fn wait_for<T>(&self, what: impl Fn(&KeeperState) -> Option<T>) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Enabled before the check, so that a report which another task reads after it is not
            // missed.
            changed.as_mut().enable();
            {
                let state = self.read_reports();
                if let Some(state) = what(&state) {
                    return Some(state);
                }
                if state.lost {
                    return None;
                }
            }
            tokio::select! {
                ready = self.socket.readable() => if ready.is_err() {
                    // Fails only when the runtime shuts down; its tasks are dropped then.
                    std::future::pending::<()>().await;
                },
                () = changed => {}
            }
        }
    }

    /// Records an end of the tree that the keeper did not report.
    pub(super) fn record_gone(&self, survivors: Vec<Survivor>) {
        self.state().gone = Some(survivors);
        self.changed.notify_waiters();
    }

    /// Reads the reports that have arrived.
    pub(super) fn read_reports(&self) -> MutexGuard<'_, KeeperState> {
        let mut state = self.state();
        let mut changed = false;
        // First a direct read, since the runtime may not know yet that the socket is readable. Then
        // through the runtime, so that it wakes this task for later data.
        while state.read(self.socket.as_fd()) {
            changed = true;
        }
        while self.socket.try_io(Interest::READABLE, || state.try_read(self.socket.as_fd())).is_ok() && !state.lost {
            changed = true;
        }
        if changed {
            self.changed.notify_waiters();
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, KeeperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection that a thread can wait on without the runtime.
    pub(super) fn to_blocking(&self) -> BlockingConnection {
        let socket = self.socket.as_fd().try_clone_to_owned().ok();
        BlockingConnection { socket, state: std::mem::take(&mut *self.state()) }
    }
}

/// A connection on which a thread waits.
#[derive(Debug)]
pub(super) struct BlockingConnection {
    /// `None` if the descriptor could not be duplicated: then no further report is read.
    socket: Option<OwnedFd>,
    pub(super) state: KeeperState,
}

impl BlockingConnection {
    /// Waits at most `limit` until the keeper reports the tree's end or the connection closes.
    /// Returns whether one of the two happened.
    pub(super) fn wait(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.state.is_over() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let (Some(socket), Ok(wait)) = (&self.socket, Timespec::try_from(left)) else { return false };
            let polled = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&wait));
            if left.is_zero() || polled.is_err_and(|errno| errno != rustix::io::Errno::INTR) {
                return false;
            }
            self.state.read(socket.as_fd());
        }
    }
}

impl KeeperState {
    /// Returns whether no further report can arrive.
    pub(super) fn is_over(&self) -> bool {
        self.gone.is_some() || self.lost
    }

    /// Reads once; returns whether there may be more data.
    fn read(&mut self, socket: BorrowedFd<'_>) -> bool {
        !self.lost && self.try_read(socket).is_ok()
    }

    /// Reads once, without waiting.
    fn try_read(&mut self, socket: BorrowedFd<'_>) -> std::io::Result<()> {
        match self.inbox.receive(socket, RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
            Ok(true) => {}
            Ok(false) | Err(_) => self.lost = true,
        }
        loop {
            match self.inbox.next() {
                Ok(Some(report)) => self.apply(report),
                Ok(None) => return Ok(()),
                Err(_) => self.lost = true,
            }
            if self.lost {
                return Ok(());
            }
        }
    }

    fn apply(&mut self, report: Report) {
        match report {
            Report::Ready { keeper } => self.keeper = Some(keeper),
            Report::Started { leader } => self.started = Some(Ok(leader)),
            Report::NotStarted { errno } => self.started = Some(Err(errno)),
            Report::LeaseExpired => self.lease_expired = true,
            Report::Exited { code, signal } => self.exit = Some(Exit { code, signal }),
            Report::Gone { survivors } => self.gone = Some(survivors),
        }
    }
}

fn start_error(errno: Option<i32>) -> std::io::Error {
    match errno {
        Some(errno) => std::io::Error::from_raw_os_error(errno),
        None => std::io::Error::other("its keeper did not receive all descriptors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the start result of a host whose keeper sends these bytes and exits.
    async fn started(sent: &[u8]) -> std::io::Result<Process> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        wire::send_all(&theirs, sent).unwrap();
        drop(theirs);
        let connection = Connection::new(ours).unwrap();
        connection.start(b"request", &[]).await
    }

    #[tokio::test]
    async fn the_reason_for_a_missing_keeper_is_read_after_the_connection_broke() {
        let refused = wire::encode(&Report::NotStarted { errno: Some(11) });
        assert_eq!(started(&refused).await.unwrap_err().raw_os_error(), Some(11));
        let killed = started(b"").await.unwrap_err().to_string();
        assert!(killed.contains("killed"), "{killed}");
        let leader = Process { pid: 5, start: 7 };
        assert_eq!(started(&wire::encode(&Report::Started { leader })).await.unwrap(), leader);
    }
}
