//! Writes that may be durable, but are not counted yet.
//!
//! A write is counted after it is durable. A client can read its outcome from the store before that. A scrape waits for the counts
//! of the writes that are in progress, so that it shows what its client has read before.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The writes that are in progress.
#[derive(Debug, Default)]
pub(super) struct Uncounted {
    writes: Mutex<Writes>,
    /// Notified when a write ends.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Writes {
    /// The number of the next write.
    next: u64,
    open: BTreeSet<u64>,
}

/// A write that is in progress, until this value is dropped.
#[derive(Debug)]
pub(crate) struct UncountedWrite {
    number: u64,
    writes: Arc<Uncounted>,
}

impl Uncounted {
    pub(super) fn start(self: &Arc<Self>) -> UncountedWrite {
        let mut writes = self.lock();
        let number = writes.next;
        writes.next += 1;
        writes.open.insert(number);
        UncountedWrite { number, writes: Arc::clone(self) }
    }

    /// Waits until each write that is in progress now has ended. It does not wait for later ones.
    pub(super) async fn ended(&self) {
        let next = self.lock().next;
        loop {
            let ended = self.ended.notified();
            if self.lock().open.first().is_none_or(|oldest| *oldest >= next) {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UncountedWrite {
    fn drop(&mut self) {
        self.writes.lock().open.remove(&self.number);
        self.writes.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_scrape_waits_for_the_writes_before_it_and_for_no_later_one() {
        let writes = Arc::<Uncounted>::default();
        let (first, second) = (writes.start(), writes.start());
        let mut waiting = pin!(writes.ended());
        assert!(poll!(&mut waiting).is_pending());
        let later = writes.start();
        drop(second);
        assert!(poll!(&mut waiting).is_pending());
        drop(first);
        assert!(poll!(&mut waiting).is_ready());
        let mut waiting = pin!(writes.ended());
        assert!(poll!(&mut waiting).is_pending());
        drop(later);
        assert!(poll!(&mut waiting).is_ready());
    }
}
