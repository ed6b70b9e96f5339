//! The gateway's interface for callers, and the state that its parts share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use teamster::Runtime;
use teamster_channel::{Channel, Pace};
use teamster_store::{
    ConversationId, ConversationPatch, Effects, FeedCursor, HostId, Json, Lease, NewDelivery, NewEvent, Progress, Seq,
    Store, Timestamp, TurnId, WorkerId,
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::hub::Hub;
use super::leases::Leases;
use super::running::RunningTurns;
use super::sessions::IdleSessions;
use super::slots::Slots;
use super::stream::{EventStream, FeedStream};
use crate::attachments::Attachments;
use crate::channels::status::{ChannelStatus, ChannelStatuses};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::GatewayError;
use crate::event::GatewayEvent;
use crate::event_log::EventLog;
use crate::hooks::Hooks;
use crate::instructions::Instructions;
use crate::telemetry::{MeasuredStore, Metrics};
use crate::tools::AgentTools;

/// The parts from which a gateway is built.
pub struct Parts {
    /// The configuration.
    pub config: Config,
    /// The store.
    pub store: Arc<dyn Store>,
    /// Starts the agents. Its environment must not have the variables of [`Config::secret_variables`].
    pub runtime: Arc<Runtime>,
    /// The channels, besides `http`.
    pub channels: Vec<Arc<dyn Channel>>,
    /// The host on which agents keep their session files. It is the same after a restart.
    pub host: HostId,
    /// The clock.
    pub clock: Clock,
}

/// A gateway. Clones share it.
#[derive(Clone)]
pub struct Gateway {
    pub(super) shared: Arc<Shared>,
}

/// The work of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// Turns that run, without those that wait for a person.
    pub running_turns: u32,
    /// Open sessions without a turn.
    pub idle_sessions: usize,
}

/// A reference that does not keep the gateway alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakGateway(Weak<Shared>);

pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) store: Arc<dyn Store>,
    pub(super) metrics: Metrics,
    pub(super) runtime: Arc<Runtime>,
    pub(super) channels: Vec<Arc<dyn Channel>>,
    pub(super) channel_statuses: ChannelStatuses,
    /// The rate limiter of each channel.
    pub(super) paces: HashMap<String, Arc<Mutex<Pace>>>,
    pub(super) attachments: Attachments,
    pub(super) hooks: Hooks,
    pub(super) tools: AgentTools,
    pub(super) instructions: Instructions,
    pub(super) clock: Clock,
    pub(super) host: HostId,
    pub(super) worker: WorkerId,
    pub(super) hub: Hub,
    pub(super) running: RunningTurns,
    pub(super) leases: Leases,
    pub(super) slots: Arc<Slots>,
    pub(super) sessions: IdleSessions,
    /// A turn may be claimable now.
    pub(super) work: Notify,
    /// A delivery may be claimable now.
    pub(super) deliveries: Notify,
    /// A schedule was created, changed or deleted.
    pub(super) schedules: Notify,
    /// Changes when a token was revoked.
    pub(super) revocations: watch::Sender<()>,
    /// Cancelled when the gateway starts to shut down.
    pub(super) stop: CancellationToken,
    /// Cancelled when its turns have ended after that.
    pub(super) closing: CancellationToken,
}

