//! A running process tree: its leader, everybody who descends from it, and their end.
//!
//! The work is done by the tree's keeper, a process of ours between this program and the leader (see
//! [`supervise`](crate::supervise)): it knows everybody who descends from the leader, whatever they did to hide, and ends
//! them when this program does. PidScope is the connection to it.

mod connection;
mod fallback;

use std::{
    io::{self, ErrorKind},
    os::fd::{AsFd, BorrowedFd},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use connection::{Connection, BlockingConnection, KeeperState};
use fallback::TreeIdentity;

use crate::{
    descendants::Descendants,
    ledger::{Registration, RunDir},
    env_marker::EnvMarker,
    pipes::{self, Made, Share},
    process::{Process, Stat},
    signal::{Exit, Signal},
    spawn::{self, Pipes, Spawn, SpawnError},
    supervise::{
        Supervisor, termination,
        wire::{self, Request},
    },
    sys,
};

/// How long [`ProcessTree::terminate`] waits for the system to take down what was killed.
pub const KILL_SETTLE: Duration = termination::KILL_SETTLE;

/// How long dropping a tree waits for its end.
pub const DROP_SETTLE: Duration = Duration::from_millis(100);

/// How long the system may take to load a program, from a network that does not answer perhaps.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How long a supervisor may take to make a keeper. One that takes longer is replaced.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// How many supervisors are asked for a keeper.
const SUPERVISORS: usize = 2;

/// How much longer than it should a keeper may take to end its tree, on a busy machine. Then this program does it.
const KEEPER_SLACK: Duration = Duration::from_secs(3);

/// How often this program checks whether the helpers are stopped: while it waits for an answer, and while a leader runs.
const CHECK: Duration = Duration::from_millis(250);
const SLOW_CHECK: Duration = Duration::from_secs(5);

/// A process tree. Dropping it kills all of it.
#[derive(Debug)]
pub struct ProcessTree {
    identity: TreeIdentity,
    connection: Connection,
    /// Until the tree is known to be gone, its entry in the ledger is not removed.
    registration: Mutex<Option<Arc<Registration>>>,
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
        Self::spawn_until(supervisor, spawn, run, std::future::pending()).await
    }

    /// Like [`spawn`](Self::spawn), but gives up when `stop` is ready, with [`SpawnError::Stopped`]. Unlike dropping the
    /// future, this returns only when nothing of the tree is alive, or a few seconds have passed.
    pub async fn spawn_until(
        supervisor: &Supervisor,
        spawn: &Spawn,
        run: Option<&RunDir>,
        stop: impl Future<Output = ()>,
    ) -> Result<(Self, Pipes), SpawnError> {
        let failed = |source| spawn::explain(spawn, source);
        let mut stop = pin!(stop);
        let (connection, keeper) = tokio::select! {
            connected = connect(supervisor, spawn) => connected?,
            () = &mut stop => return Err(SpawnError::Stopped),
        };
        let Made { ours: pipes, theirs, share } = pipes::make(spawn).map_err(failed)?;
        let marker = run.map_or_else(EnvMarker::unique, |run| run.env_marker().clone());
        let start = spawn::start(spawn, marker.name(), run.map(RunDir::path))?;
        let request = wire::encode(&Request::Start(Box::new(start)));
        let descriptors: Vec<_> = theirs.iter().map(AsFd::as_fd).chain(run.map(RunDir::lock)).collect();
        let identity = TreeIdentity { keeper, leader: Process { pid: 0, start: 0 }, marker: marker.name().to_owned() };
        let registration = Mutex::new(run.map(RunDir::registration));
        // From here on the leader may run, whether or not the keeper reports it: dropping this kills it.
        let mut tree = Self { identity, connection, registration, _share: share };
        let started = tokio::select! {
            started = tree.start(&request, &descriptors) => started.map_err(failed),
            () = stop => Err(SpawnError::Stopped),
        };
        drop(theirs);
        match started {
            Ok(leader) => {
                tree.identity.leader = leader;
                Ok((tree, pipes))
            }
            Err(error) => {
                tree.terminate(Duration::ZERO).await;
                Err(error)
            }
        }
    }

    /// Has the keeper start the leader.
    async fn start(&self, request: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<Process> {
        let started = pin!(self.connection.start(request, descriptors));
        let started = wait_with_checks(started, START_LIMIT, CHECK, || self.identity.continue_helpers()).await;
        started.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()))
    }

    /// The leader's process number.
    pub fn pid(&self) -> u32 {
        self.identity.leader.pid.unsigned_abs()
    }

    /// The number of the tree's keeper, the subreaper process above the leader.
    pub fn keeper(&self) -> u32 {
        self.identity.keeper.pid.unsigned_abs()
    }

    /// Waits for the leader's end, and tells how it ended: in an unknown way if its keeper was killed, or if it was given
    /// up since nothing could end it. Others of the tree may still run and hold its pipes.
    ///
    /// If the keeper and the supervisor were killed, the leader may still run when this returns: nothing reports its end
    /// any more, and [`terminate`](Self::terminate) finds and kills the tree.
    ///
    /// Can be dropped and called again at any time.
    pub async fn exited(&self) -> Exit {
        let end = |state: &KeeperState| state.exit.or_else(|| state.gone.as_ref().map(|_| Exit::default()));
        let exit = self.connection.wait_for(end);
        wait_with_checks(pin!(exit), Duration::MAX, SLOW_CHECK, || self.identity.continue_helpers()).await.flatten().unwrap_or_default()
    }

    /// Sends a signal to the leader alone, if it lives.
    pub fn signal(&self, signal: Signal) {
        self.connection.send(&Request::Signal(signal.raw().as_raw()));
    }

    /// Who of the tree is alive, as the system shows it. It takes about a millisecond on a machine with 150 processes.
    pub fn alive(&self) -> Vec<Survivor> {
        let TreeIdentity { keeper, marker, .. } = &self.identity;
        if keeper.is_alive() {
            Descendants::of_keeper(keeper.pid, marker.clone()).scan().iter().map(Survivor::from).collect()
        } else {
            self.identity.find()
        }
    }

    /// How many bytes of memory its members hold, shared ones counted for each. It takes as long
    /// as [`alive`](Self::alive).
    pub fn memory(&self) -> u64 {
        self.alive().iter().map(|member| sys::resident(member.pid.cast_signed())).sum()
    }

    /// Ends the tree: `SIGTERM` to every member, then `SIGKILL` to those that are left after `grace`. The tree is halted
    /// (`SIGSTOP`) for the moment that it takes to find and reach all of them. Returns as soon as nobody is left;
    /// otherwise, [`KILL_SETTLE`] after the kill, who could not be ended (a process of another user, or one that hangs in
    /// the kernel).
    ///
    /// It is bounded: a keeper that is stopped is continued, and one that does not answer within a few seconds after the
    /// grace period is killed, with the tree, by this program. If the keeper and the supervisor were killed, this program
    /// finds the tree by its leader, its session and its marker, and kills it without a grace period. A process that is
    /// none of their descendants any more, has a session of its own and another environment is not found then.
    ///
    /// The tree's output should be read meanwhile. Can be dropped and called again at any time; of several grace periods,
    /// the one that ends first counts.
    pub async fn terminate(&self, grace: Duration) -> Vec<Survivor> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.connection.send(&Request::End { grace_ms });
        let survivors = if let Some(survivors) = self.wait_until_gone(grace.saturating_add(KILL_SETTLE)).await {
            survivors
        } else {
            let survivors = self.identity.kill_on_thread().await;
            self.connection.record_gone(survivors.clone());
            survivors
        };
        if !survivors.is_empty() {
            tracing::warn!(leader = self.pid(), ?survivors, "processes are left");
        }
        release_registration(&self.registration, survivors.is_empty());
        survivors
    }

    /// Leaves those who are alive to themselves, and tells who they are. The tree is over with this.
    pub async fn detach(self) -> Vec<Survivor> {
        self.connection.send(&Request::Detach);
        let left = if let Some(left) = self.wait_until_gone(KILL_SETTLE).await {
            left
        } else {
            let left = self.identity.find();
            self.connection.record_gone(left.clone());
            left
        };
        release_registration(&self.registration, true);
        left
    }

    /// What the keeper, or the supervisor in its place, reports of the tree's end. `None` if they do not within this time
    /// and [`KEEPER_SLACK`], or cannot any more.
    async fn wait_until_gone(&self, within: Duration) -> Option<Vec<Survivor>> {
        let answer = self.connection.wait_for(|state| state.gone.clone());
        let limit = within.saturating_add(KEEPER_SLACK);
        wait_with_checks(pin!(answer), limit, CHECK, || self.identity.continue_helpers()).await.flatten()
    }
}

