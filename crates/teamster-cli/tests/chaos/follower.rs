//! Subscribers of event streams. They connect again after each end, with the id of their last event, and cut connections themselves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::plan::one_in;

/// The time in which a subscriber must get the events that are in the log.
const LIMIT: Duration = Duration::from_secs(30);

/// A subscriber that has one stream at a time.
pub(crate) struct Follower {
    events: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Follower {
    /// Follows a stream from its start.
    pub(crate) fn start(client: &Client, path: String) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(follow(client.clone(), path, Arc::clone(&events)));
        Self { events, task }
    }

    /// Returns the events, when there are so many.
    pub(crate) async fn events(self, count: usize) -> Vec<Value> {
        let limit = Instant::now() + LIMIT;
        loop {
            assert!(!self.task.is_finished(), "the subscriber has failed");
            let found = self.events.lock().unwrap_or_else(PoisonError::into_inner).len();
            if found >= count {
                break;
            }
            assert!(Instant::now() < limit, "the stream has {found} of {count} events");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.task.abort();
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *events)
    }
}

async fn follow(client: Client, path: String, events: Arc<Mutex<Vec<Value>>>) {
    let mut last: Option<String> = None;
    loop {
        let Some(mut stream) = client.stream(&path, last.as_deref()).await else {
            tokio::time::sleep(Duration::from_millis(30)).await;
            continue;
        };
        while let Some(frame) = stream.next().await {
            // The last frame of a stream contains why it ends, and has no id.
            let Some(id) = frame.id else { break };
            events.lock().unwrap_or_else(PoisonError::into_inner).push(frame.data);
            last = Some(id);
            if one_in(200) {
                break;
            }
        }
    }
}
