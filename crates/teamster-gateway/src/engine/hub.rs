//! Passes new events of logs on to the subscribers of this process.
//!
//! The log is authoritative: an announcement may be missing, late or out of order. A subscriber compares numbers and
//! reads missing events from the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use teamster_store::{ConversationId, Event, NewEvent, Seq};
use tokio::sync::{broadcast, watch};

/// Events that were appended together. Empty: read the log.
pub(super) type Announcement = Arc<[Arc<Event>]>;

/// The number of announcements that wait for a subscriber. A slower subscriber reads the store.
const BACKLOG: usize = 64;

/// The subscribers of this process.
#[derive(Debug)]
pub(super) struct Hub {
    conversations: Mutex<HashMap<ConversationId, broadcast::Sender<Announcement>>>,
    /// Counts all announcements, for the feed.
    all: watch::Sender<u64>,
}

impl Hub {
    pub(super) fn new() -> Self {
        Self { conversations: Mutex::default(), all: watch::Sender::new(0) }
    }

    /// Announces events that are in the log now.
    pub(super) fn announce(&self, conversation: ConversationId, events: Vec<Arc<Event>>) {
        let mut conversations = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = conversations.get(&conversation)
            && sender.send(events.into()).is_err()
        {
            conversations.remove(&conversation);
        }
        drop(conversations);
        self.all.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Announces the last events of a log, of which `last` is the number of the last one.
    pub(super) fn announce_appended(&self, conversation: ConversationId, events: Vec<NewEvent>, last: Seq) {
        let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
        let before = last.get().saturating_sub(count);
        let numbered = (1..).zip(events).map(|(number, event)| {
            let NewEvent { kind, turn, at, body } = event;
            Arc::new(Event { seq: Seq::new(before + number), kind, turn, at, body })
        });
        self.announce(conversation, numbered.collect());
    }

    /// Announces that the log has grown.
    pub(super) fn announce_growth(&self, conversation: ConversationId) {
        self.announce(conversation, Vec::new());
    }

    /// Subscribes to a conversation. Subscribe before reading the log.
    pub(super) fn subscribe(&self, conversation: ConversationId) -> broadcast::Receiver<Announcement> {
        let mut conversations = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        conversations.entry(conversation).or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe()
    }

    /// Subscribes to all conversations.
    pub(super) fn subscribe_to_all(&self) -> watch::Receiver<u64> {
        self.all.subscribe()
    }
}
