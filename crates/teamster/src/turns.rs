//! The turns of a session: which one runs, and which ones wait for it.
//!
//! Invariant: a waiting turn is taken exactly once, by the driver that begins it or by the caller who cancels it. A cancelled
//! turn ends at once, wherever it waits: what it would have needed is dropped, and its stream ends as aborted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use teamster_types::request::Prompt;
use tokio::sync::OwnedSemaphorePermit;

use crate::run::{Control, Outlet};

/// The turns of a session. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    running: Option<Entry>,
    /// In the order in which they will run, as far as that is known.
    waiting: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: Option<String>,
    control: Control,
    content: Weak<Mutex<Option<Content>>>,
}

/// What a turn needs to begin.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) prompt: Prompt,
    pub(crate) outlet: Outlet,
    /// Among the turns that may wait in this session.
    pub(crate) place: OwnedSemaphorePermit,
}

/// The content of a turn that waits, until somebody takes it.
#[derive(Clone, Debug)]
pub(crate) struct Waiting(Arc<Mutex<Option<Content>>>);

/// A turn on its way to the driver. Dropping it ends the turn as aborted.
#[derive(Debug)]
pub(crate) struct TurnOrder {
    waiting: Waiting,
    control: Control,
    id: Option<String>,
}

/// A turn that runs. Dropping it notes its end.
#[derive(Debug)]
pub(crate) struct Running {
    turns: Turns,
    /// The turn that waits for the end of this one.
    outer: Option<Entry>,
}

impl Waiting {
    fn new(content: Content) -> Self {
        Self(Arc::new(Mutex::new(Some(content))))
    }

    /// Cancels the turn, if it waits still.
    pub(crate) fn cancel(&self) {
        drop(self.take());
    }

    fn take(&self) -> Option<Content> {
        lock(&self.0).take()
    }
}

impl TurnOrder {
    /// A turn that can be cancelled through this control.
    pub(crate) fn new(content: Content, control: &mut Control) -> Self {
        let id = content.prompt.id.clone();
        let waiting = Waiting::new(content);
        control.cancel_with(waiting.clone());
        Self { waiting, control: control.clone(), id }
    }

    /// Takes what it needs to begin, so that it can be cancelled no more; `None` if it was cancelled.
    pub(crate) fn take(&self) -> Option<Content> {
        self.waiting.take()
    }

    /// Has it wait again with what was [taken](Self::take).
    pub(crate) fn put_back(&self, content: Content) {
        *lock(&self.waiting.0) = Some(content);
    }

    fn entry(&self) -> Entry {
        let content = Arc::downgrade(&self.waiting.0);
        Entry { id: self.id.clone(), control: self.control.clone(), content }
    }
}

impl Drop for TurnOrder {
    fn drop(&mut self) {
        self.waiting.cancel();
    }
}

impl Entry {
    fn waits(&self) -> bool {
        self.content.upgrade().is_some_and(|content| lock(&content).is_some())
    }
}

impl Turns {
    /// Adds a turn behind those that wait.
    pub(crate) fn push(&self, order: &TurnOrder) {
        let mut list = self.list();
        list.waiting.retain(Entry::waits);
        list.waiting.push_back(order.entry());
    }

    /// Adds a turn before those that wait, if it is not there already.
    pub(crate) fn push_first(&self, order: &TurnOrder) {
        let mut list = self.list();
        let entry = order.entry();
        list.waiting.retain(|other| other.waits() && !other.content.ptr_eq(&entry.content));
        list.waiting.push_front(entry);
    }

    /// Begins a turn; `None` if it was cancelled.
    pub(crate) fn begin(&self, order: &TurnOrder) -> Option<(Content, Running)> {
        let mut list = self.list();
        let content = order.waiting.take()?;
        list.waiting.retain(Entry::waits);
        let outer = list.running.replace(order.entry());
        Some((content, Running { turns: self.clone(), outer }))
    }

    /// Notes that a turn runs that the agent has begun by itself.
    pub(crate) fn begin_own(&self, id: &str, control: Control) -> Running {
        let entry = Entry { id: Some(id.to_owned()), control, content: Weak::new() };
        let outer = self.list().running.replace(entry);
        Running { turns: self.clone(), outer }
    }

    /// Whether a turn runs.
    pub(crate) fn is_running(&self) -> bool {
        self.list().running.is_some()
    }

    /// Interrupts the turn that runs, or else the one that would run next. Returns whether there was one.
    pub(crate) fn interrupt(&self) -> bool {
        self.interrupt_if(|_| true)
    }

    /// Interrupts the turn of this name, whether it runs or waits. Returns whether there was one.
    pub(crate) fn interrupt_named(&self, id: &str) -> bool {
        self.interrupt_if(|entry| entry.id.as_deref() == Some(id))
    }

    fn interrupt_if(&self, wanted: impl Fn(&Entry) -> bool) -> bool {
        let control = {
            let list = self.list();
            let mut entries = list.running.iter().chain(list.waiting.iter().filter(|entry| entry.waits()));
            entries.find(|entry| wanted(entry)).map(|entry| entry.control.clone())
        };
        // Not under the lock: what is dropped with a turn may wake others.
        control.map(|control| control.interrupt()).is_some()
    }

    fn list(&self) -> MutexGuard<'_, List> {
        lock(&self.0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.turns.list().running = self.outer.take();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
