//! Follows a conversation in a task, for callers that wait for other things too.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::connection::{ClientError, Connection};
use super::events::{Change, Events, ReconnectLimit};

/// The number of changes that wait for the reader. The gateway keeps the others.
const WAITING_CHANGES: usize = 64;

/// The events of a conversation, read by a task that ends with this value. A lost gateway is called again until then.
#[derive(Debug)]
pub(crate) struct Follower {
    changes: mpsc::Receiver<Result<Change, ClientError>>,
    /// The task. It is aborted on drop.
    _task: JoinSet<()>,
}

impl Follower {
    /// Starts to read the events after a number.
    pub(crate) fn start(connection: &Connection, conversation: &str, after: u64) -> Self {
        let (sender, changes) = mpsc::channel(WAITING_CHANGES);
        let mut events = Events::new(connection, conversation, after).with_reconnect(ReconnectLimit::Unlimited);
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                let change = events.next_change().await;
                let is_last = change.is_err();
                if sender.send(change).await.is_err() || is_last {
                    return;
                }
            }
        });
        Self { changes, _task: task }
    }

    /// Returns the next event or change of the connection, and waits for it. `None` follows an error. Cancel-safe.
    ///
    /// # Errors
    /// The gateway refuses the stream: the conversation or its next event is deleted, or the token was revoked.
    pub(crate) async fn next(&mut self) -> Option<Result<Change, ClientError>> {
        self.changes.recv().await
    }
}
