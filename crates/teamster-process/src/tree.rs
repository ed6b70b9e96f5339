//! A running process tree: its leader, everybody who descends from it, and their end.
//!
//! The work is done by the tree's keeper, a process of ours between this program and the leader (see
//! [`supervise`](crate::supervise)): it knows everybody who descends from the leader, whatever they did to hide, and ends
//! them when this program does. Here is the connection to it.

use std::{
    io::ErrorKind,
    os::fd::{AsFd, BorrowedFd},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{RecvFlags, SendFlags},
};
use serde::{Deserialize, Serialize};
use tokio::{io::Interest, net::UnixStream, sync::Notify, time::timeout};

use crate::{
    kin::Kin,
    ledger::RunDir,
    mark::Mark,
    pipes::{self, Made, Share},
    process::Stat,
    signal::{Exit, Signal},
    spawn::{self, Pipes, Spawn, SpawnError},
    supervise::{
        Supervisor, ending,
        wire::{self, Inbox, Order, Report},
    },
    sys,
};

/// How long [`ProcessTree::terminate`] waits for the system to take down what was killed.
pub const KILL_SETTLE: Duration = ending::KILL_SETTLE;

/// How long dropping a tree waits for its end.
pub const DROP_SETTLE: Duration = Duration::from_millis(100);

/// How long the system may take to load a program, from a network that does not answer perhaps.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How much longer than it should a keeper may take to answer, on a machine that is busy with other things.
const KEEPER_SLACK: Duration = Duration::from_secs(30);

/// A process tree. Dropping it kills all of it.
#[derive(Debug)]
pub struct ProcessTree {
    leader: i32,
    keeper: i32,
    mark: Mark,
    connection: Connection,
    /// What its pipes take of the user's allowance.
    _share: Share,
}

/// A member of a tree that is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its process number.
    pub pid: u32,
    /// How its program's name begins: the first 15 bytes on Linux, 31 on macOS.
    pub name: String,
}

#[derive(Debug)]
struct Connection {
    socket: UnixStream,
    told: Mutex<Told>,
    /// Wakes those who wait when another of them has read what they wait for.
    changed: Notify,
}

/// What the keeper has told so far.
#[derive(Debug, Default)]
struct Told {
    inbox: Inbox,
    started: Option<Result<(i32, i32), Option<i32>>>,
    exit: Option<Exit>,
    gone: Option<Vec<Survivor>>,
    /// The connection is at its end.
    lost: bool,
}

impl ProcessTree {
    /// Starts a program as the leader of a new tree. Call it inside a Tokio runtime with I/O and time enabled.
    ///
    /// The tree's keeper holds the lock of the run's directory for as long as it lives, and removes the directory if this
    /// program dies before the tree. When the future is dropped before it is ready, nothing is left of what was started.
    pub async fn spawn(
        supervisor: &Supervisor,
        spawn: &Spawn,
        run: Option<&RunDir>,
    ) -> Result<(Self, Pipes), SpawnError> {
        let failed = |source| SpawnError::Other { program: spawn.program.clone(), source };
        let socket = supervisor.keeper()?;
        socket.set_nonblocking(true).map_err(failed)?;
        let connection = Connection {
            socket: UnixStream::from_std(socket).map_err(failed)?,
            told: Mutex::default(),
            changed: Notify::new(),
        };
        let Made { ours: pipes, theirs, share } = pipes::make(spawn).map_err(|source| spawn::explain(spawn, source))?;
        let mark = run.map_or_else(Mark::unique, |run| run.mark().clone());
        let start = spawn::start(spawn, &mark, run.map(RunDir::path))?;
        let descriptors: Vec<_> = theirs.iter().map(AsFd::as_fd).chain(run.map(RunDir::lock)).collect();
        let order = wire::encode(&Order::Start(Box::new(start)));
        let started = timeout(START_LIMIT, connection.start(&order, &descriptors)).await;
        drop(theirs);
        let (leader, keeper) = started
            .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
            .map_err(|source| spawn::explain(spawn, source))?;
        Ok((Self { leader, keeper, mark, connection, _share: share }, pipes))
    }

