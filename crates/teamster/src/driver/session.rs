//! A session: turns in order, on one process where the agent has a form that lives, else each as a run of its own.
//!
//! Order: a process is started when the session is opened and when there is none; a turn ends when the agent has given its
//! word on it, and the process lives on; if the process is gone, the next turn goes on with the conversation in another
//! one. At the end the process is asked to exit, and then ended with its tree.
//!
//! Invariant: every turn that was taken ends in one `done`; every turn that was not is aborted.

use std::pin::pin;
use std::sync::Arc;

use teamster_agents::agent::{Agent, Feature, Plan, Support};
use teamster_agents::protocol::{Action, Command, Input, Protocol};
use teamster_agents::transcript::Cause;
use teamster_types::event::{ErrorCode, Failure, LeftProcess, SessionId, SteerId, Warning, WarningCode};
use teamster_types::request::{Conversation, Prompt};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use super::attempts::{attempt, not_planned};
use super::budget::Budget;
use super::desk::{Asked, Begun, Between, Desk};
use super::live::{Opening, attend};
use super::outbox::{Bounds, Outbox};
use super::pool::{Order, Pool};
use super::process::{Ended, Then};
use super::warm::Warm;
use super::{Host, Story, start, wait_in_queue};
use crate::events::stamped::RunIdentity;
use crate::permits::{Permits, ProcessPermit, QueueFull, Reclaimable, Ticket};
use crate::run::{Outlet, Run};
use crate::runtime::plan;
use crate::turns::{Content, Running, Turns};

/// Turns that the agent has begun by itself, and nobody has taken.
pub(crate) const OWN_TURNS: usize = 16;

/// A session to be driven.
pub(crate) struct SessionJob {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) host: Host,
    pub(crate) permits: Permits,
    pub(crate) desk: Desk,
    pub(crate) budget: Budget,
    /// Each turn is a run of its own, though the agent may have a form that lives.
    pub(crate) spawns: bool,
    /// What is to be said with the first turn.
    pub(crate) warnings: Vec<Warning>,
    /// Where the conversation's id is told.
    pub(crate) told: watch::Sender<Option<SessionId>>,
    pub(crate) aborted: CancellationToken,
    /// Where turns are told that the agent begins by itself, if it may.
    pub(crate) own: Option<mpsc::Sender<Run>>,
    /// How many turns the agent has begun by itself.
    pub(crate) own_count: u64,
    /// What the caller sees of the turns.
    pub(crate) turns: Turns,
    /// Where spare processes wait, if there are any.
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) tasks: TaskTracker,
    /// How long a process waits for a turn before it is closed.
    pub(crate) idle_timeout: Option<Duration>,
    /// Leave for this session's process, while it has one.
    pub(crate) permit: Option<ProcessPermit>,
    /// Whether the agent has had a turn.
    pub(crate) has_spoken: bool,
    /// Processes that outlived one that was closed between turns; the next turn reports them.
    pub(crate) outlived: Vec<LeftProcess>,
    pub(crate) identity: RunIdentity,
}

/// Drives a session to its end.
pub(crate) async fn drive(mut job: SessionJob) {
    let aborted = job.aborted.clone();
    let mut warm = job.open_early().await;
    if warm.is_some() {
        job.refill();
    }
    let mut lost = false;
    loop {
        let turn = tokio::select! {
            biased;
            () = aborted.cancelled() => break,
            turn = job.next(&mut warm) => turn,
        };
        match turn {
            Next::Turn(turn) => {
                let span = turn_span(turn.0.prompt.id.as_deref().unwrap_or_default());
                Box::pin(job.turn(turn, &mut warm, &mut lost)).instrument(span).await;
            }
            Next::Unasked => {
                // It runs already, so that it cannot be refused.
                let mut ticket =
                    job.permits.enqueue_always(job.desk.frame.queue_key.as_deref(), job.agent.name(), false);
                tokio::select! {
                    biased;
                    () = aborted.cancelled() => break,
                    () = ticket.granted() => {}
                }
                job.desk.place = ticket;
                let span = turn_span("own");
                job.next_agent_turn(&mut warm, &mut lost).instrument(span).await;
                job.desk.place = Ticket::default();
            }
            Next::Gone => {
                lost = true;
                job.close_process(&mut warm).await;
            }
            Next::Idle => {
                tracing::debug!("the idle process is closed; the next turn resumes the conversation");
                job.close_process(&mut warm).await;
            }
            Next::Close => break,
        }
    }
    job.close_process(&mut warm).await;
}

