//! The warm pool: processes that are started before a session needs them, for sessions like those that were opened before.
//!
//! Invariants: the pool never holds more processes than its limit. The limits on age and total memory are enforced at each
//! check, so they can be exceeded for one check interval. A task owns each process, and closes it when it is no longer needed.
//! A process is given to one session.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use teamster_types::event::Failure;
use teamster_types::request::{Conversation, McpDelivery, RunRequest};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::process::IdleProcess;
use super::process_order::ProcessOrder;
use crate::permits::ProcessPermit;

/// The interval between two checks of a process's memory.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The limits of a warm pool ([`RuntimeBuilder::warm_pool`](crate::RuntimeBuilder::warm_pool)).
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use teamster::{Runtime, WarmPoolConfig};
///
/// let mut pool = WarmPoolConfig::new(NonZeroUsize::MIN);
/// pool.memory = Some(1 << 30);
/// let runtime = Runtime::builder().warm_pool(pool).build();
/// # _ = runtime;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarmPoolConfig {
    /// The maximum number of waiting processes, for all requests together.
    pub count: NonZeroUsize,
    /// The maximum time that a process waits. An agent reads the date and the state of its directory when it starts.
    pub age: Duration,
    /// The maximum memory of the waiting processes together, in bytes, checked every 5 seconds. `None` means no limit.
    pub memory: Option<u64>,
}

impl WarmPoolConfig {
    /// Creates limits: this number of processes, 10 minutes, and no limit on memory.
    pub fn new(count: NonZeroUsize) -> Self {
        Self { count, age: Duration::from_mins(10), memory: None }
    }
}

/// The warm pool of a runtime. Dropping it closes its processes.
pub(crate) struct WarmPool {
    config: WarmPoolConfig,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// From the oldest to the newest.
    entries: VecDeque<Entry>,
    /// Whether new processes are rejected.
    closed: bool,
}

/// A waiting process, or one that is being started.
struct Entry {
    key: Arc<Key>,
    /// Bytes, as of the last check.
    memory: u64,
    /// Claims the process. Dropping it closes the process.
    claim: oneshot::Sender<oneshot::Sender<ClaimedProcess>>,
}

/// What sessions must have in common to use the same process.
#[derive(Debug, PartialEq)]
struct Key {
    agent: String,
    cwd: std::path::PathBuf,
    request: RunRequest,
}

/// A process that was claimed from the pool.
pub(super) struct ClaimedProcess {
    pub(super) process: IdleProcess,
    pub(super) permit: ProcessPermit,
}

impl Key {
    /// Returns the key of an order. `None` if the process cannot be shared: one that resumes a conversation serves one session
    /// only, and a waiting one must not change a file of the user or write a recording.
    fn of(order: &ProcessOrder) -> Option<Self> {
        let ProcessOrder { agent, host, request, .. } = order;
        let is_shareable = request.conversation == Conversation::New
            && request.mcp_delivery == McpDelivery::Auto
            && request.record.is_none();
        let mut request = request.clone();
        // These make no difference to the process.
        (request.queue_key, request.labels) = (None, BTreeMap::new());
        is_shareable.then(|| Self { agent: agent.name().to_owned(), cwd: host.cwd.clone(), request })
    }
}

impl WarmPool {
    pub(crate) fn new(config: WarmPoolConfig) -> Arc<Self> {
        Arc::new(Self { config, state: Mutex::default() })
    }

    /// Takes a live process for this order, if there is one.
    pub(super) async fn claim(&self, order: &ProcessOrder) -> Option<ClaimedProcess> {
        let key = Key::of(order)?;
        loop {
            let claim = {
                let State { entries, .. } = &mut *self.state();
                let at = entries.iter().position(|entry| *entry.key == key)?;
                entries.remove(at)?.claim
            };
            let (sender, claimed) = oneshot::channel();
            // A process that has just exited is skipped.
            if claim.send(sender).is_ok()
                && let Ok(process) = claimed.await
            {
                return Some(process);
            }
        }
    }

    /// Starts a process for this order, unless there is one. Closes the oldest processes beyond the limit.
    pub(super) fn refill(self: &Arc<Self>, order: ProcessOrder, tasks: &TaskTracker) {
        let Some(key) = Key::of(&order).map(Arc::new) else { return };
        let (claim, claimed) = oneshot::channel();
        {
            let State { entries, closed } = &mut *self.state();
            if *closed || entries.iter().any(|entry| entry.key == key) {
                return;
            }
            entries.push_back(Entry { key: Arc::clone(&key), memory: 0, claim });
            while entries.len() > self.config.count.get() {
                entries.pop_front();
            }
        }
        let until = Instant::now().checked_add(self.config.age);
        let pooled = Pooled { pool: Arc::downgrade(self), key, claimed, until };
        tasks.spawn(pooled.run(order));
    }

