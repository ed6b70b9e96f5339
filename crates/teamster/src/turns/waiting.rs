//! A waiting turn of a session: its content, until the driver starts it or the caller cancels it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use teamster_types::request::Prompt;
use tokio::sync::OwnedSemaphorePermit;

use super::handle::RunHandle;

/// What a turn needs to start.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) prompt: Prompt,
    pub(crate) handle: RunHandle,
    /// The permit of the session for a waiting turn.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// The content of a waiting turn, until it is taken. Clones share the content.
#[derive(Clone, Debug)]
pub(crate) struct Waiting(Arc<Mutex<Option<Content>>>);

/// A reference to a waiting turn that does not keep its content.
#[derive(Clone, Debug, Default)]
pub(crate) struct WeakWaiting(Weak<Mutex<Option<Content>>>);

impl Waiting {
    pub(crate) fn new(content: Content) -> Self {
        Self(Arc::new(Mutex::new(Some(content))))
    }

    /// Takes the content. Returns `None` if it was taken before.
    pub(crate) fn take(&self) -> Option<Content> {
        lock(&self.0).take()
    }

    /// Puts [taken](Self::take) content back.
    pub(crate) fn put_back(&self, content: Content) {
        *lock(&self.0) = Some(content);
    }

    /// Drops the content, which ends the turn as aborted. Has no effect on a turn that has started.
    pub(crate) fn cancel(&self) {
        drop(self.take());
    }

    pub(crate) fn downgrade(&self) -> WeakWaiting {
        WeakWaiting(Arc::downgrade(&self.0))
    }
}

impl WeakWaiting {
    /// Whether the turn still waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.upgrade().is_some_and(|content| lock(&content).is_some())
    }

    /// Whether both refer to the same turn.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
