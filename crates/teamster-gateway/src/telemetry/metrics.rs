//! The metrics of a gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use teamster_store::{Claim, DeliveryStep, EndState, HandBackKind, StoreStatus, Timestamp, TurnId};

use super::labels::{
    self, BuildLabels, ChannelLabels, DeliveryLabels, EndLabels, KindLabels, KnownNames, OperationLabels,
    RequestLabels, StateLabels,
};
use super::turn_times::TurnTimes;
use super::uncounted::{Uncounted, UncountedWrite};
use crate::channels::status::ChannelStatus;

/// Upper bounds of the duration of a turn, in seconds: agents work from seconds to hours.
const TURN_SECONDS: [f64; 11] = [0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 7200.0];

/// Upper bounds of the time from the acceptance of a message to the first event, in seconds.
const FIRST_EVENT_SECONDS: [f64; 11] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// Upper bounds of the latency of a write, in seconds.
const WRITE_SECONDS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 5.0];

/// The metrics of a gateway. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    shared: Arc<Shared>,
}

type WriteHistograms = Family<OperationLabels, Histogram, fn() -> Histogram>;

#[derive(Debug)]
struct Shared {
    registry: Registry,
    names: KnownNames,
    times: TurnTimes,
    uncounted: Arc<Uncounted>,
    messages: Family<ChannelLabels, Counter>,
    duplicates: Family<ChannelLabels, Counter>,
    refused: Counter,
    turns: Family<EndLabels, Counter>,
    turn_seconds: Histogram,
    first_event_seconds: Histogram,
    handed_back: Family<KindLabels, Counter>,
    leases_lost: Counter,
    deliveries: Family<DeliveryLabels, Counter>,
    hook_failures: Counter,
    requests: Family<RequestLabels, Counter>,
    writes: WriteHistograms,
    write_errors: Family<OperationLabels, Counter>,
    subscribers: Gauge,
    levels: Levels,
}

/// The gauges that are set at each scrape.
#[derive(Debug, Default)]
struct Levels {
    turns: Family<StateLabels, Gauge>,
    idle_sessions: Gauge,
    conversations: Gauge,
    expired_leases: Gauge,
    permissions: Gauge,
    pending_deliveries: Gauge,
    failed_deliveries: Gauge,
    oldest_wait_seconds: Gauge<f64, AtomicU64>,
    store_bytes: Gauge,
    store_up: Gauge,
    channels: Family<ChannelLabels, Gauge>,
}

/// The work of this process, for a scrape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerLevels {
    pub(super) running_turns: u32,
    pub(super) idle_sessions: usize,
    /// Failures of hooks since the start.
    pub(super) hook_failures: u64,
}

/// Counts an event stream until it is dropped.
#[derive(Debug)]
pub(crate) struct Subscriber {
    count: Gauge,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.count.dec();
    }
}

fn write_histogram() -> Histogram {
    Histogram::new(WRITE_SECONDS)
}

impl Metrics {
    /// Creates the metrics of a gateway with these agents and channels. Other names are counted as `other`.
    pub fn new(agents: impl IntoIterator<Item = String>, channels: impl IntoIterator<Item = String>) -> Self {
        let mut shared = Shared {
            registry: Registry::with_prefix("teamster"),
            names: KnownNames::new(agents, channels),
            times: TurnTimes::default(),
            uncounted: Arc::default(),
            messages: Family::default(),
            duplicates: Family::default(),
            refused: Counter::default(),
            turns: Family::default(),
            turn_seconds: Histogram::new(TURN_SECONDS),
            first_event_seconds: Histogram::new(FIRST_EVENT_SECONDS),
            handed_back: Family::default(),
            leases_lost: Counter::default(),
            deliveries: Family::default(),
            hook_failures: Counter::default(),
            requests: Family::default(),
            writes: WriteHistograms::new_with_constructor(write_histogram),
            write_errors: Family::default(),
            subscribers: Gauge::default(),
            levels: Levels::default(),
        };
        shared.register_counts();
        shared.register_levels();
        Self { shared: Arc::new(shared) }
    }

    /// Registers a write before it starts. Drop the returned value after its outcome was counted.
    pub(crate) fn write_started(&self) -> UncountedWrite {
        self.shared.uncounted.start()
    }

    /// Waits until each write that is in progress now is counted.
    pub(super) async fn writes_counted(&self) {
        self.shared.uncounted.ended().await;
    }

