//! Permits: limits on the number of concurrent turns and of agent processes.
//!
//! A turn waits in one queue for a turn permit and, if it has no process, for a process permit. It gets both at once, so that
//! no turn holds one while it waits for the other. A turn that waits for an answer of the caller releases its turn permit and
//! keeps its process; it gets a turn permit again before new turns. So no turns wait for each other in a cycle.
//!
//! Invariants: the call that enqueues a turn determines its place, even if the turn is first polled later. Within a key, turns
//! are granted in order; the keys alternate. The next turn gets what a dropped ticket or permit held.

mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use state::{AgentStats, RuntimeStats};
use state::{State, Waiter};

/// Grants permits for turns and processes. Clones share the limits.
#[derive(Clone, Default)]
pub(crate) struct Permits(Arc<Mutex<State>>);

/// The maximum number of turns is waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull {
    pub(crate) limit: usize,
}

/// The ticket of a turn: its place in the queue, and then its turn permit. Dropping it releases both.
#[derive(Default)]
pub(crate) struct Ticket {
    permits: Permits,
    agent: Arc<str>,
    wait: Option<(u64, oneshot::Receiver<()>)>,
    /// Whether the turn waits for a process permit too.
    needs_process: bool,
    /// Whether the ticket holds a turn permit.
    holds: bool,
    /// Whether the turn permit is released while the turn waits for an answer of the caller.
    released: bool,
    process: Option<ProcessPermit>,
}

/// A permit for one agent process. Drop it when the process is gone.
pub(crate) struct ProcessPermit {
    permits: Permits,
    agent: Arc<str>,
    id: u64,
}

/// An idle process that may be closed if another session needs a permit. Dropping this means that the process is in use again.
pub(crate) struct Reclaimable<'a> {
    permit: &'a ProcessPermit,
    wanted: CancellationToken,
    accepted: bool,
}

impl Permits {
    /// Limits the number of concurrent turns.
    pub(crate) fn limit_turns(&self, max: NonZeroUsize) {
        self.state().max_turns = Some(max.get());
    }

    /// Limits the number of agent processes.
    pub(crate) fn limit_processes(&self, max: NonZeroUsize) {
        self.state().max_processes = Some(max.get());
    }

    /// Limits the number of waiting turns.
    pub(crate) fn limit_queue(&self, max: usize) {
        self.state().max_queued = Some(max);
    }

    /// Adds a turn to the queue of this key.
    ///
    /// # Errors
    /// The maximum number of turns is waiting.
    pub(crate) fn enqueue(&self, key: Option<&str>, agent: &str, needs_process: bool) -> Result<Ticket, QueueFull> {
        let ticket = self.enqueue_always(key, agent, needs_process);
        let full = {
            let state = self.state();
            let waits = ticket.wait.as_ref().is_some_and(|(id, _)| state.is_waiting(*id));
            state.max_queued.filter(|limit| waits && state.waiting() > *limit)
        };
        full.map_or(Ok(ticket), |limit| Err(QueueFull { limit }))
    }

    /// Adds a turn that was admitted before or that already runs. Never fails.
    pub(crate) fn enqueue_always(&self, key: Option<&str>, agent: &str, needs_process: bool) -> Ticket {
        let agent: Arc<str> = agent.into();
        let mut state = self.state();
        let (granted, grants) = oneshot::channel();
        let id = state.new_id();
        state.push(key.unwrap_or_default(), Waiter { id, needs_process, agent: Arc::clone(&agent), granted });
        state.advance();
        let (permits, wait) = (self.clone(), Some((id, grants)));
        Ticket { permits, agent, wait, needs_process, holds: false, released: false, process: None }
    }

    /// Returns a permit for a process that is started early. `None` if the waiting turns need the remaining permits.
    pub(crate) fn try_acquire_process(&self, agent: &str) -> Option<ProcessPermit> {
        let mut state = self.state();
        if !state.has_spare_process() {
            return None;
        }
        let agent: Arc<str> = agent.into();
        state.add_process(&agent);
        let id = state.new_id();
        Some(ProcessPermit { permits: self.clone(), agent, id })
    }

