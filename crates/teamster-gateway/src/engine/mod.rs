//! The engine: it accepts messages, runs their turns and records what happens.
//!
//! | module | contents |
//! |---|---|
//! | `intake` | what clients and channels bring in: messages, edits, aborts, answers |
//! | `conversations` | conversations and their settings |
//! | `decisions` | what happens next, as pure functions |
//! | `worker` | claims conversations |
//! | `upkeep` | closes idle sessions, deletes old data |
//! | `leases` | renews leases, and stops turns that lose them |
//! | `turn` | one turn, from its claim to its end |
//! | `history` | what an agent gets that does not know the conversation |
//! | `sessions` | live sessions between turns |
//! | `log_writer` | the events of an attempt, in batches |
//! | `hub`, `stream` | new events for subscribers |

mod conversations;
mod decisions;
mod history;
mod hub;
mod intake;
mod leases;
mod log_writer;
mod running;
mod sessions;
mod stream;
mod turn;
mod upkeep;
mod worker;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use teamster::Runtime;
use teamster_channel::Channel;
use teamster_store::{
    ConversationId, ConversationPatch, Effects, FeedCursor, HostId, Json, NewDelivery, NewEvent, Seq, Store, Timestamp,
    TurnId, WorkerId,
};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::conversations::{ConversationChange, NewConversationRequest};
pub(crate) use self::history::history;
use self::hub::Hub;
pub use self::intake::{AcceptedMessage, AnswerResult, Caller, IncomingMessage, MessageTarget};
use self::leases::Leases;
use self::running::RunningTurns;
use self::sessions::IdleSessions;
pub use self::stream::{EventStream, FeedStream, StreamError};
use self::worker::Slots;
use crate::attachments::Attachments;
use crate::channels::ChannelTasks;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::GatewayError;
use crate::event::GatewayEvent;
use crate::hooks::{HookTasks, Hooks};
use crate::instructions::Instructions;
use crate::telemetry::{MeasuredStore, Metrics};
use crate::tools::AgentTools;

/// What a gateway is made of.
pub struct Parts {
    /// The configuration.
    pub config: Config,
    /// The store.
    pub store: Arc<dyn Store>,
    /// Starts the agents.
    pub runtime: Arc<Runtime>,
    /// The channels, besides `http`.
    pub channels: Vec<Arc<dyn Channel>>,
    /// The place where agents keep their session files. It is the same after a restart.
    pub host: HostId,
    /// The clock.
    pub clock: Clock,
}

/// A gateway. Clones share it.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

/// What a process works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// Turns that run, without those that wait for a person.
    pub running_turns: u32,
    /// Agents that wait for the next message of their conversation.
    pub idle_sessions: usize,
}

/// The tasks of a gateway. Dropping it stops them without waiting; [`shutdown`](Self::shutdown) waits.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    /// It ends after `stop` when the running turns have ended.
    worker: JoinHandle<()>,
    /// Receiving and delivering.
    channels: ChannelTasks,
    /// Tasks that must run until the worker has ended.
    upkeep: JoinSet<()>,
    hooks: Option<HookTasks>,
}

/// A reference that does not keep the gateway alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakGateway(Weak<Shared>);

/// How long a shutdown waits for hooks of queued events.
const HOOKS_LIMIT: Duration = Duration::from_secs(10);

struct Shared {
    config: Config,
    store: Arc<dyn Store>,
    metrics: Metrics,
    runtime: Arc<Runtime>,
    channels: Vec<Arc<dyn Channel>>,
    attachments: Attachments,
    hooks: Hooks,
    tools: AgentTools,
    instructions: Instructions,
    clock: Clock,
    host: HostId,
    worker: WorkerId,
    hub: Hub,
    running: RunningTurns,
    leases: Leases,
    slots: Arc<Slots>,
    sessions: IdleSessions,
    /// A turn may be claimable now.
    work: Notify,
    /// A delivery may be claimable now.
    deliveries: Notify,
    /// A schedule was created, changed or deleted.
    schedules: Notify,
    stop: CancellationToken,
}

