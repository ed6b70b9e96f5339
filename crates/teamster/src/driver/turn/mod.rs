//! Drives a process until its leader exits, or until a turn of a session ends.
//!
//! - `actions`: carries out the actions of the protocol.
//! - `limits`, `timer`, `watchdog`: the limits on time and silence.
//! - `stop`, `stopping`: interrupts and terminates the process.
//! - `drain`: reads the last output after the exit.

mod actions;
mod drain;
mod limits;
mod stop;
mod stopping;
mod timer;
mod watchdog;

use std::pin::pin;

use teamster_agents::protocol::{Action, AppliedAnswer, Command, Input};
use teamster_agents::transcript::Cause;
use teamster_process::ProcessTree;
use teamster_types::event::SteerId;
use teamster_types::request::{Limits, Prompt};
use tokio::task::yield_now;
use tokio::time::Instant;

use self::stopping::Stopping;
use self::timer::LimitTimer;
use super::answers::GivenAnswer;
use super::event_sink::EventSink;
use super::failures::lease_expired;
use super::log::Wait;
use super::process::{
    AgentOutput, AgentProcess, GuardedProtocol, LeaderExit, Link, MAX_UNREAD_INPUT, Receiver as _, Termination,
};
use super::session_queue::{AgentCommand, SessionQueue};
use crate::agent_server::{ServerEvent, next_event};
use crate::turns::handle::RunHandle;

/// How a turn of a session starts.
pub(super) enum TurnStart<'a> {
    /// The prompt is sent.
    Prompt { id: &'a SteerId, prompt: &'a Prompt },
    /// Nothing is sent. The agent has started the turn with prompts that came too late to steer the turn before.
    Steered,
    /// Nothing is sent. The agent has started the turn by itself, with these actions.
    Agent(Vec<Action>),
}

/// How a turn of a session ended.
pub(super) enum TurnOutcome {
    /// The leader exited.
    Exited(LeaderExit),
    /// The process lives.
    Ended(EndedTurn),
}

/// A turn that has ended, on a process that lives.
pub(super) struct EndedTurn {
    /// Why the driver ended the turn. `None` if the agent ended it.
    pub(super) cause: Option<Cause>,
    /// Whether another process must resume the conversation.
    pub(super) needs_restart: bool,
    pub(super) after: AfterTurn,
    /// Actions after the end of the turn, which do not belong to it.
    pub(super) rest: Vec<Action>,
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AfterTurn {
    /// The next prompt.
    #[default]
    Idle,
    /// The agent starts the next turn by itself, with the prompts that came too late to steer.
    SteerTurn,
    /// The same prompt again, because the agent has not accepted it.
    SendAgain,
}

/// Drives one turn, or the whole life of a process that serves one run.
struct TurnDriver<'a> {
    tree: &'a ProcessTree,
    link: &'a mut Link,
    protocol: &'a mut GuardedProtocol,
    sink: &'a mut EventSink,
    limits: &'a Limits,
    timer: LimitTimer,
    stopping: Stopping<'a>,
    /// Why the driver stops the process.
    cause: Option<Cause>,
    /// What the driver waits for, as last logged.
    logged: Option<Wait>,
    /// The session that the turn belongs to. `None` in a run.
    session: Option<SessionTurn<'a>>,
    /// The agent's version of the answer to the request that it withdraws next.
    applied: Option<Box<AppliedAnswer>>,
    /// Whether the current actions contain the outcome.
    has_outcome_action: bool,
    /// Whether the leader has exited. Then its last output is read, whatever turn it belongs to.
    is_draining: bool,
    /// The maximum number of unread bytes of input. Above it, the agent's output is not read.
    max_unread_input: usize,
    /// A buffer for the actions of the protocol.
    actions: Vec<Action>,
}

/// The part of the driver's state that only a turn of a session has.
struct SessionTurn<'a> {
    queue: &'a mut SessionQueue,
    after: AfterTurn,
    needs_restart: bool,
    /// Actions that do not belong to the turn any more. `None` while all belong to it.
    rest: Option<Vec<Action>>,
    /// Answers that the rules of the request gave, not yet passed to the protocol.
    rule_answers: Vec<GivenAnswer>,
}