    /// Counts a message that was accepted.
    pub(crate) fn message_accepted(&self, channel: &str, is_duplicate: bool) {
        let labels = ChannelLabels { channel: self.shared.names.channel(channel) };
        let family = if is_duplicate { &self.shared.duplicates } else { &self.shared.messages };
        family.get_or_create(&labels).inc();
    }

    /// Counts a message that was not accepted: by a rule, a hook, a limit or the store.
    pub(crate) fn message_refused(&self) {
        self.shared.refused.inc();
    }

    /// Counts a turn that was stopped because its lease was lost.
    pub(crate) fn lease_lost(&self) {
        self.shared.leases_lost.inc();
    }

    /// Removes the times of a turn. Call it when this process no longer works on the turn.
    pub(crate) fn turn_left(&self, turn: TurnId) {
        self.shared.times.left(turn);
    }

    /// Counts an event stream until the returned value is dropped.
    pub(crate) fn subscriber(&self) -> Subscriber {
        self.shared.subscribers.inc();
        Subscriber { count: self.shared.subscribers.clone() }
    }

    pub(super) fn turn_claimed(&self, claim: &Claim) {
        self.shared.times.claimed(claim);
    }

    pub(super) fn attempt_started(&self, turn: TurnId, now: Timestamp) {
        self.shared.times.started(turn, now);
    }

    pub(super) fn events_appended(&self, turn: TurnId, now: Timestamp) {
        if let Some(time) = self.shared.times.first_event(turn, now) {
            self.shared.first_event_seconds.observe(time.as_secs_f64());
        }
    }

    /// Counts a turn that has ended. `turn` is `None` if no worker had it.
    pub(super) fn turn_ended(&self, turn: Option<TurnId>, state: EndState, code: Option<&str>, now: Timestamp) {
        let ended = turn.and_then(|turn| self.shared.times.ended(turn, now));
        let labels = EndLabels {
            agent: self.shared.names.agent(ended.as_ref().map(|ended| ended.agent.as_str())),
            state: labels::end_state(state),
            code: labels::error_code(code),
        };
        self.shared.turns.get_or_create(&labels).inc();
        if let Some(duration) = ended.and_then(|ended| ended.duration) {
            self.shared.turn_seconds.observe(duration.as_secs_f64());
        }
    }

    pub(super) fn turn_handed_back(&self, kind: HandBackKind) {
        self.shared.handed_back.get_or_create(&KindLabels { kind: labels::hand_back(kind) }).inc();
    }

    /// Counts the outcome of a delivery. Steps between its start and its end are not counted.
    pub(super) fn delivery_advanced(&self, channel: &str, step: &DeliveryStep) {
        let outcome = match step {
            DeliveryStep::Sent => "sent",
            DeliveryStep::Retry(..) | DeliveryStep::Wait { .. } => "retry",
            DeliveryStep::Failed(_) => "failed",
            DeliveryStep::Unknown(_) => "unknown",
            DeliveryStep::Renew(_)
            | DeliveryStep::Postpone(_)
            | DeliveryStep::PartStarted(_)
            | DeliveryStep::PartSent(..)
            | DeliveryStep::PartNotSent(_) => return,
        };
        let labels = DeliveryLabels { channel: self.shared.names.channel(channel), outcome };
        self.shared.deliveries.get_or_create(&labels).inc();
    }

    pub(super) fn write_ended(&self, operation: &'static str, took: Duration, has_failed: bool) {
        let labels = OperationLabels { operation };
        self.shared.writes.get_or_create(&labels).observe(took.as_secs_f64());
        if has_failed {
            self.shared.write_errors.get_or_create(&labels).inc();
        }
    }

    pub(super) fn request_ended(&self, labels: &RequestLabels) {
        self.shared.requests.get_or_create(labels).inc();
    }

    /// Sets the gauges that are read at each scrape. `store` is `None` if the store does not answer.
    pub(super) fn set_levels(&self, worker: WorkerLevels, store: Option<&StoreStatus>, now: Timestamp) {
        let levels = &self.shared.levels;
        let turns = |state, count| levels.turns.get_or_create(&StateLabels { state }).set(count);
        let held = u32::try_from(self.shared.times.len()).unwrap_or(u32::MAX);
        turns("running", i64::from(worker.running_turns));
        turns("waiting", i64::from(held.saturating_sub(worker.running_turns)));
        self.shared.hook_failures.inner().store(worker.hook_failures, Ordering::Relaxed);
        levels.idle_sessions.set(number(worker.idle_sessions as u64));
        levels.store_up.set(i64::from(store.is_some()));
        // Gauges that cannot be read keep their last value, while `teamster_store_up` is 0.
        let Some(status) = store else { return };
        turns("queued", number(status.queued_turns));
        levels.conversations.set(number(status.conversations));
        levels.expired_leases.set(number(status.expired_leases));
        levels.permissions.set(number(status.open_permissions));
        levels.pending_deliveries.set(number(status.pending_deliveries));
        levels.failed_deliveries.set(number(status.failed_deliveries));
        levels.store_bytes.set(number(status.bytes));
        let waited = status.waiting_since.map_or(0, |since| now.as_millis().saturating_sub(since.as_millis()).max(0));
        levels.oldest_wait_seconds.set(Duration::from_millis(waited.unsigned_abs()).as_secs_f64());
    }

