//! A running process tree: a leader and all its descendants.
//!
//! The tree's keeper does the work: a helper process between this program and the leader (see
//! [`supervise`](crate::supervise)). It finds all descendants of the leader and kills them when
//! this program dies. This module is the connection to it.

mod connection;
mod fallback;

use std::{
    io::{self, ErrorKind},
    os::fd::{AsFd, BorrowedFd},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;

use connection::{BlockingConnection, Connection, KeeperState};
use fallback::TreeIdentity;

use crate::{
    descendants::Descendants,
    env_marker::EnvMarker,
    lease::HostLease,
    ledger::{Registration, RunDir},
    pipes::{self, Made, Share},
    process::Process,
    signal::{Exit, Signal},
    spawn::{self, Pipes, Spawn, SpawnError},
    stat::Stat,
    supervise::{
        Supervisor, termination,
        wire::{self, Request},
    },
    survivor::Survivor,
    sys,
};

/// How long [`ProcessTree::terminate`] waits for killed processes to disappear.
pub const KILL_SETTLE: Duration = termination::KILL_SETTLE;

/// How long dropping a tree blocks until the tree is gone.
pub const DROP_SETTLE: Duration = Duration::from_millis(100);

/// How long the system may take to load a program, for example from a slow network file system.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How long a supervisor may take to start a keeper. A slower supervisor is replaced.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// How many supervisors are tried until one starts a keeper.
const SUPERVISORS: usize = 2;

/// Extra time for a keeper to kill its tree on a busy machine. After it, this program kills the
/// tree itself.
const KEEPER_SLACK: Duration = Duration::from_secs(3);

/// How often this program checks whether the helper processes are stopped: while it waits for an
/// answer, and while a leader runs.
const CHECK: Duration = Duration::from_millis(250);
const SLOW_CHECK: Duration = Duration::from_secs(5);

/// A keeper without a tree. It can be requested while the start of its tree is still prepared. It
/// exits when it is dropped.
#[derive(Debug)]
pub struct Keeper {
    connection: Connection,
    process: Process,
    lease: Option<HostLease>,
}

/// A process tree. Dropping it kills every process of the tree.
#[derive(Debug)]
pub struct ProcessTree {
    identity: TreeIdentity,
    connection: Connection,
    /// The tree's ledger entry, which stays until the tree is known to be gone.
    registration: Mutex<Option<Arc<Registration>>>,
    /// The share of the user's pipe allowance that the tree's pipes use.
    _share: Share,
}

impl ProcessTree {
    /// Starts a program as the leader of a new tree. Must be called inside a Tokio runtime with I/O
    /// and time enabled.
    ///
    /// The tree's keeper holds the lock of the run's directory while it lives, and removes the
    /// directory if this program dies before the tree. If the future is dropped before it is ready,
    /// everything it started is killed.
    pub async fn spawn(
        supervisor: &Supervisor,
        spawn: &Spawn,
        run: Option<&RunDir>,
    ) -> Result<(Self, Pipes), SpawnError> {
        Self::spawn_until(supervisor, spawn, run, std::future::pending()).await
    }

    /// Like [`spawn`](Self::spawn), but returns [`SpawnError::Stopped`] when `stop` is ready. In
    /// contrast to dropping the future, it returns only when no process of the tree is alive, or
    /// after a few seconds.
    pub async fn spawn_until(
        supervisor: &Supervisor,
        spawn: &Spawn,
        run: Option<&RunDir>,
        stop: impl Future<Output = ()>,
    ) -> Result<(Self, Pipes), SpawnError> {
        let mut stop = pin!(stop);
        let keeper = tokio::select! {
            biased;
            () = &mut stop => return Err(SpawnError::Stopped),
            keeper = Keeper::request(supervisor) => keeper?,
        };
        keeper.spawn_until(spawn, run, stop).await
    }

    /// Requests the start of the leader and waits for the keeper's report.
    async fn start(&self, request: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<Process> {
        let started = pin!(self.connection.start(request, descriptors));
        let started = wait_with_checks(started, START_LIMIT, CHECK, || self.identity.continue_helpers()).await;
        started.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()))
    }

    /// Returns the leader's pid.
    pub fn pid(&self) -> u32 {
        self.identity.leader.pid.unsigned_abs()
    }

    /// Returns the pid of the tree's keeper, the subreaper process above the leader.
    pub fn keeper(&self) -> u32 {
        self.identity.keeper.pid.unsigned_abs()
    }

    /// Waits until the leader exits, and returns its exit status. The status is unknown if the
    /// keeper was killed, or if the leader could not be killed. Other members may still run and
    /// hold its pipes.
    ///
    /// If the keeper and the supervisor were killed, this returns while the leader may still run,
    /// since no process reports its exit. [`terminate`](Self::terminate) finds and kills the tree
    /// then.
    ///
    /// Can be dropped and called again at any time.
    pub async fn exited(&self) -> Exit {
        let end = |state: &KeeperState| state.exit.or_else(|| state.gone.as_ref().map(|_| Exit::default()));
        let exit = self.connection.wait_for(end);
        wait_with_checks(pin!(exit), Duration::MAX, SLOW_CHECK, || self.identity.continue_helpers())
            .await
            .flatten()
            .unwrap_or_default()
    }

    /// Returns whether the keeper has killed the tree because its lease has expired. This is known
    /// before [`exited`](Self::exited) returns.
    pub fn lease_expired(&self) -> bool {
        self.connection.read_reports().lease_expired
    }

    /// Sends a signal to the leader only, if it is alive.
    pub fn signal(&self, signal: Signal) {
        self.connection.send(&Request::Signal(signal.raw().as_raw()));
    }

    /// Returns the living members of the tree. A scan takes about a millisecond on a machine with
    /// 150 processes.
    pub fn alive(&self) -> Vec<Survivor> {
        let TreeIdentity { keeper, marker, .. } = &self.identity;
        if keeper.is_alive() {
            Descendants::of_keeper(keeper.pid, marker.clone()).scan().iter().map(Survivor::from).collect()
        } else {
            self.identity.find()
        }
    }

    /// Returns the resident memory of all members in bytes; shared memory is counted for each. It
    /// takes as long as [`alive`](Self::alive).
    pub fn memory(&self) -> u64 {
        self.alive().iter().map(|member| sys::resident(member.pid.cast_signed())).sum()
    }

    /// Terminates the tree: sends `SIGTERM` to every member, and `SIGKILL` to the remaining ones
    /// after `grace`. All members are stopped (`SIGSTOP`) for the moment in which they are found
    /// and signaled. Returns an empty list as soon as the tree is gone. Otherwise it returns,
    /// [`KILL_SETTLE`] after the kill, the processes that could not be killed: those of another
    /// user, or blocked in the kernel.
    ///
    /// The wait is bounded. A stopped keeper is continued. If the keeper does not answer within a
    /// few seconds after the grace period, this program kills it and the tree. If the keeper and
    /// the supervisor were killed, this program finds the tree by its leader, its session and its
    /// environment marker, and kills it without a grace period. It then misses a process that is an
    /// orphan, has its own session and cleared its environment.
    ///
    /// The caller should read the tree's output meanwhile. Can be dropped and called again at any
    /// time; of several grace periods, the one that expires first applies.
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
            tracing::warn!(leader = self.pid(), ?survivors, "processes of a tree could not be killed");
        }
        release_registration(&self.registration, survivors.is_empty());
        survivors
    }

    /// Stops supervising the tree without killing it, and returns the members that are alive.
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

    /// Waits for the report that the tree is gone, from the keeper or from the supervisor in its
    /// place. Returns `None` if it does not arrive within `within` plus [`KEEPER_SLACK`], or cannot
    /// arrive any more.
    async fn wait_until_gone(&self, within: Duration) -> Option<Vec<Survivor>> {
        let answer = self.connection.wait_for(|state| state.gone.clone());
        let limit = within.saturating_add(KEEPER_SLACK);
        wait_with_checks(pin!(answer), limit, CHECK, || self.identity.continue_helpers()).await.flatten()
    }
}