    /// The leader's process number.
    pub fn pid(&self) -> u32 {
        self.leader.unsigned_abs()
    }

    /// Waits for the leader's end, and tells how it ended: in an unknown way if its keeper was killed, or if it was given
    /// up since nothing could end it. Others of the tree may still run and hold its pipes.
    ///
    /// Can be dropped and called again at any time.
    pub async fn exited(&self) -> Exit {
        let end = |told: &Told| told.exit.or_else(|| told.gone.as_ref().map(|_| Exit::default()));
        self.connection.wait_for(end).await.unwrap_or_default()
    }

    /// Sends a signal to the leader alone, if it lives.
    pub fn signal(&self, signal: Signal) {
        self.connection.order(&Order::Signal(signal.raw().as_raw()));
    }

    /// Who of the tree is alive, as the system shows it. It takes about a millisecond on a machine with 150 processes.
    pub fn alive(&self) -> Vec<Survivor> {
        Kin::of(self.keeper, self.mark.name().to_owned()).alive().iter().map(Survivor::from).collect()
    }

    /// How many bytes of memory its members hold, shared ones counted for each. It takes as long
    /// as [`alive`](Self::alive).
    pub fn memory(&self) -> u64 {
        let alive = Kin::of(self.keeper, self.mark.name().to_owned()).alive();
        alive.iter().map(|stat| sys::resident(stat.pid)).sum()
    }

    /// Ends the tree: `SIGTERM` to every member, then `SIGKILL` to those that are left after `grace`. The tree is halted
    /// (`SIGSTOP`) for the moment that it takes to find and reach all of them. Returns as soon as nobody is left;
    /// otherwise, [`KILL_SETTLE`] after the kill, who could not be ended (a process of another user, or one that hangs in
    /// the kernel).
    ///
    /// The tree's output should be read meanwhile. Can be dropped and called again at any time; of several grace periods,
    /// the one that ends first counts.
    pub async fn terminate(&self, grace: Duration) -> Vec<Survivor> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.connection.order(&Order::End { grace_ms });
        self.gone(grace).await
    }

    /// Leaves those who are alive to themselves, and tells who they are. The tree is over with this.
    pub async fn leave(self) -> Vec<Survivor> {
        self.connection.order(&Order::Leave);
        self.gone(Duration::ZERO).await
    }

    async fn gone(&self, grace: Duration) -> Vec<Survivor> {
        let answer = self.connection.wait_for(|told| told.gone.clone());
        let bound = grace.saturating_add(KILL_SETTLE).saturating_add(KEEPER_SLACK);
        let survivors = match timeout(bound, answer).await {
            // Its supervisor has ended what a keeper left that was killed.
            Ok(told) => told.unwrap_or_default(),
            Err(_) => self.alive(),
        };
        if !survivors.is_empty() {
            tracing::warn!(leader = self.leader, ?survivors, "processes are left");
        }
        survivors
    }
}