    /// Sets which channels receive.
    pub(super) fn set_channels<'a>(&self, channels: impl IntoIterator<Item = (&'a String, &'a ChannelStatus)>) {
        for (name, status) in channels {
            let labels = ChannelLabels { channel: self.shared.names.channel(name) };
            self.shared.levels.channels.get_or_create(&labels).set(i64::from(status.receives));
        }
    }

    /// Returns all metrics in the text format of Prometheus, or as `OpenMetrics`.
    ///
    /// # Errors
    /// A metric cannot be written.
    pub fn encode(&self, is_open_metrics: bool) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let registry = &self.shared.registry;
        let encode = if is_open_metrics { text::encode } else { prometheus_text::encode };
        encode(&mut text, registry)?;
        Ok(text)
    }
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Shared {
    fn register_counts(&mut self) {
        let registry = &mut self.registry;
        let build = Info::new(BuildLabels { version: env!("CARGO_PKG_VERSION") });
        registry.register("build", "The release of the gateway", build);
        registry.register("messages_accepted", "Messages that were accepted", self.messages.clone());
        registry.register("messages_duplicate", "Messages that had been accepted before", self.duplicates.clone());
        registry.register("messages_refused", "Messages that were not accepted", self.refused.clone());
        registry.register("turns_ended", "Turns that have ended, by state and error code", self.turns.clone());
        registry.register(
            "turn_duration_seconds",
            "Time from the start of the first attempt to the end of a turn",
            self.turn_seconds.clone(),
        );
        registry.register(
            "first_event_seconds",
            "Time from the acceptance of a message to the first event of its agent",
            self.first_event_seconds.clone(),
        );
        registry.register(
            "turns_handed_back",
            "Attempts after which a turn went back into its queue: for a retry, a pause or a shutdown",
            self.handed_back.clone(),
        );
        registry.register(
            "leases_lost",
            "Turns that were stopped because their lease was lost",
            self.leases_lost.clone(),
        );
        registry.register("deliveries", "Outcomes of deliveries, by channel", self.deliveries.clone());
        registry.register("hook_failures", "Calls of hooks that have failed", self.hook_failures.clone());
        registry.register("http_requests", "HTTP requests, by route and class of the status", self.requests.clone());
        registry.register("store_write_seconds", "Latency of the store's writes, by operation", self.writes.clone());
        registry.register(
            "store_write_errors",
            "Writes that failed or that the store refused, by operation",
            self.write_errors.clone(),
        );
        registry.register("event_subscribers", "Open event streams of this process", self.subscribers.clone());
    }

    fn register_levels(&mut self) {
        let (registry, levels) = (&mut self.registry, &self.levels);
        registry.register(
            "turns",
            "Turns by state: queued in the store, running in this process, waiting for a person in this process",
            levels.turns.clone(),
        );
        registry.register("idle_sessions", "Open agent sessions without a turn", levels.idle_sessions.clone());
        registry.register("conversations", "Conversations in the store", levels.conversations.clone());
        registry.register("expired_leases", "Turns whose lease has expired", levels.expired_leases.clone());
        registry.register(
            "open_permission_requests",
            "Permission requests without an answer",
            levels.permissions.clone(),
        );
        registry.register("deliveries_pending", "Deliveries that have not ended", levels.pending_deliveries.clone());
        registry.register(
            "deliveries_failed",
            "Deliveries that were given up, or whose outcome is unknown",
            levels.failed_deliveries.clone(),
        );
        registry.register(
            "oldest_wait_seconds",
            "How long the oldest turn that could run has waited",
            levels.oldest_wait_seconds.clone(),
        );
        registry.register("store_size_bytes", "The size of the store", levels.store_bytes.clone());
        registry.register("store_up", "Whether the store has answered the last scrape", levels.store_up.clone());
        registry.register("channel_receives", "Whether a channel receives messages", levels.channels.clone());
    }
}