impl Keeper {
    /// Requests a keeper from the supervisor, and replaces a supervisor that does not answer. Must
    /// be called inside a Tokio runtime with I/O and time enabled.
    pub async fn request(supervisor: &Supervisor) -> Result<Self, SpawnError> {
        for _ in 0..SUPERVISORS {
            let connection = Connection::new(supervisor.request_keeper().await?).map_err(spawn::explain_keeper)?;
            let answer =
                wait_with_checks(pin!(connection.ready()), READY_LIMIT, CHECK, || supervisor.continue_if_stopped())
                    .await;
            match answer {
                Some(process) => {
                    let process = process.map_err(spawn::explain_keeper)?;
                    return Ok(Self { connection, process, lease: None });
                }
                None => supervisor.replace(),
            }
        }
        Err(supervisor.no_answer().into())
    }

    /// Runs the tree under this lease, if there is one: the tree is killed when it expires.
    #[must_use]
    pub fn with_lease(self, lease: Option<&HostLease>) -> Self {
        Self { lease: lease.cloned(), ..self }
    }

    /// Starts a program as the leader of this keeper's tree, like [`ProcessTree::spawn_until`].
    pub async fn spawn_until(
        self,
        spawn: &Spawn,
        run: Option<&RunDir>,
        stop: impl Future<Output = ()>,
    ) -> Result<(ProcessTree, Pipes), SpawnError> {
        let Self { connection, process: keeper, lease } = self;
        let failed = |source| spawn::explain(spawn, source);
        let Made { ours: pipes, theirs, share } = pipes::make(spawn).map_err(failed)?;
        let marker = run.map_or_else(EnvMarker::unique, |run| run.env_marker().clone());
        let mut start = spawn::start(spawn, marker.name(), run.map(RunDir::path))?;
        if let Some(lease) = &lease {
            start.lease_term = Some(lease.term().ok_or(SpawnError::LeaseExpired)?);
        }
        let request = wire::encode(&Request::Start(Box::new(start)));
        let lease = lease.as_ref().map(HostLease::file);
        let descriptors: Vec<_> = theirs.iter().map(AsFd::as_fd).chain(run.map(RunDir::lock)).chain(lease).collect();
        let identity = TreeIdentity { keeper, leader: Process { pid: 0, start: 0 }, marker: marker.name().to_owned() };
        let registration = Mutex::new(run.map(RunDir::registration));
        // From here on the leader may run, even if the keeper does not report it. Dropping `tree`
        // kills it.
        let mut tree = ProcessTree { identity, connection, registration, _share: share };
        let started = tokio::select! {
            biased;
            () = stop => Err(SpawnError::Stopped),
            started = tree.start(&request, &descriptors) => started.map_err(failed),
        };
        drop(theirs);
        match started {
            Ok(leader) => {
                tree.identity.leader = leader;
                Ok((tree, pipes))
            }
            Err(error) => {
                tree.terminate(Duration::ZERO).await;
                Err(if tree.lease_expired() { SpawnError::LeaseExpired } else { error })
            }
        }
    }
}