/// Gets a keeper from the supervisor, which is replaced if it does not answer.
async fn connect(supervisor: &Supervisor, spawn: &Spawn) -> Result<(Connection, Process), SpawnError> {
    let failed = |source| spawn::explain(spawn, source);
    for _ in 0..SUPERVISORS {
        let connection = Connection::new(supervisor.request_keeper().await?).map_err(failed)?;
        let answer = wait_with_checks(pin!(connection.ready()), READY_LIMIT, CHECK, || supervisor.continue_if_stopped()).await;
        match answer {
            Some(keeper) => return Ok((connection, keeper.map_err(failed)?)),
            None => supervisor.replace(),
        }
    }
    Err(supervisor.no_answer().into())
}

/// Waits for an answer, not longer than `limit`, and calls `check` as often as it says.
async fn wait_with_checks<T>(
    mut answer: Pin<&mut impl Future<Output = T>>,
    limit: Duration,
    every: Duration,
    check: impl Fn(),
) -> Option<T> {
    let began = Instant::now();
    loop {
        let left = limit.saturating_sub(began.elapsed());
        match timeout(left.min(every), answer.as_mut()).await {
            Ok(answer) => return Some(answer),
            Err(_) if left <= every => return None,
            Err(_) => check(),
        }
    }
}

/// Lets go of the run's entry in the ledger. It is kept for the next sweep if processes are left.
fn release_registration(registration: &Mutex<Option<Arc<Registration>>>, is_gone: bool) {
    let released = registration.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(registration) = released
        && !is_gone
    {
        registration.keep_entry();
    }
}