fn turn_span(turn_id: &str) -> Span {
    tracing::info_span!("turn", turn_id, session_id = tracing::field::Empty)
}

/// What comes next, between turns.
enum Next {
    Turn(Begun),
    /// The agent has begun one by itself.
    Unasked,
    /// The process is gone, or is no good any more.
    Gone,
    /// The process has been idle for long, or another session needs one.
    Idle,
    Close,
}

impl SessionJob {
    async fn next(&mut self, warm: &mut Option<Warm>) -> Next {
        let Some(Warm { process, protocol, kept, begun, .. }) = warm else {
            return self.desk.turn().await.map_or(Next::Close, Next::Turn);
        };
        if *begun && let Some(turn) = self.desk.steered_too_late() {
            return Next::Turn(turn);
        }
        // A conversation must not be lost with its process.
        let is_resumable = (self.told.borrow().is_some() || !self.has_spoken)
            && protocol.is_resumable()
            && !self.desk.frame.background_tasks
            && self.agent.capabilities().is_some_and(|can| matches!(can.support(Feature::Resume), Support::Yes(_)));
        let mut idle = self.permit.as_ref().filter(|_| is_resumable).map(ProcessPermit::idle);
        let until = self.idle_timeout.filter(|_| is_resumable);
        loop {
            // Maybe since a turn that was cancelled in the queue.
            if kept.reopen {
                return Next::Idle;
            }
            let next = tokio::select! {
                biased;
                () = wanted(idle.as_ref()) => {
                    if let Some(idle) = idle.take() {
                        idle.accept();
                    }
                    return Next::Idle;
                }
                () = process.idle(&mut **protocol, kept) => {
                    // An order that was given before the agent began is not passed over.
                    while let Some(change) = self.desk.change_now() {
                        process.tell(&mut **protocol, kept, change.command());
                    }
                    return if kept.begins() { Next::Unasked } else { Next::Gone };
                }
                next = self.desk.turn_or_change() => next,
                () = elapsed(until) => return Next::Idle,
            };
            match next {
                // At once: the agent may begin a turn by itself before the next one is sent.
                Between::Change(change) => process.tell(&mut **protocol, kept, change.command()),
                Between::Turn(turn) => return turn.map_or(Next::Close, Next::Turn),
            }
        }
    }

    /// How to go on with the conversation.
    fn conversation(&self) -> Conversation {
        self.told.borrow().clone().map_or_else(|| self.desk.frame.conversation.clone(), Conversation::Resume)
    }

    /// What it takes to start a process for this session.
    fn order(&self) -> Order {
        let mut frame = self.desk.frame.clone();
        frame.conversation = self.conversation();
        frame.max_session_budget_usd = self.budget.left_usd();
        Order { agent: Arc::clone(&self.agent), host: self.host.clone(), frame, permits: self.permits.clone() }
    }

    /// Starts a process that waits for a turn; `None` where the agent has none that waits.
    async fn open(&self, stop: &CancellationToken) -> Result<Option<Warm>, Failure> {
        let Order { agent, host, frame, .. } = self.order();
        Box::pin(Warm::start(&*agent, host, &frame, stop)).await
    }

    /// Takes a spare process, if there is one.
    async fn claim(&mut self) -> Option<Warm> {
        let pool = self.pool.as_ref().filter(|_| !self.spawns)?;
        let mut spare = pool.claim(&self.order()).await?;
        self.permit = spare.permit.take();
        Some(spare)
    }

    /// A process before the first turn, if there is room for it.
    async fn open_early(&mut self) -> Option<Warm> {
        if self.spawns {
            return None;
        }
        if let Some(spare) = self.claim().await {
            return Some(spare);
        }
        self.permit = Some(self.permits.try_acquire_process(self.agent.name())?);
        let aborted = self.aborted.clone();
        let warm = self.open(&aborted).await.ok().flatten();
        if warm.is_none() {
            self.permit = None;
        }
        warm
    }