/// Drives the process of a run until its leader has exited and its output was read.
pub(super) async fn drive_to_exit(
    process: &mut AgentProcess,
    sink: &mut EventSink,
    limits: &Limits,
    run: &RunHandle,
    started: Instant,
) -> LeaderExit {
    let (mut driver, output) = TurnDriver::new(process, sink, limits, None, started);
    driver.input(Input::Started);
    driver.allow_unread_input();
    // Without a session there is no end of a turn. The leader exits in the end.
    _ = driver.drive(output, run, started).await;
    driver.drain(output, run).await;
    driver.into_exit()
}

/// Drives a turn of a session until it ends, or until the leader has exited and its output was read.
pub(super) async fn drive_turn(
    process: &mut AgentProcess,
    start: TurnStart<'_>,
    sink: &mut EventSink,
    limits: &Limits,
    run: &RunHandle,
    queue: &mut SessionQueue,
) -> TurnOutcome {
    let (started, deadline) = (Instant::now(), timer::deadline(limits, sink.started()));
    process.protocol.start_turn();
    queue.set_steering(process.protocol.supports_steering());
    let (mut driver, output) = TurnDriver::new(process, sink, limits, Some(SessionTurn::new(queue)), started);
    // It includes the start of the process, and earlier attempts to send the prompt.
    driver.timer.deadline = deadline;
    // The process has started before. Its silence counts as that of a working agent.
    driver.timer.watchdog.activity(started);
    match start {
        TurnStart::Prompt { id, prompt } => driver.input(Input::Command(Command::Send { id, prompt })),
        TurnStart::Steered => {}
        TurnStart::Agent(actions) => driver.act_on_all(actions),
    }
    driver.allow_unread_input();
    match driver.drive(output, run, started).await {
        Live::TurnEnded => {
            driver.deny_open_requests();
            driver.into_ended_turn()
        }
        Live::LeaderExited => {
            driver.drain(output, run).await;
            TurnOutcome::Exited(driver.into_exit())
        }
    }
}

/// Why [`TurnDriver::drive`] returns.
enum Live {
    TurnEnded,
    LeaderExited,
}

impl<'a> SessionTurn<'a> {
    fn new(queue: &'a mut SessionQueue) -> Self {
        let (after, needs_restart, rest, rule_answers) = (AfterTurn::Idle, false, None, Vec::new());
        Self { queue, after, needs_restart, rest, rule_answers }
    }
}

impl<'a> TurnDriver<'a> {
    fn new(
        process: &'a mut AgentProcess,
        sink: &'a mut EventSink,
        limits: &'a Limits,
        session: Option<SessionTurn<'a>>,
        started: Instant,
    ) -> (Self, &'a mut AgentOutput) {
        let AgentProcess { tree, link, output, protocol, .. } = process;
        let driver = Self {
            tree,
            link,
            protocol,
            sink,
            limits,
            timer: LimitTimer::new(limits, started),
            stopping: Stopping::No,
            cause: None,
            logged: None,
            session,
            applied: None,
            has_outcome_action: false,
            is_draining: false,
            max_unread_input: MAX_UNREAD_INPUT,
            actions: Vec::new(),
        };
        (driver, output)
    }

