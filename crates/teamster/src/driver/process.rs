//! A process that was started: listened to between turns, ended when its time has come.

use teamster_agents::protocol::{Action, Command, Input, Protocol};
use teamster_agents::transcript::Cause;
use teamster_process::spawn::PIPE_BYTES;
use teamster_process::{Exit, Frame, OutputReader, ProcessTree, Survivor, TailReader};
use teamster_types::event::{Failure, LeftProcess, Warning, WarningCode};
use teamster_types::request::{Limits, OrphanPolicy};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::Story;
use super::desk::Kept;
use super::link::Link;
use super::live::{MOST_UNREAD, Opening, attend};
use super::outbox::Outbox;
use super::prepare::{Belongings, Live};
use crate::agent_server::{ServerEvent, next_event};
use crate::run::Outlet;
use crate::setup::project_guard::ProjectGuard;
use crate::threads::blocking;

/// How many reads in a row [`Process::idle`] makes before it lets others go on.
const READS: u32 = 8;

/// How a process ended, as the driver saw it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Why we ended it, if we did.
    pub(super) cause: Option<Cause>,
    pub(super) exit: Option<Exit>,
    /// Whether we ended it because it had no more to do: how it ended is no news then.
    pub(super) dismissed: bool,
    pub(super) stderr: String,
    /// Who lives on.
    pub(super) left: Vec<LeftProcess>,
}

/// A process that was started, and what it writes.
#[derive(Debug)]
pub(super) struct Process {
    // When all of this is dropped, the tree goes before the belongings.
    pub(super) tree: ProcessTree,
    belongings: Belongings,
    orphans: OrphanPolicy,
    project_guard: Option<ProjectGuard>,
    pub(super) link: Link,
    pub(super) streams: Streams,
}

/// How a process was left.
#[derive(Debug)]
pub(super) struct Seen {
    /// Why it is ended, if it is.
    pub(super) cause: Option<Cause>,
    pub(super) forced: Option<Forced>,
    /// Whether its leader lives: a session's turn is over, and the next one may come.
    pub(super) lives: bool,
    /// Whether another process is to go on with the conversation.
    pub(super) reopen: bool,
    pub(super) then: Then,
    /// What does not belong to this turn.
    pub(super) rest: Vec<Action>,
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Then {
    /// Whatever is sent next.
    #[default]
    Next,
    /// The agent begins the next one by itself, with what was said too late.
    Begins,
    /// The same once more: the agent has not taken the prompt.
    Again,
}

/// A process is being ended by force.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forced {
    pub(super) since: Instant,
    /// Whether that is because there is no more to do.
    pub(super) dismissed: bool,
}

/// What the CLI writes.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) output: OutputReader,
    pub(super) output_open: bool,
    pub(super) diagnostics: TailReader,
    pub(super) diagnostics_open: bool,
}

/// Lives through a process, from its first moment to its last.
pub(super) async fn run(live: Live, story: &mut Story, limits: &Limits, outlet: &Outlet, started: Instant) -> Ended {
    let mut process = Process::new(live);
    let seen = attend(&mut process, Opening::Tell(&[Input::Started]), story, limits, outlet, None, started).await;
    process.end(seen, story, limits).await
}

impl Process {
    pub(super) fn new(live: Live) -> Self {
        let Live { belongings, tree, output, diagnostics, link, orphans, project_guard, .. } = live;
        let streams = Streams { output, output_open: true, diagnostics, diagnostics_open: true };
        Self { tree, belongings, orphans, project_guard, link, streams }
    }

    /// Whether it may have another turn: the directory may hold now what it must not.
    pub(super) fn may_go_on(&self) -> impl Future<Output = Result<(), Failure>> + use<> {
        let project_guard = self.project_guard.clone();
        async {
            let Some(project_guard) = project_guard else { return Ok(()) };
            blocking(move || project_guard.check()).await
        }
    }

    /// Ends whoever is left of the tree, and removes what belonged to it.
    pub(super) async fn end(self, seen: Seen, story: &mut Story, limits: &Limits) -> Ended {
        let Self { tree, belongings, orphans, streams, link, .. } = self;
        let Seen { cause, forced, .. } = seen;
        let dismissed = forced.is_some_and(|forced| forced.dismissed);
        let grace = forced.map_or(limits.grace, |forced| limits.grace.saturating_sub(forced.since.elapsed()));
        let keep = orphans == OrphanPolicy::Keep && cause.is_none() && forced.is_none();
        let end = delivering(&mut story.outbox, async {
            let survivors = if keep { Vec::new() } else { tree.terminate(grace).await };
            let exit = tree.exited().await;
            let kept = if keep { tree.detach().await } else { Vec::new() };
            (survivors, kept, exit)
        });
        let (survivors, kept, exit) = end.await;
        tracing::debug!(
            code = exit.code,
            signal = exit.signal_name().as_deref(),
            left = survivors.len(),
            "the CLI has exited"
        );
        link.recorder.exit(exit);
        for warning in delivering(&mut story.outbox, belongings.remove()).await {
            story.say(warning.into());
        }
        if !survivors.is_empty() {
            story.say(left(&survivors).into());
        }
        let left = survivors.into_iter().chain(kept).map(left_process).collect();
        Ended { cause, exit: Some(exit), dismissed, stderr: streams.diagnostics.text(), left }
    }

