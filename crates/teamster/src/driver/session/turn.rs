//! Drives the turns of a session.

use std::pin::pin;
use std::sync::Arc;

use teamster_agents::transcript::Cause;
use teamster_types::event::{ErrorCode, Failure, SessionId, SteerId, Warning, WarningCode};
use teamster_types::request::Prompt;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::state::{TurnEnd, TurnProcess};
use super::{MAX_AGENT_TURNS, SessionDriver};
use crate::driver::attempts::attempt;
use crate::driver::ended::Ended;
use crate::driver::event_sink::EventSink;
use crate::driver::failures::rejected_plan;
use crate::driver::process::{AgentProcess, IdleProcess, LeaderExit, SinceLastTurn};
use crate::driver::session_queue::{AgentCommand, StartedTurn};
use crate::driver::starting::{deliver_while, start_within, wait_in_queue};
use crate::driver::turn::{AfterTurn, EndedTurn, TurnOutcome, TurnStart, drive_turn};
use crate::permits::{QueueFull, Ticket};
use crate::run::Run;
use crate::runtime::plan_run;
use crate::turns::handle::RunHandle;
use crate::turns::list::Running;
use crate::turns::waiting::Content;

/// How a turn on a live process ended.
enum LiveTurn {
    Ended(Ended),
    /// The agent has not accepted the prompt. It must be sent again, after the turns that the agent has started by itself.
    NotAccepted,
}

impl SessionDriver {
    /// Drives a turn, from its place in the queue to its `done`.
    pub(super) async fn turn(&mut self, started: StartedTurn) {
        let (Content { prompt, handle: run, permit }, running) = started;
        // It no longer counts as a waiting turn.
        drop(permit);
        let limits = self.job.queue.request.limits.clone();
        let mut sink = EventSink::new(&run, &limits, &self.job.host, self.job.budget.clone());
        for warning in self.job.warnings.drain(..) {
            sink.emit(warning);
        }
        if let Some(failure) = self.job.refused.clone() {
            drop(running);
            return sink.end(&Ended::by(Cause::Failed(failure)));
        }
        if let Some(failure) = self.job.budget.refusal().filter(|_| !self.state.is_steer_turn()) {
            drop(running);
            return sink.end(&Ended::by(Cause::Failed(failure)));
        }
        let refused = self.admit(&mut sink, &run).await;
        // A turn that the agent has started runs already. It is started here too, and stopped.
        if let Some(cause) = refused.filter(|_| !self.state.is_steer_turn()) {
            self.job.queue.ticket = Ticket::default();
            self.release_unused_permit();
            drop(running);
            return sink.end(&Ended::by(cause));
        }
        if self.state.is_steer_turn() {
            // The agent works already, possibly beyond the budget.
            sink.stop_over_budget();
        }
        self.has_run_turn = true;
        let ended = if self.job.process_per_turn {
            self.turn_with_own_process(prompt, &mut sink, &run).await
        } else {
            self.prompt_turn(&prompt, &mut sink, &run).await
        };
        self.release_unused_permit();
        self.finish(sink, &ended, running).await;
    }

    fn release_unused_permit(&mut self) {
        if self.state.process().is_none() {
            self.permit = None;
        }
    }

    /// Waits in the queue for the turn's place, and for a permit for a process if there is none. Returns the reason if the turn
    /// does not start.
    async fn admit(&mut self, sink: &mut EventSink, run: &RunHandle) -> Option<Cause> {
        if self.state.process().is_none()
            && let Some(Some(process)) = deliver_while(self.claim_warm_process(), sink, run).await
        {
            self.install(process, sink);
        }
        let key = self.job.queue.request.queue_key.as_deref();
        let mut ticket = match self.job.permits.enqueue(key, self.job.agent.name(), self.permit.is_none()) {
            Ok(ticket) => ticket,
            Err(QueueFull { limit }) => {
                let text = format!("the queue is full: {limit} turns are waiting");
                let failure = Failure::new(ErrorCode::QueueFull, text).with_retryable(true);
                return Some(Cause::Failed(failure));
            }
        };
        // A turn that is admitted at once starts with the commands before it. Later commands are passed on while it runs.
        let waited = ticket.position().is_some();
        let mut commands = Vec::new();
        let admitted = tokio::select! {
            biased;
            admitted = wait_in_queue(&mut ticket, sink, run) => admitted,
            () = self.job.queue.collect_commands(&mut commands) => false,
        };
        if let Some(permit) = ticket.take_process() {
            self.permit = Some(permit);
        }
        self.job.queue.ticket = ticket;
        if waited {
            // The process needs the commands even if this turn does not start.
            self.pass_on(commands);
        }
        let is_restart = self.state.process().is_some_and(|process| process.buffer().needs_restart());
        if admitted
            && is_restart
            && !self.state.is_steer_turn()
            && let Some(process) = self.state.close()
        {
            // Its permit is for the process that replaces it.
            self.left.append(&mut process.close(&self.job.queue.request.limits).await);
        }
        sink.start_clock();
        (!admitted).then_some(Cause::Aborted)
    }

