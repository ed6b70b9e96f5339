//! An agent process that waits for its next turn.

use teamster_agents::protocol::{Action, Command, Input};
use teamster_process::spawn::PIPE_BYTES;
use teamster_types::event::{Event, LeftProcess};
use teamster_types::request::{Limits, OrphanPolicy};
use tokio::task::yield_now;
use tokio::time::{Duration, timeout};

use super::idle_buffer::{IdleBuffer, IdleReceiver};
use super::output::Receiver as _;
use super::{AgentProcess, MAX_UNREAD_INPUT, left_process};
use crate::agent_server::{ServerEvent, next_event};

/// How many reads in a row [`IdleProcess::listen`] makes before it yields. Tokio lets a task read only a certain amount before
/// it must yield. An agent that writes without end would use that up, and the other branches of the caller's select would
/// never run.
const READS_BEFORE_YIELD: u32 = 8;

/// What happened between two turns.
pub(in crate::driver) struct SinceLastTurn {
    pub(in crate::driver) events: Vec<Event>,
    /// The actions of a turn that the agent has started by itself.
    pub(in crate::driver) agent_turn: Option<Vec<Action>>,
    /// Whether another process must resume the conversation after the turn.
    pub(in crate::driver) needs_restart: bool,
}

/// An agent process that waits for its next turn.
pub(in crate::driver) struct IdleProcess {
    process: AgentProcess,
    buffer: IdleBuffer,
}

impl IdleProcess {
    /// Creates an idle process from one that was just started.
    pub(in crate::driver) fn started(process: AgentProcess) -> Self {
        let mut idle = Self { process, buffer: IdleBuffer::default() };
        idle.input(Input::Started);
        idle
    }

    /// Creates an idle process from one whose turn has ended. `rest` are actions after the end of the turn.
    pub(in crate::driver) fn after_turn(mut process: AgentProcess, rest: Vec<Action>) -> Self {
        let mut buffer = IdleBuffer::default();
        // All open requests were denied at the end of the turn.
        _ = buffer.act(rest, &mut process.link);
        Self { process, buffer }
    }

    pub(in crate::driver) fn process(&self) -> &AgentProcess {
        &self.process
    }

    pub(in crate::driver) fn buffer(&self) -> &IdleBuffer {
        &self.buffer
    }

    /// Returns the process for a turn, with what happened since the last turn.
    pub(in crate::driver) fn into_turn(self) -> (AgentProcess, SinceLastTurn) {
        let Self { process, mut buffer } = self;
        let (events, agent_turn) = (buffer.take_events(), buffer.take_agent_turn());
        (process, SinceLastTurn { events, agent_turn, needs_restart: buffer.needs_restart() })
    }

    /// Passes an input to the protocol.
    pub(in crate::driver) fn input(&mut self, input: Input<'_>) {
        let AgentProcess { protocol, link, .. } = &mut self.process;
        IdleReceiver { protocol, link, buffer: &mut self.buffer }.input(input);
    }

    /// Reads what the agent writes, until the leader exits, its server is unreachable, or the agent starts a turn by itself.
    /// Cancel safe.
    pub(in crate::driver) async fn listen(&mut self) {
        let Self { process, buffer } = self;
        let AgentProcess { tree, link, output, protocol, .. } = process;
        let mut unread = None::<usize>;
        let mut reads = 0_u32;
        let mut was_reading = true;
        loop {
            if buffer.has_agent_turn() {
                return;
            }
            reads += 1;
            if reads.is_multiple_of(READS_BEFORE_YIELD) {
                yield_now().await;
            }
            // At first, these are the lines that were read with the end of the turn.
            output.deliver_lines(&mut IdleReceiver { protocol, link, buffer });
            if buffer.has_agent_turn() {
                return;
            }
            // The leader has exited. Its last output is in the pipe. Other processes may write to it without end.
            if let Some(unread) = &mut unread {
                match output.fill_lines_now() {
                    Some(count @ 1..) if *unread > 0 => *unread = unread.saturating_sub(count),
                    _ => return,
                }
                continue;
            }
            let reads_lines = link.stdin.pending() <= MAX_UNREAD_INPUT;
            if reads_lines && !was_reading {
                link.timer.restart();
            }
            was_reading = reads_lines;
            tokio::select! {
                _ = tree.exited() => unread = Some(PIPE_BYTES),
                filled = output.fill(reads_lines) => {
                    output.deliver(filled, &mut IdleReceiver { protocol, link, buffer });
                }
                _ = link.stdin.flush(), if !link.stdin.is_idle() => {}
                () = link.timer.reached(), if reads_lines => {
                    if !link.timer.restart_if_late() {
                        let mut receiver = IdleReceiver { protocol, link, buffer };
                        output.read_pending_lines(&mut receiver);
                        receiver.deliver_timer();
                    }
                }
                event = next_event(&mut link.server) => match event {
                    ServerEvent::Unreachable { .. } => return,
                    event => output.deliver_event(&event, &mut IdleReceiver { protocol, link, buffer }),
                },
            }
        }
    }

    /// Kills all processes of the tree when the process is closed, also if the request keeps those that outlive the CLI.
    pub(in crate::driver) fn kill_orphans(&mut self) {
        self.process.orphans = OrphanPolicy::Kill;
    }

    /// Asks the leader to exit, and waits for it within the grace period. Then kills the tree. Processes are kept only if the
    /// leader has exited by itself. Returns the remaining processes.
    pub(in crate::driver) async fn close(mut self, limits: &Limits) -> Vec<LeftProcess> {
        self.log_warnings();
        self.buffer = IdleBuffer::default();
        self.input(Input::Command(Command::Close));
        self.log_warnings();
        // Some agents cannot exit by themselves. Their protocols request a termination.
        if !self.buffer.needs_restart() {
            _ = timeout(limits.grace, self.listen_until_exit()).await;
        }
        let AgentProcess { tree, resources, orphans, link, .. } = self.process;
        let has_exited = timeout(Duration::ZERO, tree.exited()).await.is_ok();
        let left = if orphans == OrphanPolicy::Keep && has_exited {
            tree.detach().await
        } else {
            let survivors = tree.terminate(limits.grace).await;
            link.recorder.exit(tree.exited().await);
            survivors
        };
        resources.remove_and_log().await;
        left.into_iter().map(left_process).collect()
    }

    /// Logs the warnings since the last turn. No further turn emits them.
    fn log_warnings(&mut self) {
        for event in self.buffer.take_events() {
            let Event::Warning(warning) = event else { continue };
            let text = self.process.redactor.text(warning.message.as_str());
            tracing::warn!(code = warning.code.as_str(), "a warning between turns: {text}");
        }
    }

    /// Reads what the agent writes until the leader exits. Ignores turns that the agent starts meanwhile.
    async fn listen_until_exit(&mut self) {
        loop {
            self.listen().await;
            if self.buffer.take_agent_turn().is_none() {
                return;
            }
        }
    }
}