    /// Closes the process that waits for a turn, and lets others have one.
    async fn close_process(&mut self, warm: &mut Option<Warm>) {
        if let Some(warm) = warm.take() {
            self.outlived.append(&mut warm.close(&self.desk.frame.limits).await);
        }
        self.permit = None;
    }

    /// Waits in the queue for all that a turn needs. `Some` if it does not begin.
    async fn admit(&mut self, story: &mut Story, outlet: &Outlet, warm: &mut Option<Warm>) -> Option<Cause> {
        if warm.is_none() {
            *warm = self.claim().await;
        }
        let key = self.desk.frame.queue_key.as_deref();
        let mut ticket = match self.permits.enqueue(key, self.agent.name(), self.permit.is_none()) {
            Ok(ticket) => ticket,
            Err(QueueFull { limit }) => {
                let text = format!("{limit} turns wait for a place already, as many as may wait");
                let mut failure = Failure::new(ErrorCode::QueueFull, text);
                failure.retryable = Some(true);
                return Some(Cause::Failed(failure));
            }
        };
        // One that is let in at once begins with what was ordered before it.
        let waited = ticket.position().is_some();
        let mut changes = Vec::new();
        let stopped = tokio::select! {
            biased;
            stopped = wait_in_queue(&mut ticket, story, outlet) => stopped,
            () = self.desk.take_orders(&mut changes) => true,
        };
        if let Some(permit) = ticket.take_process() {
            self.permit = Some(permit);
        }
        self.desk.place = ticket;
        if waited {
            // Also for a turn that does not begin: it is the process that has to know.
            self.take_changes(changes, warm);
        }
        if !stopped
            && warm.as_ref().is_some_and(|warm| warm.kept.reopen && !warm.begun)
            && let Some(warm) = warm.take()
        {
            // Its place is for the process that replaces it.
            self.outlived.append(&mut warm.close(&self.desk.frame.limits).await);
        }
        story.started = Instant::now();
        stopped.then_some(Cause::Aborted)
    }

    /// Has what was ordered while a turn waited in the queue hold for this turn, which has not begun, and for those after it.
    fn take_changes(&mut self, mut changes: Vec<Asked>, warm: &mut Option<Warm>) {
        changes.extend(std::iter::from_fn(|| self.desk.change_now()));
        for change in changes {
            // Without a process, the next one is started as it was ordered.
            if let Some(Warm { process, protocol, kept, .. }) = warm {
                process.tell(&mut **protocol, kept, change.command());
            }
        }
    }

    /// Has a spare process started, for the next session like this one.
    fn refill(&self) {
        if let Some(pool) = &self.pool {
            pool.refill(self.order(), &self.tasks);
        }
    }

    /// Takes a turn, from its place among the runs to its `done`.
    async fn turn(&mut self, begun: Begun, warm: &mut Option<Warm>, lost: &mut bool) {
        let (Content { prompt, outlet, place: waited }, running) = begun;
        drop(waited);
        let limits = self.desk.frame.limits.clone();
        let outbox = Outbox::new(outlet.events.clone(), outlet.estate.clone(), Bounds::of(&limits));
        let mut story = Story::new(Box::new(Mute), Arc::default(), outbox, self.host.recording.clone());
        story.callers = self.host.callers.next_turn();
        story.budget = self.budget.clone();
        for warning in self.warnings.drain(..) {
            story.say(warning.into());
        }
        if let Some(failure) = self.budget.refusal() {
            drop(running);
            return story.end(&Ended::by(Cause::Failed(failure)));
        }
        let refused = self.admit(&mut story, &outlet, warm).await;
        // One that the agent has begun by itself has to be stopped.
        if let Some(cause) = refused.filter(|_| !warm.as_ref().is_some_and(|warm| warm.begun)) {
            self.desk.place = Ticket::default();
            if warm.is_none() {
                self.permit = None;
            }
            drop(running);
            return story.end(&Ended::by(cause));
        }
        self.has_spoken = true;
        let ended = if self.spawns {
            self.run(prompt, &mut story, &outlet).await
        } else {
            loop {
                if let Some(ended) = self.warm_turn(Some(&prompt), &mut story, &outlet, warm, lost).await {
                    break ended;
                }
                // What the agent has begun comes first; it has this turn's place.
                self.own_turns(warm, lost).await;
                if outlet.is_ended() {
                    break Ended::by(Cause::Aborted);
                }
            }
        };
        let begins = warm.as_ref().is_some_and(|warm| warm.begun);
        if warm.is_none() {
            self.permit = None;
        }
        self.finish(story, &ended, begins, running).await;
    }

