//! The queues of hooks: each hook gets its events in order, and failures go to the logs of conversations.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use teamster_store::Timestamp;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::call::Hook;
use super::error::FailedCall;
use super::event::HookEvent;
use super::failures::{Failures, HookFailure};
use crate::clock::Clock;
use crate::event::GatewayEvent;
use crate::event_log::EventLog;

/// The events that wait for a hook, and the failures that wait for a log.
const QUEUED: usize = 1000;

/// The time that failures have to reach the logs after the last call.
const LOG_LIMIT: Duration = Duration::from_secs(2);

/// The queues of all hooks.
#[derive(Debug)]
pub(super) struct Queues {
    lanes: Vec<Lane>,
    log: Queue<HookFailure>,
    failures: Arc<Failures>,
    clock: Clock,
}

/// A hook and its queue.
#[derive(Debug)]
struct Lane {
    hook: Arc<Hook>,
    queue: Queue<Arc<HookEvent>>,
}

/// A bounded queue, whose receiver is taken by its task.
#[derive(Debug)]
struct Queue<T> {
    sender: mpsc::Sender<T>,
    receiver: Mutex<Option<mpsc::Receiver<T>>>,
}

/// The tasks of hooks. Dropping them ends running calls at once; [`shutdown`](Self::shutdown) waits.
#[derive(Debug)]
pub struct HookTasks {
    calls: JoinSet<()>,
    stop_calls: CancellationToken,
    log: JoinSet<()>,
    stop_log: CancellationToken,
}

impl<T> Queue<T> {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUED);
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }

    fn take(&self) -> Option<mpsc::Receiver<T>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Queues {
    pub(super) fn new(hooks: &[Arc<Hook>], failures: &Arc<Failures>, clock: &Clock) -> Self {
        let lanes = hooks.iter().map(|hook| Lane { hook: Arc::clone(hook), queue: Queue::new() }).collect();
        Self { lanes, log: Queue::new(), failures: Arc::clone(failures), clock: clock.clone() }
    }

    /// Queues an event for each hook that subscribes to it.
    pub(super) fn push(&self, event: &Arc<HookEvent>) {
        for lane in self.lanes.iter().filter(|lane| lane.hook.config.events.contains(&event.kind())) {
            if let Err(TrySendError::Full(_)) = lane.queue.sender.try_send(Arc::clone(event)) {
                let reason = format!("is too slow: {QUEUED} events wait for it, and this one is lost");
                let failure = record(&lane.hook, event, reason, None, self.clock.now());
                self.failures.add(failure.clone());
                self.log(failure);
            }
        }
    }

    /// Reports a failure to the operator, and queues it for the log of its conversation.
    pub(super) fn log(&self, failure: HookFailure) {
        announce(&failure);
        if failure.conversation.is_some() {
            // A full queue loses it for the log; the operator sees it.
            _ = self.log.sender.try_send(failure);
        }
    }

    pub(super) fn start(&self, log: Arc<dyn EventLog>) -> HookTasks {
        let mut tasks = HookTasks {
            calls: JoinSet::new(),
            stop_calls: CancellationToken::new(),
            log: JoinSet::new(),
            stop_log: CancellationToken::new(),
        };
        if let Some(failures) = self.log.take() {
            tasks.log.spawn(write_log(log, failures, tasks.stop_log.clone()));
        }
        for lane in &self.lanes {
            let Some(events) = lane.queue.take() else { continue };
            let (failures, clock) = (Arc::clone(&self.failures), self.clock.clone());
            let report = Report { failures, log: self.log.sender.clone(), clock };
            tasks.calls.spawn(call_all(Arc::clone(&lane.hook), events, report, tasks.stop_calls.clone()));
        }
        tasks
    }
}

impl HookTasks {
    /// Calls the hooks of the events that are queued now, within a time limit. Later events are dropped. Calls that are still
    /// running at the limit are ended.
    pub async fn shutdown(mut self, limit: Duration) {
        self.stop_calls.cancel();
        let ended = tokio::time::timeout(limit, async { while self.calls.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!(?limit, "hooks did not end in time; their queued events are lost");
            self.calls.shutdown().await;
        }
        self.stop_log.cancel();
        _ = tokio::time::timeout(LOG_LIMIT, async { while self.log.join_next().await.is_some() {} }).await;
    }
}

/// Where failures of queued calls go.
struct Report {
    failures: Arc<Failures>,
    log: mpsc::Sender<HookFailure>,
    clock: Clock,
}

/// Returns the next item. After `stop`, returns those that are queued, and then nothing.
async fn next<T>(queue: &mut mpsc::Receiver<T>, stop: &CancellationToken) -> Option<T> {
    tokio::select! {
        item = queue.recv() => item,
        () = stop.cancelled() => {
            queue.close();
            queue.recv().await
        }
    }
}

async fn call_all(
    hook: Arc<Hook>,
    mut events: mpsc::Receiver<Arc<HookEvent>>,
    report: Report,
    stop: CancellationToken,
) {
    while let Some(event) = next(&mut events, &stop).await {
        let Err(failed) = hook.call(&event, report.clock.now()).await else { continue };
        let failure = failure(&hook, &event, failed, report.clock.now());
        announce(&failure);
        report.failures.add(failure.clone());
        if failure.conversation.is_some() {
            // A full queue loses it for the log; the operator sees it.
            _ = report.log.try_send(failure);
        }
    }
}

/// Appends failures to the logs of their conversations.
async fn write_log(log: Arc<dyn EventLog>, mut failures: mpsc::Receiver<HookFailure>, stop: CancellationToken) {
    while let Some(HookFailure { conversation, hook, reason, .. }) = next(&mut failures, &stop).await {
        let Some(conversation) = conversation else { continue };
        let event = GatewayEvent::HookFailed { hook, reason };
        // The conversation may be deleted.
        if let Err(error) = log.append(conversation, None, &event).await {
            tracing::warn!(%conversation, %error, "cannot log the failure of a hook");
        }
    }
}

/// Returns the record of a failed call.
pub(super) fn failure(hook: &Hook, event: &HookEvent, failed: FailedCall, at: Timestamp) -> HookFailure {
    record(hook, event, failed.error.to_string(), failed.output, at)
}

fn record(hook: &Hook, event: &HookEvent, reason: String, output: Option<String>, at: Timestamp) -> HookFailure {
    let (event, conversation) = (event.kind(), event.conversation());
    HookFailure { at, hook: hook.config.name.clone(), event, conversation, reason, output }
}

fn announce(failure: &HookFailure) {
    let HookFailure { hook, event, conversation, reason, output, .. } = failure;
    let conversation = conversation.map(|id| id.to_string());
    tracing::warn!(hook, event = event.name(), conversation, reason, "a hook has failed");
    if let Some(output) = output {
        // It may quote the message.
        tracing::debug!(hook, event = event.name(), conversation, output, "the output of a hook that has failed");
    }
}