    /// Passes commands to the idle process. Without a process, the next one is started with the changed request.
    fn pass_on(&mut self, mut commands: Vec<AgentCommand>) {
        commands.extend(std::iter::from_fn(|| self.job.queue.pending_command()));
        if let Some(process) = self.state.process_mut() {
            for command in commands {
                process.input(command.input());
            }
        }
    }

    /// Adds a process to the session. Emits a warning if it replaces one that exited unexpectedly.
    fn install(&mut self, process: IdleProcess, sink: &mut EventSink) {
        if self.state.started(process) {
            sink.emit(reopened(self.job.session_id.borrow().as_ref()));
        }
    }

    /// Drives the turn of a prompt on the live process.
    async fn prompt_turn(&mut self, prompt: &Prompt, sink: &mut EventSink, run: &RunHandle) -> Ended {
        loop {
            if let LiveTurn::Ended(ended) = self.live_turn(Some(prompt), sink, run).await {
                return ended;
            }
            // The turns that the agent has started by itself come first. They use this turn's place.
            while self.state.process().is_some_and(|process| process.buffer().has_agent_turn()) {
                self.agent_turn().await;
            }
            if run.is_stopped() {
                return Ended::by(Cause::Aborted);
            }
            // The turns of the agent have used the session's budget too.
            sink.set_budget(self.job.budget.clone());
            if let Some(failure) = self.job.budget.refusal() {
                return Ended::by(Cause::Failed(failure));
            }
        }
    }

    /// Drives a turn that the agent has started by itself.
    pub(super) async fn agent_turn(&mut self) {
        self.agent_turn_count += 1;
        let id = format!("own-{}", self.agent_turn_count);
        let (run, handle) = Run::of_session(&self.job.stop, self.job.identity.clone(), Some(id.clone()));
        let running = self.job.turns.start_agent_turn(&id, run.control());
        let not_taken = match &self.job.agent_turns {
            Some(turns) => turns.try_send(run).err().map(TrySendError::into_inner),
            None => Some(run),
        };
        // A turn that the caller does not read is stopped: it costs money, and the agent may start another one after it.
        if not_taken.is_some() {
            handle.stop.interrupt.cancel();
            let text =
                format!("a turn that the agent started by itself was stopped: {MAX_AGENT_TURNS} are not taken yet");
            self.job.warnings.push(Warning::new(WarningCode::Notice, text));
        }
        let limits = &self.job.queue.request.limits;
        let mut sink = EventSink::new(&handle, limits, &self.job.host, self.job.budget.clone());
        sink.stop_over_budget();
        let ended = match self.live_turn(None, &mut sink, &handle).await {
            LiveTurn::Ended(ended) => ended,
            LiveTurn::NotAccepted => Ended::default(),
        };
        self.finish(sink, &ended, running).await;
    }

    /// Drives a turn on the live process, or on a new one. Without a prompt, the agent has started the turn by itself.
    async fn live_turn(&mut self, prompt: Option<&Prompt>, sink: &mut EventSink, run: &RunHandle) -> LiveTurn {
        let limits = self.job.queue.request.limits.clone();
        let mut left = std::mem::take(&mut self.left);
        loop {
            let had_process = self.state.process().is_some();
            if let Err(cause) = self.prepare_process(prompt.is_some(), sink, run).await {
                return LiveTurn::Ended(Ended { left, ..Ended::by(cause) });
            }
            // An agent that had a live interface when the session was opened still has one.
            let Some(process) = self.state.start_turn() else {
                return LiveTurn::Ended(Ended { left, ..Ended::default() });
            };
            let (process, is_steered) = match process {
                TurnProcess::Ready(process) => (process, false),
                TurnProcess::Steered(process) => (process, true),
            };
            let (mut process, since) = process.into_turn();
            sink.set_redactor(Arc::clone(process.redactor()));
            if let Some(warning) = process.take_warning() {
                sink.emit(warning);
            }
            let SinceLastTurn { events, agent_turn, needs_restart } = since;
            for event in events {
                sink.emit(event);
            }
            let id = SteerId::from(Uuid::new_v4().to_string());
            let start = match prompt {
                Some(_) if is_steered => TurnStart::Steered,
                Some(prompt) => TurnStart::Prompt { id: &id, prompt },
                None => TurnStart::Agent(agent_turn.unwrap_or_default()),
            };
            let pushed = process.link.stdin.pushed();
            let exit = match drive_turn(&mut process, start, sink, &limits, run, &mut self.job.queue).await {
                TurnOutcome::Exited(exit) => exit,
                TurnOutcome::Ended(mut turn) => {
                    turn.needs_restart |= needs_restart;
                    // A turn that a limit has ended is not sent again.
                    let is_accepted = turn.after != AfterTurn::SendAgain || turn.cause.is_some();
                    let cause = turn.cause.clone();
                    sink.queue.flush();
                    self.keep_process(process, turn).await;
                    left.append(&mut self.left);
                    if is_accepted {
                        return LiveTurn::Ended(Ended { cause, left, ..Ended::default() });
                    }
                    self.left = left;
                    return LiveTurn::NotAccepted;
                }
            };
            self.state.turn_ended(TurnEnd::Exited);
            // The process may have exited before the prompt, without the driver knowing it. Then the prompt is sent again.
            let is_sent = prompt.is_some() && !is_steered;
            let sends_again = is_sent && had_process && has_ignored_prompt(&process, &exit, pushed);
            let mut exited = process.end(exit, sink, &limits).await;
            if !sends_again {
                exited.add_left(left);
                return LiveTurn::Ended(exited.report(sink));
            }
            left.append(&mut exited.discard());
        }
    }