    /// A turn is over; maybe the agent begins the next one by itself.
    async fn finish(&mut self, mut story: Story, ended: &Ended, begins: bool, running: Running) {
        self.desk.clear();
        if !begins {
            self.desk.stop_steering();
        }
        if let Some(id) = story.transcript.session_id().cloned() {
            self.told.send_if_modified(|told| told.replace(id.clone()) != Some(id));
        }
        story.settle().await;
        // Whoever reads the end must not find the turn running.
        drop(running);
        if !self.turns.is_running() {
            self.desk.place = Ticket::default();
        }
        story.end(ended);
        self.budget = std::mem::take(&mut story.budget);
    }

    /// The turns that the agent has begun by itself, as far as that is known.
    async fn own_turns(&mut self, warm: &mut Option<Warm>, lost: &mut bool) {
        while warm.as_ref().is_some_and(|warm| warm.kept.unasked.is_some()) {
            self.next_agent_turn(warm, lost).await;
        }
    }

    /// A turn that the agent has begun by itself.
    async fn next_agent_turn(&mut self, warm: &mut Option<Warm>, lost: &mut bool) {
        self.own_count += 1;
        let id = format!("own-{}", self.own_count);
        let (run, outlet) = Run::of_session(&self.aborted, self.identity.clone(), Some(id.clone()));
        let running = self.turns.begin_own(&id, run.control());
        // One that nobody takes goes on for nobody: it costs, and the agent may begin another one after it.
        let untaken = match &self.own {
            Some(own) => own.try_send(run).err().map(TrySendError::into_inner),
            None => Some(run),
        };
        if untaken.is_some() {
            outlet.interrupted.cancel();
            let text =
                format!("a turn that the agent began by itself was stopped: {OWN_TURNS} wait to be taken already");
            self.warnings.push(Warning::new(WarningCode::Notice, text));
        }
        let limits = &self.desk.frame.limits;
        let outbox = Outbox::new(outlet.events.clone(), outlet.estate.clone(), Bounds::of(limits));
        let mut story = Story::new(Box::new(Mute), Arc::default(), outbox, self.host.recording.clone());
        story.callers = self.host.callers.next_turn();
        story.budget = self.budget.clone();
        // It has begun, and is stopped with the first that it says.
        story.over_budget = self.budget.refusal();
        let ended = self.warm_turn(None, &mut story, &outlet, warm, lost).await.unwrap_or_default();
        let begins = warm.as_ref().is_some_and(|warm| warm.begun);
        self.finish(story, &ended, begins, running).await;
    }

