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

/// The number of conversations with a sender below which none is removed by a subscription.
const FEW: usize = 64;

/// The subscribers of this process.
#[derive(Debug)]
pub(super) struct Hub {
    conversations: Mutex<Senders>,
    /// Counts all announcements, for the feed.
    all: watch::Sender<u64>,
}

/// The sender of each conversation.
#[derive(Debug)]
struct Senders {
    by_conversation: HashMap<ConversationId, broadcast::Sender<Announcement>>,
    /// The number of conversations at which those without a subscriber are removed.
    full_at: usize,
}

impl Senders {
    /// Subscribes to a conversation. A conversation in which nothing happens any more is removed here.
    fn subscribe(&mut self, conversation: ConversationId) -> broadcast::Receiver<Announcement> {
        if self.by_conversation.len() >= self.full_at {
            self.by_conversation.retain(|_, sender| sender.receiver_count() > 0);
            self.full_at = self.by_conversation.len().saturating_mul(2).max(FEW);
        }
        self.by_conversation.entry(conversation).or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe()
    }
}

impl Hub {
    pub(super) fn new() -> Self {
        let senders = Senders { by_conversation: HashMap::new(), full_at: FEW };
        Self { conversations: Mutex::new(senders), all: watch::Sender::new(0) }
    }

    /// Announces events that are in the log now.
    pub(super) fn announce(&self, conversation: ConversationId, events: Vec<Arc<Event>>) {
        let mut senders = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.by_conversation.get(&conversation)
            && sender.send(events.into()).is_err()
        {
            senders.by_conversation.remove(&conversation);
        }
        drop(senders);
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
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner).subscribe(conversation)
    }

    /// Subscribes to all conversations.
    pub(super) fn subscribe_to_all(&self) -> watch::Receiver<u64> {
        self.all.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn conversations_without_a_subscriber_take_no_memory() {
        let hub = Hub::new();
        let id = |number: u128| ConversationId::new(Uuid::from_u128(number));
        let mut read = hub.subscribe(id(0));
        for number in 1..10_000 {
            drop(hub.subscribe(id(number)));
        }
        assert!(hub.conversations.lock().unwrap().by_conversation.len() <= 2 * FEW);
        hub.announce_growth(id(0));
        assert!(read.try_recv().is_ok(), "a subscriber stays");
    }
}