    /// Drives the process until its leader exits or the session's turn ends. Every branch of the select is cancel safe.
    async fn drive(&mut self, output: &mut AgentOutput, run: &RunHandle, started: Instant) -> Live {
        let (mut was_listening, mut was_reading, mut interrupted) = (true, true, false);
        // These are polled with each line, so they register their wakers only once.
        let mut exited = pin!(self.tree.exited());
        let (mut interrupt, mut abort) = (pin!(run.stop.interrupt.cancelled()), pin!(run.stop.abort.cancelled()));
        // Lines that were read with the end of the turn before.
        output.deliver_lines(self);
        loop {
            self.sink.queue.flush();
            if self.is_turn_ended() {
                return Live::TurnEnded;
            }
            // A consumer on the same thread takes many events before more are read.
            if self.sink.queue.is_behind() {
                yield_now().await;
            }
            // A consumer that does not take its events stops the reading. The agent's silence does not count meanwhile.
            let listening = !self.sink.queue.is_full();
            if listening && !was_listening {
                self.timer.watchdog.restart(Instant::now());
            }
            was_listening = listening;
            self.log_wait(listening);
            let reads_lines = listening && self.link.stdin.pending() <= self.max_unread_input;
            if reads_lines && !was_reading {
                self.link.timer.restart();
            }
            was_reading = reads_lines;
            let alarm = self.alarm(listening);
            tokio::select! {
                _ = &mut exited => break,
                filled = output.fill(reads_lines) => output.deliver(filled, self),
                // It is no error if the CLI does not read its input: its result or its exit decides.
                _ = self.link.stdin.flush(), if !self.link.stdin.is_idle() => {}
                event = next_event(&mut self.link.server), if listening => self.server_event(&event, output),
                () = self.sink.queue.room(), if !listening => {}
                () = &mut interrupt, if !interrupted => {
                    interrupted = true;
                    self.interrupt(Cause::Aborted);
                }
                () = &mut abort, if !self.stopping.is_terminating() => self.terminate(Some(Cause::Aborted)),
                () = self.stopping.terminated(), if self.stopping.is_signalling() => {}
                command = next_command(&mut self.session) => self.command(command),
                () = self.link.timer.reached(), if reads_lines => self.timer_reached(output).await,
                () = self.timer.alarm.reached(alarm.unwrap_or(started)), if alarm.is_some() => {
                    if has_exited(self.tree).await {
                        break;
                    }
                    self.alarmed(alarm.unwrap_or(started), output, reads_lines).await;
                }
            }
        }
        if self.tree.lease_expired() {
            self.set_cause(Cause::Failed(lease_expired()));
        }
        // The caller may have stopped the run before its exit was noticed.
        if run.is_stopped() {
            self.set_cause(Cause::Aborted);
        }
        Live::LeaderExited
    }

    fn server_event(&mut self, event: &ServerEvent, output: &mut AgentOutput) {
        // The CLI writes diagnostics about a call before it replies to it.
        if matches!(event, ServerEvent::Reply { .. }) {
            output.read_pending_diagnostics(self);
        }
        output.deliver_event(event, self);
    }

    /// Allows as much unread input as is queued now, in addition. A prompt of the caller may have any length, and the agent may
    /// write before it reads it.
    fn allow_unread_input(&mut self) {
        let allowed = self.link.stdin.pending().saturating_add(MAX_UNREAD_INPUT);
        self.max_unread_input = self.max_unread_input.max(allowed);
    }

    /// Whether the turn of a session has ended, and the process is not being terminated.
    fn is_turn_ended(&self) -> bool {
        let Some(session) = &self.session else { return false };
        let is_ended = session.after == AfterTurn::SendAgain || self.sink.transcript.has_outcome();
        is_ended && !self.stopping.is_terminating()
    }

    /// Whether the agent waits for an answer of the caller.
    fn awaits_answer(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.queue.awaits_answer())
    }

    fn into_exit(self) -> LeaderExit {
        let termination = self.stopping.since().map(|(since, is_shutdown)| Termination { since, is_shutdown });
        LeaderExit { cause: self.cause, termination }
    }

    fn into_ended_turn(self) -> TurnOutcome {
        let Self { cause, session, .. } = self;
        let (after, needs_restart, rest) = session
            .map(|session| (session.after, session.needs_restart, session.rest.unwrap_or_default()))
            .unwrap_or_default();
        TurnOutcome::Ended(EndedTurn { cause, needs_restart, after, rest })
    }
}

/// Waits for the next command of the session's caller.
async fn next_command(session: &mut Option<SessionTurn<'_>>) -> AgentCommand {
    match session {
        Some(session) => session.queue.next_command().await,
        None => std::future::pending().await,
    }
}

/// Whether the leader has exited by now. A new future reads the keeper's report, even if the Tokio runtime does not know of it yet.
async fn has_exited(tree: &ProcessTree) -> bool {
    tokio::select! {
        biased;
        _ = tree.exited() => true,
        () = std::future::ready(()) => false,
    }
}
