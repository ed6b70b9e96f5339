//! The state of the permits: what is in use, and which turn is next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The numbers of processes and turns of a runtime ([`Runtime::stats`](crate::Runtime::stats)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeStats {
    /// The numbers of all agents together.
    pub total: AgentStats,
    /// The numbers of each agent, by its name.
    pub agents: BTreeMap<String, AgentStats>,
}

/// The numbers of processes and turns of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentStats {
    /// CLI processes that are alive, starting or ending.
    pub live_processes: usize,
    /// Live processes that wait for a turn of their session and may be closed.
    pub idle_processes: usize,
    /// Runs and turns that are running.
    pub running_turns: usize,
    /// Runs and turns that wait in the queue.
    pub waiting_turns: usize,
    /// Turns that wait for an answer of the caller. They do not count as running.
    pub awaiting_answers: usize,
}

impl AgentStats {
    fn add(&mut self, other: Self) {
        self.live_processes += other.live_processes;
        self.idle_processes += other.idle_processes;
        self.running_turns += other.running_turns;
        self.waiting_turns += other.waiting_turns;
        self.awaiting_answers += other.awaiting_answers;
    }
}

/// A waiting turn.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) needs_process: bool,
    pub(super) agent: Arc<str>,
    pub(super) granted: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) max_turns: Option<usize>,
    pub(super) max_processes: Option<usize>,
    pub(super) max_queued: Option<usize>,
    turns: usize,
    processes: usize,
    /// Turns that ran before and wait to continue.
    returning: VecDeque<Waiter>,
    /// New turns by key. The first key is the next one. No queue is empty.
    queues: VecDeque<(Box<str>, VecDeque<Waiter>)>,
    /// Processes that may be closed, the least recently used first.
    idle: BTreeMap<u64, (u64, CancellationToken)>,
    /// Processes that are being closed for other sessions.
    closing: BTreeSet<u64>,
    last_id: u64,
    agents: BTreeMap<Arc<str>, AgentStats>,
}

impl State {
    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn agent(&mut self, agent: &Arc<str>) -> &mut AgentStats {
        self.agents.entry(Arc::clone(agent)).or_default()
    }

    pub(super) fn push(&mut self, key: &str, waiter: Waiter) {
        self.agent(&waiter.agent).waiting_turns += 1;
        match self.queues.iter_mut().find(|(of, _)| &**of == key) {
            Some((_, queue)) => queue.push_back(waiter),
            None => self.queues.push_back((key.into(), VecDeque::from([waiter]))),
        }
    }

    pub(super) fn push_returning(&mut self, waiter: Waiter) {
        self.agent(&waiter.agent).waiting_turns += 1;
        self.returning.push_back(waiter);
    }

