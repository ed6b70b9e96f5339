//! What a permits knows, and who is next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What a runtime does now ([`Runtime::stats`](crate::Runtime::stats)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeStats {
    /// All agents together.
    pub total: AgentStats,
    /// By the agent's name.
    pub agents: BTreeMap<String, AgentStats>,
}

/// What a runtime does with one agent now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentStats {
    /// CLI processes that live, or are being started or ended.
    pub live_processes: usize,
    /// Those among them that wait for their session's next turn and may be closed.
    pub idle_processes: usize,
    /// Runs and turns that hold a place.
    pub running_turns: usize,
    /// Runs and turns that wait for a place, or for a process.
    pub waiting_turns: usize,
    /// Turns that have given their place back while they wait for an answer of a person.
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

/// A turn that waits.
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
    /// Turns that held a place before.
    returning: VecDeque<Waiter>,
    /// New turns by their keys; the key in front is the next. No line is empty.
    lines: VecDeque<(Box<str>, VecDeque<Waiter>)>,
    /// Processes that may be closed, the least recently used first.
    idle: BTreeMap<u64, (u64, CancellationToken)>,
    /// Processes that are being closed for others.
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
        match self.lines.iter_mut().find(|(of, _)| &**of == key) {
            Some((_, line)) => line.push_back(waiter),
            None => self.lines.push_back((key.into(), VecDeque::from([waiter]))),
        }
    }

    pub(super) fn push_returning(&mut self, waiter: Waiter) {
        self.agent(&waiter.agent).waiting_turns += 1;
        self.returning.push_back(waiter);
    }

    /// Takes a waiter out; false if it does not wait any more.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let Some(waiter) = self.find(id) else { return false };
        self.counted_out(&waiter);
        self.advance();
        true
    }

    fn find(&mut self, id: u64) -> Option<Waiter> {
        if let Some(at) = self.returning.iter().position(|waiter| waiter.id == id) {
            return self.returning.remove(at);
        }
        let find = |(line, at): (usize, &VecDeque<Waiter>)| Some((line, at.iter().position(|waiter| waiter.id == id)?));
        let (line, at) = self.lines.iter().map(|(_, line)| line).enumerate().find_map(find)?;
        let waiter = self.lines.get_mut(line)?.1.remove(at);
        self.lines.retain(|(_, line)| !line.is_empty());
        waiter
    }

    fn counted_out(&mut self, waiter: &Waiter) {
        let stats = self.agent(&waiter.agent);
        stats.waiting_turns = stats.waiting_turns.saturating_sub(1);
    }

    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.all_waiting().any(|waiter| waiter.id == id)
    }

    /// How many new turns wait.
    pub(super) fn waiting(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    fn all_waiting(&self) -> impl Iterator<Item = &Waiter> {
        self.returning.iter().chain(self.lines.iter().flat_map(|(_, line)| line))
    }

    /// The place of a waiter, from 1, as if one after the other were let in.
    pub(super) fn position(&self, id: u64) -> Option<u64> {
        let place_in = |line: &VecDeque<Waiter>| line.iter().position(|waiter| waiter.id == id);
        let before = if let Some(at) = place_in(&self.returning) {
            at
        } else {
            let find = |(line, (_, waiters)): (usize, &(Box<str>, VecDeque<Waiter>))| Some((line, place_in(waiters)?));
            let (own, at) = self.lines.iter().enumerate().find_map(find)?;
            // Each key in front of its own has one more turn before it.
            let others = self.lines.iter().enumerate().filter(|(line, _)| *line != own);
            let rounds = |line: usize| at + usize::from(line < own);
            let ahead: usize = others.map(|(line, (_, waiters))| waiters.len().min(rounds(line))).sum();
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

    /// A turn does not wait for a person any more.
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

    /// The process is used again, or it is closed: `accepted` if that is because another one is wanted.
    pub(super) fn remove_idle(&mut self, id: u64, agent: &Arc<str>, accepted: bool) {
        self.idle.retain(|_, (of, _)| *of != id);
        if !accepted {
            self.closing.remove(&id);
        }
        let stats = self.agent(agent);
        stats.idle_processes = stats.idle_processes.saturating_sub(1);
    }

    /// Whether there may be a process for which nobody waits.
    pub(super) fn has_spare_process(&self) -> bool {
        self.max_processes.is_none_or(|most| self.processes + self.wanting_processes() < most)
    }

    fn wanting_processes(&self) -> usize {
        self.all_waiting().filter(|waiter| waiter.needs_process).count()
    }

    fn has_place(&self) -> bool {
        self.max_turns.is_none_or(|most| self.turns < most)
    }

    fn has_process(&self) -> bool {
        self.max_processes.is_none_or(|most| self.processes < most)
    }

    /// Lets in all that can be, and has idle processes closed for those that cannot.
    pub(super) fn advance(&mut self) {
        while self.has_place()
            && let Some(waiter) = self.next()
        {
            self.counted_out(&waiter);
            self.enter(&waiter.agent);
            if waiter.needs_process {
                self.add_process(&waiter.agent);
            }
            // A ticket that is dropped meanwhile finds that it was let in, and gives all of it back.
            _ = waiter.granted.send(());
        }
        self.close_idle();
    }

    /// The next that can be let in. Its key goes behind the others.
    fn next(&mut self) -> Option<Waiter> {
        if let Some(waiter) = self.returning.pop_front() {
            return Some(waiter);
        }
        let has_process = self.has_process();
        let can = |waiter: &Waiter| has_process || !waiter.needs_process;
        let find =
            |(line, (_, waiters)): (usize, &(Box<str>, VecDeque<Waiter>))| Some((line, waiters.iter().position(can)?));
        let (line, at) = self.lines.iter().enumerate().find_map(find)?;
        let (key, mut waiters) = self.lines.remove(line)?;
        let waiter = waiters.remove(at);
        if !waiters.is_empty() {
            self.lines.push_back((key, waiters));
        }
        waiter
    }

    fn close_idle(&mut self) {
        let Some(most) = self.max_processes else { return };
        let places = self.max_turns.map_or(usize::MAX, |most| most.saturating_sub(self.turns));
        let wanted = self.wanting_processes().min(places);
        let coming = most.saturating_sub(self.processes) + self.closing.len();
        for _ in coming..wanted {
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
