//! Streams of events: the log from any number on, then live, each event once and in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use teamster_store::{ConversationId, Event, FeedCursor, FeedEvent, Seq, Store, StoreError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

use super::hub::{Announcement, Hub};

/// The number of events that are read at once.
const PAGE: u32 = 256;

/// The interval of checks against the log: an announcement of another process may be lost.
const CHECK: Duration = Duration::from_secs(1);

/// Why a stream of events ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// Retention has deleted events that the subscriber does not have.
    #[error("the events before number {oldest} are deleted; continue after {}", oldest.get().saturating_sub(1))]
    Pruned {
        /// The oldest event that can be read.
        oldest: Seq,
    },
    /// Retention has deleted events of the feed that the subscriber does not have.
    #[error(
        "the log does not continue at this position: events are deleted, or an older copy of the store was restored; to \
         continue, read after {}",
        resume.as_str()
    )]
    FeedPruned {
        /// The position with which the subscriber accepts the gap.
        resume: FeedCursor,
    },
    /// The conversation no longer exists.
    #[error("the conversation was deleted")]
    Deleted,
    /// The store cannot be read.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for StreamError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::EventsPruned { oldest } => Self::Pruned { oldest },
            StoreError::FeedPruned { resume } => Self::FeedPruned { resume },
            StoreError::NotFound { .. } => Self::Deleted,
            other => Self::Store(other),
        }
    }
}

/// The events of a conversation after a number.
pub struct EventStream {
    store: Arc<dyn Store>,
    conversation: ConversationId,
    announced: broadcast::Receiver<Announcement>,
    /// The last event that was returned or is in `ready`.
    last: Seq,
    ready: VecDeque<Arc<Event>>,
    /// The log may have events after `last` that were not announced.
    must_read: bool,
}

impl EventStream {
    pub(super) fn new(store: Arc<dyn Store>, hub: &Hub, conversation: ConversationId, after: Seq) -> Self {
        let announced = hub.subscribe(conversation);
        Self { store, conversation, announced, last: after, ready: VecDeque::new(), must_read: true }
    }

    /// Returns the next event, and waits for it if there is none yet.
    ///
    /// Cancel safe: the call can be dropped and repeated at any time.
    pub async fn next(&mut self) -> Result<Arc<Event>, StreamError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.must_read {
                self.read().await?;
            } else {
                self.wait().await;
            }
        }
    }

    /// Returns the next event of the log as it is now. `None`: there is no further one.
    ///
    /// Cancel safe, as [`next`](Self::next).
    pub async fn next_logged(&mut self) -> Result<Option<Arc<Event>>, StreamError> {
        if self.ready.is_empty() {
            self.read().await?;
        }
        Ok(self.ready.pop_front())
    }

    /// Returns the next event if it is known already.
    pub fn next_ready(&mut self) -> Option<Arc<Event>> {
        self.ready.pop_front()
    }

    async fn read(&mut self) -> Result<(), StreamError> {
        let page = self.store.events(self.conversation, self.last, PAGE).await?;
        for event in page.events {
            self.last = event.seq;
            self.ready.push_back(Arc::new(event));
        }
        self.must_read = self.last < page.last_seq;
        Ok(())
    }

    async fn wait(&mut self) {
        match timeout(CHECK, self.announced.recv()).await {
            Ok(Ok(events)) => self.take(&events),
            Ok(Err(RecvError::Lagged(_))) | Err(_) => self.must_read = true,
            Ok(Err(RecvError::Closed)) => {
                // The hub closes it with the process.
                self.must_read = true;
                tokio::time::sleep(CHECK).await;
            }
        }
    }

    /// Takes announced events that follow the last one.
    fn take(&mut self, events: &[Arc<Event>]) {
        if events.is_empty() {
            self.must_read = true;
        }
        for event in events {
            if event.seq == self.last.next() {
                self.last = event.seq;
                self.ready.push_back(Arc::clone(event));
            } else if event.seq > self.last {
                self.must_read = true;
                return;
            }
        }
    }
}

/// The events of all conversations after a position.
pub struct FeedStream {
    store: Arc<dyn Store>,
    announced: watch::Receiver<u64>,
    cursor: Option<FeedCursor>,
}

impl FeedStream {
    pub(super) fn new(store: Arc<dyn Store>, hub: &Hub, after: Option<FeedCursor>) -> Self {
        Self { store, announced: hub.subscribe_to_all(), cursor: after }
    }

    /// Returns the next events, at least one, with the position after them.
    ///
    /// Cancel safe: the call can be dropped and repeated at any time.
    pub async fn next(&mut self) -> Result<(Vec<FeedEvent>, FeedCursor), StreamError> {
        loop {
            self.announced.mark_unchanged();
            let page = self.store.feed(self.cursor.clone(), PAGE).await?;
            self.cursor = Some(page.cursor.clone());
            if !page.events.is_empty() {
                return Ok((page.events, page.cursor));
            }
            // The feed is checked once a second even without an announcement.
            _ = timeout(CHECK, self.announced.changed()).await;
        }
    }

    /// Returns the next events that the store has now. The list is empty if there is no further one.
    ///
    /// Cancel safe, as [`next`](Self::next).
    pub async fn next_logged(&mut self) -> Result<Vec<FeedEvent>, StreamError> {
        let page = self.store.feed(self.cursor.clone(), PAGE).await?;
        self.cursor = Some(page.cursor);
        Ok(page.events)
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EventStream")
            .field("conversation", &self.conversation)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FeedStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FeedStream").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}