/// The emergency path: the keeper kills everybody, and would do so too if it were not state. What it has not done within
/// [`DROP_SETTLE`] is waited for, or done in its place, on a thread.
impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.connection.read_reports().gone.is_some() {
            return;
        }
        self.connection.send(&Request::End { grace_ms: 0 });
        let mut connection = self.connection.to_blocking();
        connection.wait(DROP_SETTLE);
        let registration = Mutex::new(self.registration.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(survivors) = &connection.state.gone {
            return release_registration(&registration, survivors.is_empty());
        }
        let identity = self.identity.clone();
        let wait = move || end_without_runtime(connection, &identity, &registration);
        if let Err(error) = std::thread::Builder::new().name("teamster-end".into()).spawn(wait) {
            // The keeper notices the end of the connection, if there is one.
            tracing::warn!(%error, leader = self.pid(), "the end of a tree is not waited for");
        }
    }
}

fn end_without_runtime(mut connection: BlockingConnection, identity: &TreeIdentity, registration: &Mutex<Option<Arc<Registration>>>) {
    let began = Instant::now();
    while began.elapsed() < KILL_SETTLE + KEEPER_SLACK && !connection.wait(CHECK) {
        identity.continue_helpers();
    }
    let survivors = connection.state.gone.take().unwrap_or_else(|| identity.kill());
    if !survivors.is_empty() {
        tracing::warn!(leader = identity.leader.pid, ?survivors, "processes are left");
    }
    release_registration(registration, survivors.is_empty());
}

impl From<&Stat> for Survivor {
    fn from(stat: &Stat) -> Self {
        Self { pid: stat.pid.unsigned_abs(), name: stat.name.clone() }
    }
}
