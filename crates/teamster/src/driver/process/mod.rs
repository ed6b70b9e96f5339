//! An agent process: its process tree, its streams, its protocol and its files.

mod idle;
mod idle_buffer;
mod link;
mod output;
mod protocol;
mod resources;
mod start;
mod timer;

use std::sync::Arc;

use teamster_agents::protocol::{Action, Input};
use teamster_agents::transcript::Cause;
use teamster_process::{ProcessTree, Survivor};
use teamster_types::event::{Failure, LeftProcess, Warning, WarningCode};
use teamster_types::request::{Limits, OrphanPolicy};
use tokio::time::Instant;

pub(super) use self::idle::{IdleProcess, SinceLastTurn};
pub(super) use self::link::Link;
pub(super) use self::output::{AgentOutput, Receiver};
pub(super) use self::protocol::GuardedProtocol;
use self::resources::RunResources;
use super::ended::Ended;
use super::event_sink::EventSink;
use super::failures::protocol_panicked;
use super::log;
use crate::recording::redact::Redactor;
use crate::setup::project_guard::ProjectGuard;
use crate::threads::blocking;

/// The maximum number of unread bytes of input. If the agent has not read more than this, its output is not read. Then it is
/// silent, and the limits on silence end it.
pub(super) const MAX_UNREAD_INPUT: usize = 16 << 20;

/// An agent process that was started.
///
/// Dropping it kills the process tree, and then removes the run's files.
pub(super) struct AgentProcess {
    // Fields are dropped in this order: the tree must be gone before its files are.
    pub(super) tree: ProcessTree,
    resources: RunResources,
    pub(super) link: Link,
    pub(super) output: AgentOutput,
    pub(super) protocol: GuardedProtocol,
    redactor: Arc<Redactor>,
    orphans: OrphanPolicy,
    project_guard: Option<ProjectGuard>,
    warning: Option<Warning>,
}

/// How the driver left a process whose leader has exited.
#[derive(Debug)]
pub(super) struct LeaderExit {
    /// Why the driver ended the process. `None` if it exited by itself.
    pub(super) cause: Option<Cause>,
    pub(super) termination: Option<Termination>,
}

/// The termination of a process tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Termination {
    /// When SIGTERM was sent.
    pub(super) since: Instant,
    /// Whether the process was terminated because its work was done.
    pub(super) is_shutdown: bool,
}

/// A process that is gone, and whose protocol has not received the exit.
pub(super) struct ExitedProcess {
    protocol: GuardedProtocol,
    ended: Ended,
}

impl AgentProcess {
    pub(super) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Takes the warning about a problem that did not prevent the start.
    pub(super) fn take_warning(&mut self) -> Option<Warning> {
        self.warning.take()
    }

    /// Checks whether the process may run another turn: the project may contain forbidden files by now.
    pub(super) fn check_project(&self) -> impl Future<Output = Result<(), Failure>> + use<> {
        let project_guard = self.project_guard.clone();
        async {
            let Some(project_guard) = project_guard else { return Ok(()) };
            blocking(move || project_guard.check()).await
        }
    }

    /// Kills the remaining processes of the tree, unless they are kept, and removes the run's files.
    pub(super) async fn end(self, exit: LeaderExit, sink: &mut EventSink, limits: &Limits) -> ExitedProcess {
        let Self { tree, resources, orphans, output, link, protocol, .. } = self;
        let LeaderExit { cause, termination } = exit;
        let is_shut_down = termination.is_some_and(|termination| termination.is_shutdown);
        let elapsed = termination.map(|termination| termination.since.elapsed()).unwrap_or_default();
        let grace = limits.grace.saturating_sub(elapsed);
        let keep = orphans == OrphanPolicy::Keep && cause.is_none() && termination.is_none();
        let end = async {
            let survivors = if keep { Vec::new() } else { tree.terminate(grace).await };
            let exit = tree.exited().await;
            let kept = if keep { tree.detach().await } else { Vec::new() };
            (survivors, kept, exit)
        };
        sink.queue.flush();
        let (survivors, kept, exit) = end.await;
        log::step("tree gone");
        let (code, signal, left) = (exit.code, exit.signal_name(), survivors.len());
        tracing::debug!(code, signal = signal.as_deref(), processes_left = left, "the CLI has exited");
        link.recorder.exit(exit);
        for warning in resources.remove().await {
            sink.emit(warning);
        }
        log::step("files removed");
        if !survivors.is_empty() {
            sink.emit(processes_left(&survivors));
        }
        let left = survivors.into_iter().chain(kept).map(left_process).collect();
        let (has_output, stderr) = (protocol.has_output(), output.diagnostics_tail());
        let ended = Ended { cause, exit: Some(exit), is_shut_down, has_output, stderr, left };
        ExitedProcess { protocol, ended }
    }
}

impl ExitedProcess {
    /// Adds remaining processes of earlier processes of the session.
    pub(super) fn add_left(&mut self, earlier: Vec<LeftProcess>) {
        self.ended.left.splice(..0, earlier);
    }

    /// Discards the exit. Returns the remaining processes.
    pub(super) fn discard(self) -> Vec<LeftProcess> {
        self.ended.left
    }

    /// Passes the exit to the protocol, and emits its last events.
    pub(super) fn report(self, sink: &mut EventSink) -> Ended {
        let Self { mut protocol, mut ended } = self;
        protocol.hide_protocol_output(&mut ended.stderr);
        // Before any part of it is copied.
        ended.stderr = sink.redactor().text(&ended.stderr).into_owned();
        let signal = ended.signal();
        if let Some(report) = ended.report(signal.as_deref()) {
            let mut actions = Vec::new();
            protocol.handle(Input::Exited(report), &mut actions);
            for action in actions {
                match action {
                    Action::Emit(event) => sink.emit(event),
                    Action::Outcome(outcome) => sink.set_outcome(*outcome),
                    // The process and its server are gone, and with them every open request.
                    Action::Alive
                    | Action::Process(_)
                    | Action::Server(_)
                    | Action::Session(_)
                    | Action::SetTimer(_)
                    | Action::ClearTimer => {}
                }
            }
        }
        if protocol.has_panicked() {
            ended.cause.get_or_insert_with(|| Cause::Failed(protocol_panicked()));
        }
        ended
    }
}

fn left_process(Survivor { pid, name }: Survivor) -> LeftProcess {
    LeftProcess::new(pid, name)
}

/// Returns the warning about processes that could not be killed.
fn processes_left(survivors: &[Survivor]) -> Warning {
    let names = survivors.iter().map(|survivor| format!("{} ({})", survivor.name, survivor.pid)).collect::<Vec<_>>();
    let pids = survivors.iter().map(|survivor| survivor.pid).collect::<Vec<_>>();
    let text = format!("processes of the run could not be killed: {}", names.join(", "));
    Warning::new(WarningCode::ProcessesLeft, text).with("processes", pids)
}