/// Waits for an answer for at most `limit`, and calls `check` once per interval `every`.
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

/// Releases the run's ledger entry. It is kept for the next sweep if processes remain.
fn release_registration(registration: &Mutex<Option<Arc<Registration>>>, is_gone: bool) {
    let released = registration.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(registration) = released
        && !is_gone
    {
        registration.keep_entry();
    }
}

/// The emergency path. The keeper kills the tree, as it does when the connection breaks. If it has
/// not finished within [`DROP_SETTLE`], a thread waits for it, or kills the tree in its place.
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
            // The keeper, if it is alive, notices that the connection has closed.
            tracing::warn!(%error, leader = self.pid(), "cannot wait for the end of a tree");
        }
    }
}

fn end_without_runtime(
    mut connection: BlockingConnection,
    identity: &TreeIdentity,
    registration: &Mutex<Option<Arc<Registration>>>,
) {
    let began = Instant::now();
    while began.elapsed() < KILL_SETTLE + KEEPER_SLACK && !connection.wait(CHECK) {
        identity.continue_helpers();
    }
    let survivors = connection.state.gone.take().unwrap_or_else(|| identity.kill());
    if !survivors.is_empty() {
        tracing::warn!(leader = identity.leader.pid, ?survivors, "processes of a tree could not be killed");
    }
    release_registration(registration, survivors.is_empty());
}

impl From<&Stat> for Survivor {
    fn from(stat: &Stat) -> Self {
        Self { pid: stat.pid.unsigned_abs(), name: stat.name.clone() }
    }
}
