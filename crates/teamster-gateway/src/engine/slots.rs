//! The number of turns that run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Notify;

/// Counts running turns. A turn that waits for a person is not counted.
#[derive(Debug, Default)]
pub(super) struct Slots {
    running: AtomicU32,
    /// A running turn has ended, or waits for a person.
    pub(super) freed: Notify,
}

/// The slot of one running turn.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    is_counted: AtomicBool,
}

impl Slots {
    pub(super) fn take(self: &Arc<Self>) -> Slot {
        self.running.fetch_add(1, Ordering::Relaxed);
        Slot { slots: Arc::clone(self), is_counted: AtomicBool::new(true) }
    }

    /// Returns the number of running turns.
    pub(super) fn running(&self) -> u32 {
        self.running.load(Ordering::Relaxed)
    }
}

impl Slot {
    /// Lets another turn run while this one waits for a person.
    pub(super) fn release(&self) {
        if self.is_counted.swap(false, Ordering::Relaxed) {
            self.slots.running.fetch_sub(1, Ordering::Relaxed);
            self.slots.freed.notify_one();
        }
    }

    /// Counts this turn again. The limit may be exceeded for a while.
    pub(super) fn reclaim(&self) {
        if !self.is_counted.swap(true, Ordering::Relaxed) {
            self.slots.running.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.release();
    }
}