    /// Starts a process if there is none. Checks the project of a process that gets a prompt.
    async fn prepare_process(&mut self, has_prompt: bool, sink: &mut EventSink, run: &RunHandle) -> Result<(), Cause> {
        if let Some(process) = self.state.process() {
            if has_prompt && !self.state.is_steer_turn() {
                let check = process.process().check_project();
                deliver_while(check, sink, run).await.ok_or(Cause::Aborted)?.map_err(Cause::Failed)?;
            }
            return Ok(());
        }
        sink.queue.flush();
        let limits = &self.job.queue.request.limits;
        let order = self.process_order();
        let start = async |cancel: &CancellationToken| Box::pin(order.start(cancel)).await;
        if let Some(process) = start_within(start, limits, run).await? {
            self.install(process, sink);
        }
        Ok(())
    }

    /// Keeps the process of a turn that has ended, or closes it if another one must resume the conversation.
    async fn keep_process(&mut self, process: AgentProcess, turn: EndedTurn) {
        let is_restart = turn.needs_restart || process.protocol.has_panicked();
        let process = IdleProcess::after_turn(process, turn.rest);
        if is_restart {
            self.left.append(&mut process.close(&self.job.queue.request.limits).await);
            return self.state.turn_ended(TurnEnd::Closed);
        }
        self.state.turn_ended(match turn.after {
            AfterTurn::SteerTurn => TurnEnd::SteerTurn(process),
            AfterTurn::Idle | AfterTurn::SendAgain => TurnEnd::Idle(process),
        });
    }

    /// Drives a turn on a process of its own. Commands of the caller apply to the next turn.
    async fn turn_with_own_process(&mut self, prompt: Prompt, sink: &mut EventSink, run: &RunHandle) -> Ended {
        let mut request = self.job.queue.request.turn(prompt, self.conversation());
        request.max_session_budget_usd = self.job.budget.left_usd();
        let plan = match plan_run(&*self.job.agent, &request) {
            Ok(plan) => plan,
            Err(error) => return Ended::by(Cause::Failed(rejected_plan(&error))),
        };
        sink.set_redactor(Arc::new(self.job.host.redactor(&plan.launch, &request)));
        let mut attempt = pin!(attempt(plan, self.job.host.clone(), &request.limits, sink, run));
        loop {
            tokio::select! {
                ended = &mut attempt => return ended,
                _ = self.job.queue.next_command() => {}
            }
        }
    }

    /// Ends a turn, and its stream.
    async fn finish(&mut self, mut sink: EventSink, ended: &Ended, running: Running) {
        _ = self.job.queue.end_turn();
        if !self.state.is_steer_turn() {
            self.job.queue.stop_steering();
        }
        if let Some(id) = sink.transcript.session_id().cloned() {
            self.job.session_id.send_if_modified(|known| known.replace(id.clone()) != Some(id));
        }
        self.job.live.note_left(&ended.left);
        sink.check_recording().await;
        // A caller that reads the end of the stream must not find the turn running.
        drop(running);
        if !self.job.turns.is_running() {
            self.job.queue.ticket = Ticket::default();
        }
        sink.end(ended);
        self.job.budget = sink.take_budget();
    }
}

/// Whether a process exited by itself without having worked on the prompt. `pushed` is the number of input bytes before the
/// prompt.
fn has_ignored_prompt(process: &AgentProcess, exit: &LeaderExit, pushed: u64) -> bool {
    let is_unread = process.link.server.is_none() && process.link.stdin.read_at_most() <= pushed;
    exit.cause.is_none() && (is_unread || !process.protocol.may_have_consumed_prompt())
}

/// Returns the warning that another process continues the session.
fn reopened(id: Option<&SessionId>) -> Warning {
    let warning = Warning::new(WarningCode::SessionReopened, "the agent's process had exited; another one continues");
    match id {
        Some(id) => warning.with("sessionId", id.as_str()),
        None => warning,
    }
}