    /// Closes all processes, and rejects new ones.
    pub(crate) fn close(&self) {
        *self.state() = State { entries: VecDeque::new(), closed: true };
    }

    /// Sets the memory of a process. Closes the oldest processes while all of them use too much.
    fn set_memory(&self, key: &Arc<Key>, memory: u64) {
        let State { entries, .. } = &mut *self.state();
        for entry in entries.iter_mut().filter(|entry| Arc::ptr_eq(&entry.key, key)) {
            entry.memory = memory;
        }
        while self.config.memory.is_some_and(|max| entries.iter().map(|entry| entry.memory).sum::<u64>() > max)
            && entries.pop_front().is_some()
        {}
    }

    fn remove(&self, key: &Arc<Key>) {
        self.state().entries.retain(|entry| !Arc::ptr_eq(&entry.key, key));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task of a process in the pool.
struct Pooled {
    pool: Weak<WarmPool>,
    key: Arc<Key>,
    claimed: oneshot::Receiver<oneshot::Sender<ClaimedProcess>>,
    until: Option<Instant>,
}

impl Pooled {
    /// Starts the process, and keeps it until a session claims it or it must be closed.
    async fn run(mut self, order: ProcessOrder) {
        let limits = order.request.limits.clone();
        let unclaimed = match order.permits.try_acquire_process(order.agent.name()) {
            Some(permit) => self.start_and_wait(order, permit).await,
            None => None,
        };
        if let Some(pool) = self.pool.upgrade() {
            pool.remove(&self.key);
        }
        if let Some(ClaimedProcess { process, permit }) = unclaimed {
            // Remaining processes are logged. There is no turn that could report them.
            _ = process.close(&limits).await;
            drop(permit);
        }
    }

    /// Returns the process if no session has claimed it.
    async fn start_and_wait(&mut self, order: ProcessOrder, permit: ProcessPermit) -> Option<ClaimedProcess> {
        let mut claim = None;
        let mut process = match self.start(order, &mut claim).await {
            Ok(process) => process?,
            Err(failure) => {
                tracing::debug!(code = %failure.code, message = %failure.message.escaped(), "no process was started for the warm pool");
                return None;
            }
        };
        if claim.is_none() {
            claim = self.wait(&mut process, &permit).await;
        }
        let claimed = ClaimedProcess { process, permit };
        match claim {
            Some(claim) => claim.send(claimed).err(),
            None => Some(claimed),
        }
    }

    /// Starts the process. Cancels the start if the pool is closed, or if the session that has claimed the process stops waiting.
    async fn start(
        &mut self,
        order: ProcessOrder,
        claim: &mut Option<oneshot::Sender<ClaimedProcess>>,
    ) -> Result<Option<IdleProcess>, Failure> {
        let cancel = CancellationToken::new();
        let mut start = pin!(order.start(&cancel));
        let claimed = tokio::select! {
            biased;
            started = &mut start => return started,
            claimed = &mut self.claimed => claimed.ok(),
        };
        if let Some(mut claimed) = claimed {
            tokio::select! {
                biased;
                started = &mut start => {
                    *claim = Some(claimed);
                    return started;
                }
                () = claimed.closed() => {}
            }
        }
        cancel.cancel();
        start.await
    }

    /// Waits until a session claims the process, or it must be closed.
    async fn wait(
        &mut self,
        process: &mut IdleProcess,
        permit: &ProcessPermit,
    ) -> Option<oneshot::Sender<ClaimedProcess>> {
        let reclaimable = permit.idle();
        loop {
            tokio::select! {
                biased;
                claim = &mut self.claimed => {
                    if claim.is_err() {
                        reclaimable.accept();
                    }
                    return claim.ok();
                }
                () = reclaimable.reclaim_requested() => break,
                () = process.listen() => break,
                () = past(self.until) => break,
                () = sleep(CHECK_INTERVAL) => {
                    let memory = process.process().tree.memory();
                    if let Some(pool) = self.pool.upgrade() {
                        pool.set_memory(&self.key, memory);
                    }
                }
            }
        }
        reclaimable.accept();
        None
    }
}

/// Waits until this time. `None` waits forever.
async fn past(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