impl Gateway {
    /// Creates a gateway that accepts and answers calls, but runs no turn until [`start`](Self::start).
    pub fn new(parts: Parts) -> Self {
        let Parts { config, store, runtime, channels, host, clock } = parts;
        let agents = runtime.registry().names().map(str::to_owned);
        let metrics = Metrics::new(agents, channels.iter().map(|channel| channel.name().to_owned()));
        let shared = Shared {
            attachments: Attachments::in_directory(config.data_dir.join("files")),
            hooks: Hooks::new(config.hooks.clone(), clock.clone()),
            tools: AgentTools::default(),
            instructions: Instructions::new(&config.instructions),
            config,
            store: Arc::new(MeasuredStore::new(store, metrics.clone())),
            metrics,
            runtime,
            channels,
            clock,
            host,
            worker: WorkerId::new(Uuid::now_v7().to_string()),
            hub: Hub::new(),
            running: RunningTurns::default(),
            leases: Leases::default(),
            slots: Arc::default(),
            sessions: IdleSessions::default(),
            work: Notify::new(),
            deliveries: Notify::new(),
            schedules: Notify::new(),
            stop: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts the tasks: turns, leases, deliveries, schedules, retention. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// The store cannot be read, or a file or hook of the configuration cannot be used.
    pub async fn start(&self) -> Result<Running, GatewayError> {
        self.shared.instructions.check()?;
        self.shared.hooks.check()?;
        self.shared.tools.start(self).await?;
        worker::recover(&self.shared).await?;
        let mut upkeep = JoinSet::new();
        let shared = Arc::clone(&self.shared);
        upkeep.spawn(async move { leases::renew(&shared).await });
        let shared = Arc::clone(&self.shared);
        upkeep.spawn(async move { upkeep::run(&shared).await });
        upkeep.spawn(crate::schedules::run(self.clone()));
        let hooks = Some(self.shared.hooks.start(self));
        let worker = tokio::spawn(worker::work(self.clone()));
        let channels = crate::channels::start(self);
        Ok(Running { shared: Arc::clone(&self.shared), worker, channels, upkeep, hooks })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Returns the library's runtime, with its registry of agents.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Returns the files of attachments.
    pub fn attachments(&self) -> &Attachments {
        &self.shared.attachments
    }

    /// Returns the operator's hooks.
    pub fn hooks(&self) -> &Hooks {
        &self.shared.hooks
    }

    /// Returns the tools of agents.
    #[cfg(test)]
    pub(crate) fn tools(&self) -> &AgentTools {
        &self.shared.tools
    }

    /// Returns the channels.
    pub fn channels(&self) -> &[Arc<dyn Channel>] {
        &self.shared.channels
    }

    /// Returns the name of this process as a worker.
    pub fn worker(&self) -> &WorkerId {
        &self.shared.worker
    }

    /// Returns the number of turns that run in this process, and the number of its idle sessions.
    pub fn activity(&self) -> Activity {
        Activity { running_turns: self.shared.slots.running(), idle_sessions: self.shared.sessions.len() }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Is cancelled when the gateway shuts down: end streams then.
    pub fn stopping(&self) -> &CancellationToken {
        &self.shared.stop
    }

    /// Is notified when deliveries were added.
    pub fn deliveries_added(&self) -> &Notify {
        &self.shared.deliveries
    }

    /// Is notified when a schedule was created, changed or deleted.
    pub fn schedules_changed(&self) -> &Notify {
        &self.shared.schedules
    }

    /// Appends an event to the log of a conversation, without the lease of a worker.
    pub(crate) async fn record(
        &self,
        conversation: ConversationId,
        turn: Option<TurnId>,
        event: &GatewayEvent,
    ) -> Result<(), GatewayError> {
        self.record_with(conversation, turn, event, Vec::new()).await
    }

    /// Appends an event to the log of a conversation, and queues deliveries, in one transaction.
    pub(crate) async fn record_with(
        &self,
        conversation: ConversationId,
        turn: Option<TurnId>,
        event: &GatewayEvent,
        deliveries: Vec<NewDelivery>,
    ) -> Result<(), GatewayError> {
        let effects = Effects { events: vec![self.shared.event(event, turn)?], deliveries };
        let patch = ConversationPatch::default();
        self.shared.store.update_conversation(conversation, patch, effects, self.now()).await?;
        self.announce_growth(conversation);
        Ok(())
    }

    /// Returns a reference that does not keep the gateway alive.
    pub(crate) fn downgrade(&self) -> WeakGateway {
        WeakGateway(Arc::downgrade(&self.shared))
    }

    /// Announces that the log of a conversation has grown by an operation of the caller on the store.
    pub fn announce_growth(&self, conversation: ConversationId) {
        self.shared.hub.announce_growth(conversation);
        self.shared.work.notify_one();
        self.shared.deliveries.notify_one();
    }

    /// Returns the events of a conversation after a number: those of the log, then each new one.
    pub fn events(&self, conversation: ConversationId, after: Seq) -> EventStream {
        EventStream::new(Arc::clone(&self.shared.store), &self.shared.hub, conversation, after)
    }

    /// Returns the events of all conversations after a position. `None` is the start.
    pub fn feed(&self, after: Option<FeedCursor>) -> FeedStream {
        FeedStream::new(Arc::clone(&self.shared.store), &self.shared.hub, after)
    }

    /// Returns whether an agent may work in a directory: below a root, with symbolic links resolved.
    pub fn permits_directory(&self, directory: &std::path::Path) -> Result<PathBuf, GatewayError> {
        conversations::permitted_directory(&self.shared.config, directory)
    }
}

impl WeakGateway {
    /// Returns the gateway, unless it is gone.
    pub(crate) fn upgrade(&self) -> Option<Gateway> {
        self.0.upgrade().map(|shared| Gateway { shared })
    }
}

impl Running {
    /// Stops accepting and claiming, and waits for running turns within the time limit of the configuration. Turns that do
    /// not end in time are handed back: another start runs them.
    pub async fn shutdown(mut self) {
        let shared = Arc::clone(&self.shared);
        shared.stop.cancel();
        if let Err(error) = (&mut self.worker).await {
            tracing::error!(%error, "the worker has failed");
        }
        // The answers of the last turns are sent.
        self.channels.shutdown().await;
        shared.sessions.close_all().await;
        self.upkeep.shutdown().await;
        if let Some(hooks) = self.hooks.take() {
            hooks.shutdown(HOOKS_LIMIT).await;
        }
        // What was not recorded in time is claimed again without waiting for its lease.
        if let Err(error) = shared.store.expire_leases(shared.worker.clone(), shared.clock.now()).await {
            tracing::warn!(%error, "leases were not released; they expire by themselves");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        self.worker.abort();
    }
}

impl Shared {
    /// Returns a stored event of the gateway.
    fn event(&self, event: &GatewayEvent, turn: Option<TurnId>) -> Result<NewEvent, GatewayError> {
        Ok(NewEvent { kind: event.kind().to_owned(), turn, at: self.clock.now(), body: Json::of(event)? })
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gateway").field("worker", &self.shared.worker).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Parts").field("config", &self.config).field("host", &self.host).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").field("worker", &self.worker).finish_non_exhaustive()
    }
}