    /// Listens between turns, and returns when the leader has exited, or its server cannot be reached; or when the agent begins a
    /// turn by itself. What is said goes to the protocol, which may have to answer; what is to be told waits for the next turn. Can be dropped and
    /// called again at any time.
    pub(super) async fn idle(&mut self, protocol: &mut dyn Protocol, kept: &mut Kept) {
        let Self { tree, link, streams, .. } = self;
        let mut left = None::<usize>;
        let mut reads = 0_u32;
        loop {
            // Tokio lets a task read only so much before it must yield; whoever waits beside this would never get a turn
            // if an agent that writes all the time used up all of it.
            reads += 1;
            if reads.is_multiple_of(READS) {
                yield_now().await;
            }
            // The first time, what was read with the end of the turn.
            while let Some(frame) = streams.output.next() {
                link.recorder.output(&frame);
                if let Frame::Line(line) | Frame::Unterminated(line) = frame {
                    kept.tell(protocol, Input::Line(line), link);
                }
                if kept.unasked.is_some() {
                    break;
                }
            }
            if kept.unasked.is_some() {
                return;
            }
            // What the leader wrote before its end is in the pipe. Others may write for ever.
            if let Some(left) = &mut left {
                match streams.output.fill_now() {
                    Ok(Some(count @ 1..)) if *left > 0 => *left = left.saturating_sub(count),
                    _ => return,
                }
                continue;
            }
            tokio::select! {
                _ = tree.exited() => left = Some(PIPE_BYTES),
                read = streams.output.fill(), if streams.output_open && link.stdin.pending() <= MOST_UNREAD => {
                    streams.output_open = is_more(&read);
                }
                read = streams.diagnostics.fill(), if streams.diagnostics_open => {
                    streams.diagnostics_open = is_more(&read);
                    while let Some(line) = streams.diagnostics.next_line() {
                        link.recorder.diagnostic(line);
                        kept.tell(protocol, Input::Diagnostic(line), link);
                    }
                }
                _ = link.stdin.flush(), if !link.stdin.is_idle() => {}
                heard = next_event(&mut link.server) => match &heard {
                    ServerEvent::Unreachable { .. } => return,
                    heard => kept.hear(protocol, heard, link),
                },
            }
        }
    }

    /// Tells the protocol what happens between turns.
    pub(super) fn tell(&mut self, protocol: &mut dyn Protocol, kept: &mut Kept, input: Input<'_>) {
        kept.tell(protocol, input, &mut self.link);
    }

    /// Asks the leader to exit, and waits for that and for its tree to be gone, for so long at most; then it is ended. Returns
    /// the processes that live on.
    pub(super) async fn close(mut self, protocol: &mut dyn Protocol, limits: &Limits) -> Vec<LeftProcess> {
        let mut kept = Kept::default();
        kept.tell(protocol, Input::Command(Command::Close), &mut self.link);
        // Some have no way to exit by themselves, and say so.
        if !kept.reopen {
            // A turn that it begins now is heard by nobody.
            let exit = async {
                loop {
                    self.idle(protocol, &mut kept).await;
                    if kept.unasked.take().is_none() {
                        return;
                    }
                }
            };
            _ = timeout(limits.grace, exit).await;
        }
        let Self { tree, belongings, orphans, link, .. } = self;
        let left = if orphans == OrphanPolicy::Keep {
            tree.detach().await
        } else {
            let survivors = tree.terminate(limits.grace).await;
            link.recorder.exit(tree.exited().await);
            survivors
        };
        belongings.remove_unheard().await;
        left.into_iter().map(left_process).collect()
    }
}

fn left_process(Survivor { pid, name }: Survivor) -> LeftProcess {
    LeftProcess { pid, name: name.into() }
}

/// Says who could not be ended.
fn left(survivors: &[Survivor]) -> Warning {
    let names = survivors.iter().map(|survivor| format!("{} ({})", survivor.name, survivor.pid)).collect::<Vec<_>>();
    let pids = survivors.iter().map(|survivor| survivor.pid).collect::<Vec<_>>();
    let text = format!("processes of the run could not be ended: {}", names.join(", "));
    Warning::new(WarningCode::ProcessesLeft, text).with("processes", pids)
}

/// Waits for something while the consumer gets what it has not got yet.
async fn delivering<F: Future>(outbox: &mut Outbox, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    loop {
        tokio::select! {
            output = &mut future => return output,
            () = outbox.deliver(), if !outbox.is_empty() => {}
        }
    }
}

/// Whether a stream goes on after this read.
pub(super) fn is_more(read: &std::io::Result<usize>) -> bool {
    matches!(read, Ok(count) if *count > 0)
}
