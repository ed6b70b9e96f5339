//! Spare processes: started before anybody asks for them, for sessions like those that were opened before.
//!
//! Invariants: there are never more spares than are allowed, and none is older or more of them larger than that, by more than
//! the time between two looks; each is owned by a task, which ends it when nobody wants it any more; a spare is given to one
//! session.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use teamster_agents::agent::Agent;
use teamster_types::request::{Conversation, McpDelivery, RunRequest};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Host;
use super::warm::Warm;
use crate::permits::Permits;

/// How often it is looked how much memory a spare takes.
const LOOK: Duration = Duration::from_secs(5);

/// Bounds of the processes that are started before anybody asks for them ([`RuntimeBuilder::warm_pool`](crate::RuntimeBuilder::warm_pool)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarmPoolConfig {
    /// How many may wait at once, of all configurations together.
    pub count: NonZeroUsize,
    /// How long one may wait: an agent notes the date and the state of its directory when it starts.
    pub age: Duration,
    /// How many bytes of memory those that wait may hold together, looked at every 5 seconds; `None` is no bound.
    pub memory: Option<u64>,
}

impl WarmPoolConfig {
    /// So many, for 10 minutes each, without a bound of memory.
    pub fn new(count: NonZeroUsize) -> Self {
        Self { count, age: Duration::from_mins(10), memory: None }
    }
}

/// The spares of a runtime. When it is dropped, they end.
pub(crate) struct Pool {
    bounds: WarmPoolConfig,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    spares: VecDeque<Spare>,
    /// None are taken in.
    closed: bool,
}

/// What is known of a spare; the newest is the last.
struct Spare {
    configuration: Arc<Configuration>,
    /// Bytes, as last seen.
    memory: u64,
    /// Asks for it. When this is dropped, the spare ends.
    claim: oneshot::Sender<oneshot::Sender<Warm>>,
}

/// What a spare is good for.
#[derive(Debug, PartialEq)]
struct Configuration {
    agent: String,
    cwd: std::path::PathBuf,
    frame: RunRequest,
}

/// What it takes to start a process.
pub(crate) struct Order {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) host: Host,
    pub(crate) frame: RunRequest,
    pub(crate) permits: Permits,
}

impl Order {
    /// What a spare would be good for; `None` where there can be none: one that goes on with a conversation is good for one
    /// session only, and one that waits must not keep a file of the user's changed, or write somebody's recording.
    fn configuration(&self) -> Option<Configuration> {
        let Self { agent, host, frame, .. } = self;
        let is_common = frame.conversation == Conversation::New
            && frame.mcp_delivery == McpDelivery::Auto
            && frame.record.is_none();
        let mut frame = frame.clone();
        // Whose it is makes no difference to the process.
        (frame.queue_key, frame.labels) = (None, BTreeMap::new());
        is_common.then(|| Configuration { agent: agent.name().to_owned(), cwd: host.cwd.clone(), frame })
    }
}

impl Pool {
    pub(crate) fn new(bounds: WarmPoolConfig) -> Arc<Self> {
        Arc::new(Self { bounds, waiting: Mutex::default() })
    }

    /// Takes a spare of this kind, if there is one that lives.
    pub(crate) async fn claim(&self, order: &Order) -> Option<Warm> {
        let configuration = order.configuration()?;
        loop {
            let claim = {
                let Waiting { spares, .. } = &mut *self.waiting();
                let at = spares.iter().position(|spare| *spare.configuration == configuration)?;
                spares.remove(at)?.claim
            };
            let (give, given) = oneshot::channel();
            // One that has just come to its end is passed over.
            if claim.send(give).is_ok()
                && let Ok(warm) = given.await
            {
                return Some(warm);
            }
        }
    }

    /// Starts a spare of this kind, unless there is one, and ends the oldest if there are too many then.
    pub(crate) fn refill(self: &Arc<Self>, order: Order, tasks: &TaskTracker) {
        let Some(configuration) = order.configuration().map(Arc::new) else { return };
        let (claim, claimed) = oneshot::channel();
        {
            let Waiting { spares, closed } = &mut *self.waiting();
            if *closed || spares.iter().any(|spare| spare.configuration == configuration) {
                return;
            }
            spares.push_back(Spare { configuration: Arc::clone(&configuration), memory: 0, claim });
            while spares.len() > self.bounds.count.get() {
                spares.pop_front();
            }
        }
        let pool = Arc::downgrade(self);
        let until = Instant::now().checked_add(self.bounds.age);
        tasks.spawn(keep(pool, configuration, order, claimed, until));
    }

    /// Ends all of them, and takes none in until it is opened again.
    pub(crate) fn close(&self) {
        *self.waiting() = Waiting { spares: VecDeque::new(), closed: true };
    }

    pub(crate) fn reopen(&self) {
        self.waiting().closed = false;
    }

    /// Notes how much memory a spare takes; while all of them take too much, the oldest ends.
    fn weigh(&self, configuration: &Arc<Configuration>, memory: u64) {
        let Waiting { spares, .. } = &mut *self.waiting();
        for spare in spares.iter_mut().filter(|spare| Arc::ptr_eq(&spare.configuration, configuration)) {
            spare.memory = memory;
        }
        while self.bounds.memory.is_some_and(|most| spares.iter().map(|spare| spare.memory).sum::<u64>() > most)
            && spares.pop_front().is_some()
        {}
    }

    fn forget(&self, configuration: &Arc<Configuration>) {
        self.waiting().spares.retain(|spare| !Arc::ptr_eq(&spare.configuration, configuration));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a spare and keeps it until somebody claims it, or it is of no use any more.
async fn keep(
    pool: Weak<Pool>,
    configuration: Arc<Configuration>,
    order: Order,
    mut claimed: oneshot::Receiver<oneshot::Sender<Warm>>,
    until: Option<Instant>,
) {
    let Order { agent, host, frame, permits } = order;
    let Some(permit) = permits.try_acquire_process(agent.name()) else {
        if let Some(pool) = pool.upgrade() {
            pool.forget(&configuration);
        }
        return;
    };
    let left = match Warm::start(&*agent, host, &frame, &CancellationToken::new()).await {
        Ok(Some(mut warm)) => {
            let idle = permit.idle();
            let claim = loop {
                tokio::select! {
                    biased;
                    claim = &mut claimed => break claim.ok(),
                    () = idle.reclaim_requested() => break None,
                    () = warm.idle() => break None,
                    () = past(until) => break None,
                    () = sleep(LOOK) => {
                        let memory = warm.process.tree.memory();
                        if let Some(pool) = pool.upgrade() {
                            pool.weigh(&configuration, memory);
                        }
                    }
                }
            };
            // Unless another session wants its place, nobody closes it for that.
            if claim.is_none() {
                idle.accept();
            } else {
                drop(idle);
            }
            warm.permit = Some(permit);
            match claim {
                Some(claim) => claim.send(warm).err(),
                None => Some(warm),
            }
        }
        Ok(None) => None,
        Err(failure) => {
            tracing::debug!(code = %failure.code, message = %failure.message.escaped(), "a spare process was not started");
            None
        }
    };
    if let Some(pool) = pool.upgrade() {
        pool.forget(&configuration);
    }
    if let Some(warm) = left {
        // Those that live on are logged; no turn is there that could report them.
        _ = warm.close(&frame.limits).await;
    }
}

async fn past(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