impl Gateway {
    /// Creates a gateway that accepts and answers calls, but runs no turn until [`start`](Self::start).
    pub fn new(parts: Parts) -> Self {
        let Parts { config, store, runtime, channels, host, clock } = parts;
        let agents = runtime.registry().names().map(str::to_owned);
        let metrics = Metrics::new(agents, channels.iter().map(|channel| channel.name().to_owned()));
        let pace = |channel: &Arc<dyn Channel>| {
            (channel.name().to_owned(), Arc::new(Mutex::new(Pace::new(&channel.capabilities()))))
        };
        let leases = Leases::new(config.timing.lease, runtime.host_lease().cloned());
        let shared = Shared {
            channel_statuses: ChannelStatuses::default(),
            paces: channels.iter().map(pace).collect(),
            attachments: Attachments::in_directory(config.data_dir.join("files")).with_limit(config.limits.files_bytes),
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
            leases,
            slots: Arc::default(),
            sessions: IdleSessions::default(),
            work: Notify::new(),
            deliveries: Notify::new(),
            schedules: Notify::new(),
            revocations: watch::Sender::new(()),
            stop: CancellationToken::new(),
            closing: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
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

    /// Returns the status of the channels, by their names. It is empty before the start.
    pub fn channel_status(&self) -> BTreeMap<String, ChannelStatus> {
        self.shared.channel_statuses.all()
    }

    pub(crate) fn channel_statuses(&self) -> &ChannelStatuses {
        &self.shared.channel_statuses
    }

    /// Returns the rate limiter of a channel, which all calls of its service share.
    pub(crate) fn pace(&self, channel: &str) -> Option<Arc<Mutex<Pace>>> {
        self.shared.paces.get(channel).map(Arc::clone)
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

    /// Returns a token that is cancelled when the gateway starts to shut down: it accepts no messages and claims no turns,
    /// and running turns end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.shared.stop
    }

    /// Returns a token that is cancelled when the turns have ended after that. End streams and connections then.
    pub fn closing(&self) -> &CancellationToken {
        &self.shared.closing
    }

    /// Changes when a token was revoked by this process.
    pub(crate) fn revocations(&self) -> watch::Receiver<()> {
        self.shared.revocations.subscribe()
    }

    /// Ends the streams of callers that are no longer admitted.
    pub(crate) fn announce_revocation(&self) {
        self.shared.revocations.send_replace(());
    }

    /// Returns the notification that deliveries were added.
    pub fn deliveries_added(&self) -> &Notify {
        &self.shared.deliveries
    }

    /// Returns the notification that a schedule was created, changed or deleted.
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
        let effects = Effects::events(vec![self.shared.event(event, turn)?]);
        let patch = ConversationPatch::default();
        self.shared.store.update_conversation(conversation, patch, effects, self.now()).await?;
        self.announce_growth(conversation);
        Ok(())
    }

    /// Records that a running turn is about to have an effect outside of its log.
    ///
    /// # Errors
    /// The lease of the turn is lost: the agent must have no further effect.
    pub(crate) async fn begin_effect(&self, lease: Lease) -> Result<(), GatewayError> {
        self.shared.store.append(lease, Progress::Tools, Effects::default(), self.now()).await?;
        Ok(())
    }

    /// Records an effect of a running turn, such as a message of its agent: its event and its deliveries, in one transaction.
    ///
    /// # Errors
    /// The lease of the turn is lost: the agent must have no further effect.
    pub(crate) async fn record_effect(
        &self,
        lease: Lease,
        event: &GatewayEvent,
        deliveries: Vec<NewDelivery>,
    ) -> Result<(), GatewayError> {
        let effects = Effects { events: vec![self.shared.event(event, Some(lease.turn))?], deliveries };
        self.shared.store.append(lease, Progress::Tools, effects, self.now()).await?;
        self.announce_growth(lease.conversation);
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
}

#[async_trait]
impl EventLog for Gateway {
    async fn append(
        &self,
        conversation: ConversationId,
        turn: Option<TurnId>,
        event: &GatewayEvent,
    ) -> Result<(), GatewayError> {
        self.record(conversation, turn, event).await
    }
}

impl WeakGateway {
    /// Returns the gateway, unless it was dropped.
    pub(crate) fn upgrade(&self) -> Option<Gateway> {
        self.0.upgrade().map(|shared| Gateway { shared })
    }
}

impl Shared {
    /// Returns a stored event of the gateway.
    pub(super) fn event(&self, event: &GatewayEvent, turn: Option<TurnId>) -> Result<NewEvent, GatewayError> {
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
