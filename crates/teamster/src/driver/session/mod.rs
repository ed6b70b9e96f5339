//! Drives a session: its turns in order, on one process if the agent has a live interface, otherwise on a process for each turn.
//!
//! A process is started when the session is opened, and when a turn finds none. After a turn it waits for the next one. If it
//! exits, the next turn starts another process, which resumes the conversation. At the end the process is asked to exit, and
//! its tree is killed.
//!
//! Invariant: every turn that started ends in one `done`; every other turn is aborted.

mod state;
mod turn;

use std::sync::Arc;

use teamster_agents::agent::{Agent, Feature, Support};
use teamster_types::event::{Failure, LeftProcess, SessionId, Warning};
use teamster_types::request::Conversation;
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

use self::state::SessionState;
use super::budget::Budget;
use super::host::Host;
use super::process::IdleProcess;
use super::process_order::ProcessOrder;
use super::session_queue::{NextOrder, SessionQueue, StartedTurn};
use super::warm_pool::WarmPool;
use crate::events::stamped::RunIdentity;
use crate::live::LiveRun;
use crate::permits::{Permits, ProcessPermit, Reclaimable, Ticket};
use crate::run::Run;
use crate::turns::list::Turns;
use crate::turns::stop::StopTokens;

/// The maximum number of turns that the agent started by itself and that the caller has not taken.
pub(crate) const MAX_AGENT_TURNS: usize = 16;

/// A session to drive.
pub(crate) struct SessionJob {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) host: Host,
    pub(crate) permits: Permits,
    pub(crate) queue: SessionQueue,
    pub(crate) budget: Budget,
    /// Whether each turn has a process of its own, even if the agent has a live interface.
    pub(crate) process_per_turn: bool,
    /// Why no turn can start: the conversation belongs to another directory.
    pub(crate) refused: Option<Failure>,
    /// Warnings about the request, emitted with the first turn.
    pub(crate) warnings: Vec<Warning>,
    /// Where the conversation's id is reported.
    pub(crate) session_id: watch::Sender<Option<SessionId>>,
    pub(crate) stop: StopTokens,
    pub(crate) live: LiveRun,
    /// Where turns are reported that the agent starts by itself. `None` if it may start none.
    pub(crate) agent_turns: Option<mpsc::Sender<Run>>,
    /// The turns as the caller sees them.
    pub(crate) turns: Turns,
    pub(crate) warm_pool: Option<Arc<WarmPool>>,
    /// The tasks of the warm pool's processes.
    pub(crate) warm_processes: TaskTracker,
    /// How long a process waits for a turn before it is closed.
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) identity: RunIdentity,
}

/// Drives a session to its end.
pub(crate) async fn drive(job: SessionJob) {
    let mut session = SessionDriver {
        job,
        state: SessionState::NoProcess,
        permit: None,
        has_run_turn: false,
        agent_turn_count: 0,
        left: Vec::new(),
    };
    session.drive().await;
    session.close_process().await;
    session.job.live.note_left(&session.left);
}

/// Drives a session.
struct SessionDriver {
    job: SessionJob,
    state: SessionState<IdleProcess>,
    /// The permit for the session's process, while it has one.
    permit: Option<ProcessPermit>,
    has_run_turn: bool,
    agent_turn_count: u64,
    /// Remaining processes of a process that was closed between turns. The next turn reports them.
    left: Vec<LeftProcess>,
}

/// What follows between turns.
enum Next {
    Turn(StartedTurn),
    /// A turn that the agent has started by itself.
    AgentTurn,
    /// The process has exited or is unusable.
    ProcessExited,
    /// The process must be closed: it was idle for long, another session needs one, or another one must resume the conversation.
    CloseProcess,
    /// The session ends.
    End,
}