    /// Removes a waiting turn. Returns false if it no longer waits.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let Some(waiter) = self.find(id) else { return false };
        self.remove_from_stats(&waiter);
        self.advance();
        true
    }

    fn find(&mut self, id: u64) -> Option<Waiter> {
        if let Some(at) = self.returning.iter().position(|waiter| waiter.id == id) {
            return self.returning.remove(at);
        }
        let find =
            |(queue, at): (usize, &VecDeque<Waiter>)| Some((queue, at.iter().position(|waiter| waiter.id == id)?));
        let (queue, at) = self.queues.iter().map(|(_, queue)| queue).enumerate().find_map(find)?;
        let waiter = self.queues.get_mut(queue)?.1.remove(at);
        self.queues.retain(|(_, queue)| !queue.is_empty());
        waiter
    }

    fn remove_from_stats(&mut self, waiter: &Waiter) {
        let stats = self.agent(&waiter.agent);
        stats.waiting_turns = stats.waiting_turns.saturating_sub(1);
    }

    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.all_waiting().any(|waiter| waiter.id == id)
    }

    /// Returns the number of waiting new turns.
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(|(_, queue)| queue.len()).sum()
    }

    fn all_waiting(&self) -> impl Iterator<Item = &Waiter> {
        self.returning.iter().chain(self.queues.iter().flat_map(|(_, queue)| queue))
    }

    /// Returns the position of a waiting turn, starting at 1, if turns were admitted one after the other.
    pub(super) fn position(&self, id: u64) -> Option<u64> {
        let position_in = |queue: &VecDeque<Waiter>| queue.iter().position(|waiter| waiter.id == id);
        let before = if let Some(at) = position_in(&self.returning) {
            at
        } else {
            let find =
                |(queue, (_, waiters)): (usize, &(Box<str>, VecDeque<Waiter>))| Some((queue, position_in(waiters)?));
            let (own, at) = self.queues.iter().enumerate().find_map(find)?;
            // Each key before its own key is served once more.
            let others = self.queues.iter().enumerate().filter(|(queue, _)| *queue != own);
            let rounds = |queue: usize| at + usize::from(queue < own);
            let ahead: usize = others.map(|(queue, (_, waiters))| waiters.len().min(rounds(queue))).sum();
            self.returning.len() + at + ahead
        };
        u64::try_from(before).ok()?.checked_add(1)
    }

    pub(super) fn enter(&mut self, agent: &Arc<str>) {
        self.turns += 1;
        self.agent(agent).running_turns += 1;
    }

    pub(super) fn leave(&mut self, agent: &Arc<str>) {
        self.turns = self.turns.saturating_sub(1);
        let stats = self.agent(agent);
        stats.running_turns = stats.running_turns.saturating_sub(1);
    }

    /// A turn no longer waits for an answer.
    pub(super) fn answered(&mut self, agent: &Arc<str>) {
        let stats = self.agent(agent);
        stats.awaiting_answers = stats.awaiting_answers.saturating_sub(1);
    }

    pub(super) fn add_process(&mut self, agent: &Arc<str>) {
        self.processes += 1;
        self.agent(agent).live_processes += 1;
    }

    pub(super) fn remove_process(&mut self, id: u64, agent: &Arc<str>) {
        self.closing.remove(&id);
        self.processes = self.processes.saturating_sub(1);
        let stats = self.agent(agent);
        stats.live_processes = stats.live_processes.saturating_sub(1);
    }

    pub(super) fn add_idle(&mut self, id: u64, agent: &Arc<str>, wanted: CancellationToken) {
        let since = self.new_id();
        self.idle.insert(since, (id, wanted));
        self.agent(agent).idle_processes += 1;
    }

    /// Marks an idle process as used again or closed. `accepted` means that it is closed for another session.
    pub(super) fn remove_idle(&mut self, id: u64, agent: &Arc<str>, accepted: bool) {
        self.idle.retain(|_, (of, _)| *of != id);
        if !accepted {
            self.closing.remove(&id);
        }
        let stats = self.agent(agent);
        stats.idle_processes = stats.idle_processes.saturating_sub(1);
    }

    /// Whether a permit is left that no waiting turn needs.
    pub(super) fn has_spare_process(&self) -> bool {
        self.max_processes.is_none_or(|max| self.processes + self.wanting_processes() < max)
    }

    fn wanting_processes(&self) -> usize {
        self.all_waiting().filter(|waiter| waiter.needs_process).count()
    }

    fn has_turn_permit(&self) -> bool {
        self.max_turns.is_none_or(|max| self.turns < max)
    }

    fn has_process_permit(&self) -> bool {
        self.max_processes.is_none_or(|max| self.processes < max)
    }

    /// Admits every turn that can be admitted, and requests idle processes for the others.
    pub(super) fn advance(&mut self) {
        while self.has_turn_permit()
            && let Some(waiter) = self.next()
        {
            self.remove_from_stats(&waiter);
            self.enter(&waiter.agent);
            if waiter.needs_process {
                self.add_process(&waiter.agent);
            }
            // If the ticket is being dropped, its drop finds the grant and releases it.
            _ = waiter.granted.send(());
        }
        self.close_idle();
    }

    /// Removes the next turn that can be admitted. Moves its key behind the others.
    fn next(&mut self) -> Option<Waiter> {
        if let Some(waiter) = self.returning.pop_front() {
            return Some(waiter);
        }
        let has_process = self.has_process_permit();
        let can = |waiter: &Waiter| has_process || !waiter.needs_process;
        let find = |(queue, (_, waiters)): (usize, &(Box<str>, VecDeque<Waiter>))| {
            Some((queue, waiters.iter().position(can)?))
        };
        let (queue, at) = self.queues.iter().enumerate().find_map(find)?;
        let (key, mut waiters) = self.queues.remove(queue)?;
        let waiter = waiters.remove(at);
        if !waiters.is_empty() {
            self.queues.push_back((key, waiters));
        }
        waiter
    }

    fn close_idle(&mut self) {
        let Some(max) = self.max_processes else { return };
        let turns = self.max_turns.map_or(usize::MAX, |max| max.saturating_sub(self.turns));
        let wanted = self.wanting_processes().min(turns);
        let available = max.saturating_sub(self.processes) + self.closing.len();
        for _ in available..wanted {
            let Some((_, (id, token))) = self.idle.pop_first() else { return };
            self.closing.insert(id);
            token.cancel();
        }
    }

    pub(super) fn stats(&self) -> RuntimeStats {
        let mut stats = RuntimeStats::default();
        for (agent, of_agent) in self.agents.iter().filter(|(_, stats)| **stats != AgentStats::default()) {
            stats.total.add(*of_agent);
            stats.agents.insert(agent.to_string(), *of_agent);
        }
        stats
    }
}