    pub(crate) fn stats(&self) -> RuntimeStats {
        self.state().stats()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Waits until the turn is admitted. Cancel safe: the turn keeps its place in the queue.
    pub(crate) async fn granted(&mut self) {
        let Some((_, grants)) = &mut self.wait else { return };
        // The queue keeps the sender until it grants the turn.
        _ = grants.await;
        self.take_grant();
    }

    /// Whether the turn waits in the queue.
    pub(crate) fn is_waiting(&self) -> bool {
        self.wait.is_some()
    }

    /// Whether the turn permit is released, and not acquired again.
    pub(crate) fn is_away(&self) -> bool {
        self.released || self.wait.is_some()
    }

    /// Returns the position in the queue, starting at 1. `None` if the turn does not wait.
    pub(crate) fn position(&self) -> Option<u64> {
        let (id, _) = self.wait.as_ref()?;
        self.permits.state().position(*id)
    }

    /// Takes the process permit that was granted with the turn.
    pub(crate) fn take_process(&mut self) -> Option<ProcessPermit> {
        self.process.take()
    }

    /// Releases the turn permit while the turn waits for an answer of the caller.
    pub(crate) fn release(&mut self) {
        if self.released || (!self.holds && self.wait.is_none()) {
            return;
        }
        let mut state = self.permits.state();
        // The ticket may be waiting to acquire the permit again.
        let is_waiting = self.wait.take().is_some_and(|(id, _)| state.remove(id));
        if !is_waiting {
            state.leave(&self.agent);
        }
        state.agent(&self.agent).awaiting_answers += 1;
        state.advance();
        drop(state);
        (self.holds, self.released) = (false, true);
    }

    /// Enqueues the turn again after an answer, before new turns.
    pub(crate) fn requeue(&mut self) {
        if !std::mem::take(&mut self.released) {
            return;
        }
        let mut state = self.permits.state();
        let (granted, grants) = oneshot::channel();
        let id = state.new_id();
        state.answered(&self.agent);
        state.push_returning(Waiter { id, needs_process: false, agent: Arc::clone(&self.agent), granted });
        state.advance();
        drop(state);
        (self.wait, self.needs_process) = (Some((id, grants)), false);
    }

    /// Acquires the turn permit again at once, because the agent already works. There may be one more turn than allowed meanwhile.
    pub(crate) fn reacquire_now(&mut self) {
        if std::mem::take(&mut self.released) {
            let mut state = self.permits.state();
            state.answered(&self.agent);
            state.enter(&self.agent);
            drop(state);
            self.holds = true;
        }
    }

    fn take_grant(&mut self) {
        if self.wait.take().is_some() {
            self.holds = true;
            if std::mem::take(&mut self.needs_process) {
                let id = self.permits.state().new_id();
                let (permits, agent) = (self.permits.clone(), Arc::clone(&self.agent));
                self.process = Some(ProcessPermit { permits, agent, id });
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((id, _)) = &self.wait {
            let was_granted = !self.permits.state().remove(*id);
            if was_granted {
                self.take_grant();
            } else {
                self.wait = None;
                return;
            }
        }
        self.process = None;
        let mut state = self.permits.state();
        if self.holds {
            state.leave(&self.agent);
            state.advance();
        } else if self.released {
            state.answered(&self.agent);
        }
    }
}

impl ProcessPermit {
    /// Marks the process as idle. If other sessions need permits, the processes that were idle longest are reclaimed first.
    pub(crate) fn idle(&self) -> Reclaimable<'_> {
        let wanted = CancellationToken::new();
        let mut state = self.permits.state();
        state.add_idle(self.id, &self.agent, wanted.clone());
        state.advance();
        Reclaimable { permit: self, wanted, accepted: false }
    }
}

impl Drop for ProcessPermit {
    fn drop(&mut self) {
        let mut state = self.permits.state();
        state.remove_process(self.id, &self.agent);
        state.advance();
    }
}

impl Reclaimable<'_> {
    /// Waits until another session needs the permit of this process. Cancel safe.
    pub(crate) async fn reclaim_requested(&self) {
        self.wanted.cancelled().await;
    }

    /// Agrees to close the process, so that another session gets its permit.
    pub(crate) fn accept(mut self) {
        self.accepted = true;
    }
}

impl Drop for Reclaimable<'_> {
    fn drop(&mut self) {
        let mut state = self.permit.permits.state();
        state.remove_idle(self.permit.id, &self.permit.agent, self.accepted);
        state.advance();
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Permits").field(&self.stats()).finish()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Ticket")
            .field("is_waiting", &self.wait.is_some())
            .field("holds", &self.holds)
            .finish_non_exhaustive()
    }
}
