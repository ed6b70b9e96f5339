//! Admission: how many turns run at once, and how many agent processes live.
//!
//! A turn waits in one queue for all that it needs (a place among the turns, and a process if it has none) and gets it at
//! once, so that no turn holds one while it waits for the other. A turn that waits for a person gives its place back and
//! keeps its process; its return comes before new turns. So turns never wait for each other in a circle.
//!
//! Invariants: a place in the queue is taken by the call that asks for it, not when it is first waited for; within a key turns
//! are granted in order, and the keys take turns; what a dropped ticket or permit held goes to the next.

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

/// Admits turns and processes. Clones are the same permits.
#[derive(Clone, Default)]
pub(crate) struct Permits(Arc<Mutex<State>>);

/// As many turns wait already as may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull {
    pub(crate) limit: usize,
}

/// A turn's place: in the queue, then among the turns that run. Dropping it gives the place to the next.
#[derive(Default)]
pub(crate) struct Ticket {
    permits: Permits,
    agent: Arc<str>,
    wait: Option<(u64, oneshot::Receiver<()>)>,
    /// Whether it waits for a process too.
    needs_process: bool,
    /// Whether it holds a place among the turns.
    holds: bool,
    /// Whether it has given its place back while the turn waits for a person.
    released: bool,
    process: Option<ProcessPermit>,
}

/// Leave to have one agent process. Dropping it, when the process is gone, gives it to the next.
pub(crate) struct ProcessPermit {
    permits: Permits,
    agent: Arc<str>,
    id: u64,
}

/// A process that waits for its next turn, and may be closed if another session needs one. Dropping it ends that.
pub(crate) struct Reclaimable<'a> {
    permit: &'a ProcessPermit,
    wanted: CancellationToken,
    accepted: bool,
}

impl Permits {
    /// At most this many turns run at once.
    pub(crate) fn limit_turns(&self, most: NonZeroUsize) {
        self.state().max_turns = Some(most.get());
    }

    /// At most this many agent processes live.
    pub(crate) fn limit_processes(&self, most: NonZeroUsize) {
        self.state().max_processes = Some(most.get());
    }

    /// At most this many turns wait.
    pub(crate) fn limit_queue(&self, most: usize) {
        self.state().max_queued = Some(most);
    }

    /// Takes the next place in the queue, in the line of this key.
    pub(crate) fn enqueue(&self, key: Option<&str>, agent: &str, needs_process: bool) -> Result<Ticket, QueueFull> {
        let ticket = self.enqueue_always(key, agent, needs_process);
        let full = {
            let state = self.state();
            let waits = ticket.wait.as_ref().is_some_and(|(id, _)| state.is_waiting(*id));
            state.max_queued.filter(|limit| waits && state.waiting() > *limit)
        };
        full.map_or(Ok(ticket), |limit| Err(QueueFull { limit }))
    }

    /// The same for a turn that was let in before, or has begun already: it is never refused.
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

    /// Leave for a process that nobody waits for, if there is room beside those that somebody waits for.
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
    /// Waits for all that the turn needs. Can be dropped and called again at any time: the place in the queue stays.
    pub(crate) async fn granted(&mut self) {
        let Some((_, grants)) = &mut self.wait else { return };
        // The sender is kept until the grant, by the queue.
        _ = grants.await;
        self.take_grant();
    }

    /// Whether it waits for its place.
    pub(crate) fn is_waiting(&self) -> bool {
        self.wait.is_some()
    }

    /// Whether it has given its place back, and has it not again.
    pub(crate) fn is_away(&self) -> bool {
        self.released || self.wait.is_some()
    }

    /// The place in the queue, from 1; `None` if it waits no more.
    pub(crate) fn position(&self) -> Option<u64> {
        let (id, _) = self.wait.as_ref()?;
        self.permits.state().position(*id)
    }

    /// Takes the leave for a process that came with the place.
    pub(crate) fn take_process(&mut self) -> Option<ProcessPermit> {
        self.process.take()
    }

    /// Gives the place among the turns back while the turn waits for a person.
    pub(crate) fn release(&mut self) {
        if self.released || (!self.holds && self.wait.is_none()) {
            return;
        }
        let mut state = self.permits.state();
        // It may have been on its way back.
        let is_waiting = self.wait.take().is_some_and(|(id, _)| state.remove(id));
        if !is_waiting {
            state.leave(&self.agent);
        }
        state.agent(&self.agent).awaiting_answers += 1;
        state.advance();
        drop(state);
        (self.holds, self.released) = (false, true);
    }

    /// Waits for the place again, before new turns.
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

    /// Takes the place again at once, since the agent works on already: for that long there may be one more than allowed.
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
    /// Notes that the process waits for its next turn: it may be wanted by others, those first that have waited longest.
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
    /// Returns when another session needs a process, and this one is to be closed for it.
    pub(crate) async fn reclaim_requested(&self) {
        self.wanted.cancelled().await;
    }

    /// The process is closed, so that another one can take its place.
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
            .field("waits", &self.wait.is_some())
            .field("holds", &self.holds)
            .finish_non_exhaustive()
    }
}