    /// A turn on a process that lives: the one that waits for it, or another one. Without a prompt the agent has begun it by
    /// itself. `None` if it has not taken the prompt.
    async fn warm_turn(
        &mut self,
        prompt: Option<&Prompt>,
        story: &mut Story,
        outlet: &Outlet,
        warm: &mut Option<Warm>,
        lost: &mut bool,
    ) -> Option<Ended> {
        let limits = self.desk.frame.limits.clone();
        // Processes that outlived one that was gone when the prompt came, or before.
        let mut outlived = std::mem::take(&mut self.outlived);
        loop {
            let waited = warm.is_some();
            // One that the agent has begun is under way.
            let sends = warm.as_ref().filter(|warm| prompt.is_some() && !warm.begun);
            let may_go_on = sends.map(|warm| warm.process.may_go_on());
            if let Some(may_go_on) = may_go_on
                && let Err(failure) = may_go_on.await
            {
                return Some(Ended { left: outlived, ..Ended::by(Cause::Failed(failure)) });
            }
            if !waited {
                match start(async |stop: &CancellationToken| self.open(stop).await, &limits, outlet).await {
                    Ok(opened) => *warm = opened,
                    Err(cause) => return Some(Ended { left: outlived, ..Ended::by(cause) }),
                }
                if std::mem::take(lost) {
                    story.say(reopened(self.told.borrow().as_ref()).into());
                }
            }
            // An agent that had such a form when the session was opened has it still.
            let Some(ready) = warm.take() else { return Some(Ended::default()) };
            let Warm { mut process, protocol, redactor, mut kept, begun, .. } = ready;
            story.redactor = Arc::clone(&redactor);
            story.listen_to(protocol);
            for event in kept.take() {
                story.say(event);
            }
            let id = SteerId::from(Uuid::new_v4().to_string());
            let send = prompt.filter(|_| !begun).map(|prompt| Input::Command(Command::Send { id: &id, prompt }));
            let opening = match prompt {
                Some(_) => Opening::Tell(send.as_slice()),
                None => Opening::Begun(kept.unasked.take().unwrap_or_default()),
            };
            let before = process.link.stdin.pushed();
            let seen =
                attend(&mut process, opening, story, &limits, outlet, Some(&mut self.desk), Instant::now()).await;
            if seen.lives {
                // All that waited for an answer was denied with the turn's end.
                _ = kept.keep(seen.rest, &mut process.link);
                let protocol = std::mem::replace(&mut story.protocol, Box::new(Mute));
                let begun = seen.then == Then::Begins;
                let left = Warm { process, protocol, redactor, kept, begun, permit: None };
                if seen.reopen || story.panicked {
                    outlived.append(&mut left.close(&limits).await);
                } else {
                    *warm = Some(left);
                }
                if seen.then == Then::Again {
                    self.outlived = outlived;
                    return None;
                }
                return Some(Ended { cause: seen.cause, left: outlived, ..Ended::default() });
            }
            *lost = true;
            // It was gone when the prompt came, and that was not known yet. What it had said before may have come since.
            let unread = process.link.server.is_none() && process.link.stdin.read_at_most() <= before;
            let untaken = unread || !story.protocol.may_have_consumed_prompt(story.heard);
            let unheard = waited && untaken && seen.cause.is_none() && prompt.is_some();
            let mut ended = process.end(seen, story, &limits).await;
            outlived.append(&mut ended.left);
            if !unheard {
                ended.left = outlived;
                story.last_word(&mut ended);
                return Some(ended);
            }
        }
    }

    /// A turn as a run of its own. Orders are taken meanwhile; they hold for the next one.
    async fn run(&mut self, prompt: Prompt, story: &mut Story, outlet: &Outlet) -> Ended {
        let mut request = self.desk.frame.turn(prompt, self.conversation());
        request.max_session_budget_usd = self.budget.left_usd();
        let Plan { launch, protocol } = match plan(&*self.agent, &request) {
            Ok(plan) => plan,
            Err(error) => return Ended::by(Cause::Failed(not_planned(&error))),
        };
        story.redactor = Arc::new(self.host.redactor(&launch, &request));
        story.listen_to(protocol);
        let mut run = pin!(attempt(launch, self.host.clone(), &request.limits, story, outlet));
        loop {
            tokio::select! {
                ended = &mut run => return ended,
                _ = self.desk.next() => {}
            }
        }
    }
}

/// Returns when another session needs the process.
async fn wanted(idle: Option<&Reclaimable<'_>>) {
    match idle {
        Some(idle) => idle.reclaim_requested().await,
        None => std::future::pending().await,
    }
}

/// Waits for this long; without a time, for ever.
async fn elapsed(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}

impl Asked {
    fn command(&self) -> Input<'_> {
        Input::Command(match self {
            Self::Answer(given) => given.command(),
            Self::Steer { id, prompt } => Command::Steer { id, prompt },
            Self::SetModel(model) => Command::SetModel(model),
            Self::SetPermissionMode(mode) => Command::SetPermissionMode(*mode),
        })
    }
}

/// In the place of a protocol, where there is none.
struct Mute;

impl Protocol for Mute {
    fn handle(&mut self, _: Input<'_>, _: &mut Vec<Action>) {}
}

fn reopened(id: Option<&SessionId>) -> Warning {
    let warning = Warning::new(WarningCode::SessionReopened, "the agent's process was gone: another one goes on");
    match id {
        Some(id) => warning.with("sessionId", id.as_str()),
        None => warning,
    }
}