impl Connection {
    /// Has a tree started. Gives the numbers of its leader and its keeper, or what kept the system from it.
    async fn start(&self, order: &[u8], descriptors: &[BorrowedFd<'_>]) -> std::io::Result<(i32, i32)> {
        match self.send(order, descriptors).await {
            // Nobody is there: perhaps it was told why.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            sent => sent?,
        }
        match self.wait_for(|told| told.started).await {
            Some(Ok(started)) => Ok(started),
            Some(Err(Some(errno))) => Err(std::io::Error::from_raw_os_error(errno)),
            Some(Err(None)) => Err(std::io::Error::other("its keeper did not get all that it needs")),
            None => Err(std::io::Error::other("its keeper was killed before it had started anything")),
        }
    }

    /// Writes all of it, and the descriptors with its beginning.
    async fn send(&self, mut bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        let mut descriptors = descriptors;
        while !bytes.is_empty() {
            let write = || wire::send(&self.socket, bytes, descriptors, SendFlags::DONTWAIT);
            let count = self.socket.async_io(Interest::WRITABLE, write).await?;
            bytes = bytes.get(count..).unwrap_or_default();
            descriptors = &[];
        }
        Ok(())
    }

    /// Writes an order, which is small: a keeper reads all that comes, so that there is room for it.
    fn order(&self, order: &Order) {
        if let Err(error) = wire::send(&self.socket, &wire::encode(order), &[], SendFlags::DONTWAIT) {
            tracing::debug!(%error, ?order, "the keeper took no order");
        }
    }

    /// Waits until something was told; `None` if the keeper was killed first.
    async fn wait_for<T>(&self, what: impl Fn(&Told) -> Option<T>) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look: what another one reads after it is not missed.
            changed.as_mut().enable();
            {
                let told = self.listen();
                if let Some(told) = what(&told) {
                    return Some(told);
                }
                if told.lost {
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

    /// Reads what the keeper has told by now.
    fn listen(&self) -> MutexGuard<'_, Told> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = false;
        // First past the runtime, which may not have noticed yet what is there; then as it wants it, to be woken by more.
        while told.read(self.socket.as_fd()) {
            news = true;
        }
        while self.socket.try_io(Interest::READABLE, || told.try_read(self.socket.as_fd())).is_ok() && !told.lost {
            news = true;
        }
        if news {
            self.changed.notify_waiters();
        }
        told
    }
}

impl Told {
    /// Reads once; whether there may be more.
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
                Ok(Some(report)) => self.note(report),
                Ok(None) => return Ok(()),
                Err(_) => self.lost = true,
            }
            if self.lost {
                return Ok(());
            }
        }
    }

    fn note(&mut self, report: Report) {
        match report {
            Report::Started { leader, keeper } => self.started = Some(Ok((leader, keeper))),
            Report::NotStarted { errno } => self.started = Some(Err(errno)),
            Report::Exited { code, signal } => self.exit = Some(Exit { code, signal }),
            Report::Gone { survivors } => self.gone = Some(survivors),
        }
    }
}

/// The emergency path: the keeper kills everybody, and would do so too if it were not told.
impl Drop for ProcessTree {
    fn drop(&mut self) {
        let is_over = |told: &Told| told.gone.is_some() || told.lost;
        if is_over(&self.connection.listen()) {
            return;
        }
        self.connection.order(&Order::End { grace_ms: 0 });
        let deadline = Instant::now() + DROP_SETTLE;
        let socket = self.connection.socket.as_fd();
        let mut told = self.connection.told.lock().unwrap_or_else(PoisonError::into_inner);
        while !is_over(&told) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(wait) = Timespec::try_from(left) else { return };
            if left.is_zero() || poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&wait)).is_err() {
                return;
            }
            told.read(socket);
        }
    }
}

impl From<&Stat> for Survivor {
    fn from(stat: &Stat) -> Self {
        Self { pid: stat.pid.unsigned_abs(), name: stat.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a host hears of a keeper that says this and is gone.
    async fn started(said: &[u8]) -> std::io::Result<(i32, i32)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        wire::send_all(&theirs, said).unwrap();
        drop(theirs);
        ours.set_nonblocking(true).unwrap();
        let socket = UnixStream::from_std(ours).unwrap();
        let connection = Connection { socket, told: Mutex::default(), changed: Notify::new() };
        connection.start(b"order", &[]).await
    }

    #[tokio::test]
    async fn why_there_is_no_keeper_is_heard_though_nobody_is_there_to_take_the_order() {
        let refused = wire::encode(&Report::NotStarted { errno: Some(11) });
        assert_eq!(started(&refused).await.unwrap_err().raw_os_error(), Some(11));
        let killed = started(b"").await.unwrap_err().to_string();
        assert!(killed.contains("killed"), "{killed}");
        let began = wire::encode(&Report::Started { leader: 5, keeper: 4 });
        assert_eq!(started(&began).await.unwrap(), (5, 4));
    }
}