impl SessionDriver {
    async fn drive(&mut self) {
        let stop = self.job.stop.clone();
        self.start_early().await;
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                next = self.next() => next,
            };
            match next {
                Next::Turn(turn) => {
                    let span = turn_span(turn.0.prompt.id.as_deref().unwrap_or_default());
                    Box::pin(self.turn(turn)).instrument(span).await;
                }
                Next::AgentTurn => {
                    // It runs already, so the queue cannot reject it.
                    let key = self.job.queue.request.queue_key.as_deref();
                    let mut ticket = self.job.permits.enqueue_always(key, self.job.agent.name(), false);
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = ticket.granted() => {}
                    }
                    self.job.queue.ticket = ticket;
                    self.agent_turn().instrument(turn_span("own")).await;
                    self.job.queue.ticket = Ticket::default();
                }
                Next::ProcessExited => {
                    let process = self.state.exited();
                    self.close(process).await;
                }
                Next::CloseProcess => {
                    tracing::debug!("the idle process is closed; the next turn resumes the conversation");
                    self.close_process().await;
                }
                Next::End => return,
            }
        }
    }

    /// Waits for what follows between turns.
    async fn next(&mut self) -> Next {
        if self.state.is_steer_turn() {
            if let Some(turn) = self.job.queue.start_steered_turn() {
                return Next::Turn(turn);
            }
            self.state.no_steer_turn();
        }
        let may_close = self.may_close_idle_process();
        let queue = &mut self.job.queue;
        let Some(process) = self.state.process_mut() else {
            return queue.next_turn().await.map_or(Next::End, Next::Turn);
        };
        let mut reclaim = self.permit.as_ref().filter(|_| may_close).map(ProcessPermit::idle);
        let idle_timeout = self.job.idle_timeout.filter(|_| may_close);
        loop {
            // Set by a command, or in a turn that was cancelled in the queue.
            if process.buffer().needs_restart() {
                return Next::CloseProcess;
            }
            let order = tokio::select! {
                biased;
                () = reclaim_requested(reclaim.as_ref()) => {
                    if let Some(reclaim) = reclaim.take() {
                        reclaim.accept();
                    }
                    return Next::CloseProcess;
                }
                () = process.listen() => {
                    // Commands that were ordered before the agent started its turn apply to it.
                    while let Some(command) = queue.pending_command() {
                        process.input(command.input());
                    }
                    return if process.buffer().can_run_agent_turn() { Next::AgentTurn } else { Next::ProcessExited };
                }
                order = queue.next() => order,
                () = elapsed(idle_timeout) => return Next::CloseProcess,
            };
            match order {
                // At once: the agent may start a turn by itself before the next prompt is sent.
                NextOrder::Command(command) => process.input(command.input()),
                NextOrder::Turn(turn) => return Next::Turn(turn),
                NextOrder::Close => return Next::End,
            }
        }
    }

    /// Whether the idle process may be closed: another process must be able to resume the conversation.
    fn may_close_idle_process(&self) -> bool {
        let capabilities = self.job.agent.capabilities();
        let can_resume = capabilities.is_some_and(|can| matches!(can.support(Feature::Resume), Support::Yes(_)));
        let has_id = self.job.session_id.borrow().is_some();
        let is_resumable = self.state.process().is_some_and(|process| process.process().protocol.is_resumable());
        can_resume && (has_id || !self.has_run_turn) && is_resumable && !self.job.queue.request.background_tasks
    }

    /// Returns how the next process continues the conversation.
    fn conversation(&self) -> Conversation {
        let id = self.job.session_id.borrow().clone();
        id.map_or_else(|| self.job.queue.request.conversation.clone(), Conversation::Resume)
    }

    /// Returns what it takes to start a process for this session.
    fn process_order(&self) -> ProcessOrder {
        let mut request = self.job.queue.request.clone();
        request.conversation = self.conversation();
        request.max_session_budget_usd = self.job.budget.left_usd();
        let (agent, host, permits) = (Arc::clone(&self.job.agent), self.job.host.clone(), self.job.permits.clone());
        ProcessOrder { agent, host, request, permits }
    }

    /// Takes a process from the warm pool. Returns `None` if there is none.
    async fn claim_warm_process(&mut self) -> Option<IdleProcess> {
        let pool = self.job.warm_pool.as_ref().filter(|_| !self.job.process_per_turn)?;
        let stop = self.job.stop.clone();
        let order = self.process_order();
        let claimed = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            claimed = pool.claim(&order) => claimed?,
        };
        self.permit = Some(claimed.permit);
        Some(claimed.process)
    }

    /// Starts or claims a process before the first turn, if the limit on processes allows it.
    async fn start_early(&mut self) {
        if self.job.process_per_turn || self.job.refused.is_some() {
            return;
        }
        let process = if let Some(process) = self.claim_warm_process().await {
            Some(process)
        } else {
            let Some(permit) = self.job.permits.try_acquire_process(self.job.agent.name()) else { return };
            // If the start fails, the first turn tries again and reports the failure.
            let process = self.start_until_stopped().await;
            self.permit = process.is_some().then_some(permit);
            process
        };
        let Some(process) = process else { return };
        self.state.started(process);
        if let Some(pool) = &self.job.warm_pool {
            // For the next session with the same request.
            pool.refill(self.process_order(), &self.job.warm_processes);
        }
    }

    /// Starts a process. A stop of the session cancels the start, which kills what it has started.
    async fn start_until_stopped(&mut self) -> Option<IdleProcess> {
        let (order, cancel) = (self.process_order(), CancellationToken::new());
        let mut start = Box::pin(order.start(&cancel));
        let started = tokio::select! {
            biased;
            started = &mut start => started,
            () = self.job.stop.cancelled() => {
                cancel.cancel();
                start.await
            }
        };
        started.ok().flatten()
    }

    /// Closes the idle process, and releases its permit.
    async fn close_process(&mut self) {
        let process = self.state.close();
        self.close(process).await;
    }

    async fn close(&mut self, process: Option<IdleProcess>) {
        if let Some(mut process) = process {
            if self.job.stop.abort.is_cancelled() {
                process.kill_orphans();
            }
            self.left.append(&mut process.close(&self.job.queue.request.limits).await);
        }
        self.permit = None;
    }
}

fn turn_span(turn_id: &str) -> Span {
    tracing::info_span!("turn", turn_id, session_id = tracing::field::Empty)
}

/// Waits until another session needs the process. Waits forever if it must not be closed.
async fn reclaim_requested(reclaim: Option<&Reclaimable<'_>>) {
    match reclaim {
        Some(reclaim) => reclaim.reclaim_requested().await,
        None => std::future::pending().await,
    }
}

/// Waits for this time. `None` waits forever.
async fn elapsed(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}
