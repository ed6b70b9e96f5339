//! The list of a session's turns: the running one, and the waiting ones.
//!
//! Invariant: a waiting turn is taken exactly once, by the driver that starts it or by the caller that cancels it. A
//! cancelled turn ends at once, wherever it waits: its content is dropped, and its stream ends as aborted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::control::Control;
use super::waiting::{Content, Waiting, WeakWaiting};

/// The turns of a session. Clones share the list.
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
    content: WeakWaiting,
}

/// A turn on its way to the driver. Dropping it ends the turn as aborted.
#[derive(Debug)]
pub(crate) struct TurnOrder {
    waiting: Waiting,
    control: Control,
    id: Option<String>,
}

/// A running turn. Dropping it removes it from the list.
#[derive(Debug)]
pub(crate) struct Running {
    turns: Turns,
    /// The turn that waits for the end of this one.
    outer: Option<Entry>,
}

impl TurnOrder {
    /// Creates a turn that this control can cancel.
    pub(crate) fn new(content: Content, control: &mut Control) -> Self {
        let id = content.prompt.id.clone();
        let waiting = Waiting::new(content);
        control.cancel_with(waiting.clone());
        Self { waiting, control: control.clone(), id }
    }

    /// Takes the content, so that the turn can no longer be cancelled. Returns `None` if it was cancelled before.
    pub(crate) fn take(&self) -> Option<Content> {
        self.waiting.take()
    }

    /// Makes the turn wait again with [taken](Self::take) content.
    pub(crate) fn put_back(&self, content: Content) {
        self.waiting.put_back(content);
    }

    fn entry(&self) -> Entry {
        Entry { id: self.id.clone(), control: self.control.clone(), content: self.waiting.downgrade() }
    }
}

impl Drop for TurnOrder {
    fn drop(&mut self) {
        self.waiting.cancel();
    }
}

impl Entry {
    fn is_waiting(&self) -> bool {
        self.content.is_waiting()
    }
}

impl Turns {
    /// Adds a turn after the waiting ones.
    pub(crate) fn push(&self, order: &TurnOrder) {
        let mut list = self.list();
        list.waiting.retain(Entry::is_waiting);
        list.waiting.push_back(order.entry());
    }

    /// Adds a turn before the waiting ones, or moves it there.
    pub(crate) fn push_first(&self, order: &TurnOrder) {
        let mut list = self.list();
        let entry = order.entry();
        list.waiting.retain(|other| other.is_waiting() && !other.content.is_same(&entry.content));
        list.waiting.push_front(entry);
    }

    /// Starts a turn. Returns `None` if it was cancelled.
    pub(crate) fn start(&self, order: &TurnOrder) -> Option<(Content, Running)> {
        let mut list = self.list();
        let content = order.waiting.take()?;
        list.waiting.retain(Entry::is_waiting);
        let outer = list.running.replace(order.entry());
        Some((content, Running { turns: self.clone(), outer }))
    }

    /// Adds a running turn that the agent started by itself.
    pub(crate) fn start_agent_turn(&self, id: &str, control: Control) -> Running {
        let entry = Entry { id: Some(id.to_owned()), control, content: WeakWaiting::default() };
        let outer = self.list().running.replace(entry);
        Running { turns: self.clone(), outer }
    }

    /// Whether a turn runs.
    pub(crate) fn is_running(&self) -> bool {
        self.list().running.is_some()
    }

    /// Cancels the waiting turns. Returns their number.
    pub(crate) fn cancel_waiting(&self) -> usize {
        let waiting = std::mem::take(&mut self.list().waiting);
        // Without the lock: dropping a turn can wake other tasks.
        waiting.iter().filter(|entry| entry.is_waiting()).map(|entry| entry.control.cancel()).count()
    }

    /// Interrupts the running turn, or the next one if none runs. Returns false if there is none.
    pub(crate) fn interrupt(&self) -> bool {
        self.interrupt_if(|_| true)
    }

    /// Interrupts the turn with this id, running or waiting. Returns false if there is none.
    pub(crate) fn interrupt_named(&self, id: &str) -> bool {
        self.interrupt_if(|entry| entry.id.as_deref() == Some(id))
    }

    fn interrupt_if(&self, wanted: impl Fn(&Entry) -> bool) -> bool {
        let control = {
            let list = self.list();
            let mut entries = list.running.iter().chain(list.waiting.iter().filter(|entry| entry.is_waiting()));
            entries.find(|entry| wanted(entry)).map(|entry| entry.control.clone())
        };
        // Without the lock: dropping a turn can wake other tasks.
        control.map(|control| control.interrupt()).is_some()
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.turns.list().running = self.outer.take();
    }
}
