//! The life of a process: from its start to the moment when nothing of it is left.

use std::pin::Pin;

use bytes::Bytes;
use teamster_process::spawn::PIPE_BYTES;
use teamster_process::{Exit, Frame, OutputReader, ProcessTree, Signal, StdinWriter, Survivor, TailReader};
use teamster_protocol::event::{ErrorCode, Event, Failure, LeftProcess, Warning, WarningCode};
use teamster_protocol::protocol::{Action, Input};
use teamster_protocol::request::{Background, Limits};
use teamster_protocol::transcript::Cause;
use tokio::time::{Instant, sleep_until};

use super::outbox::Outbox;
use super::prepare::Live;
use super::watchdog::{Bark, Watchdog};
use super::{Story, bug};
use crate::run::Outlet;

/// How a process ended, as the driver saw it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Why we ended it, if we did.
    pub(super) cause: Option<Cause>,
    pub(super) exit: Option<Exit>,
    pub(super) stderr: String,
    /// Who lives on.
    pub(super) left: Vec<LeftProcess>,
}

/// Who is being ended, and how far that is.
#[derive(Debug)]
enum Ending {
    /// Nobody.
    No,
    /// The agent was asked politely; from then on it is ended.
    Asked(Instant),
    /// SIGTERM was sent then; SIGKILL follows by itself.
    Forced(Instant),
}

type Terminate<'a> = Pin<Box<dyn Future<Output = Vec<Survivor>> + Send + 'a>>;

/// The driver's hands on a living process.
struct Reins<'a> {
    tree: &'a ProcessTree,
    stdin: &'a mut StdinWriter,
    story: &'a mut Story,
    limits: &'a Limits,
    watchdog: Watchdog,
    ending: Ending,
    terminate: Option<Terminate<'a>>,
    cause: Option<Cause>,
}

/// What the CLI writes.
struct Streams {
    output: OutputReader,
    output_open: bool,
    diagnostics: TailReader,
    diagnostics_open: bool,
}

/// Lives through a process, from its first moment to its last.
pub(super) async fn run(live: Live, story: &mut Story, limits: &Limits, outlet: &Outlet, started: Instant) -> Ended {
    let Live { belongings, tree, output, diagnostics, mut stdin, background, .. } = live;
    let mut streams = Streams { output, output_open: true, diagnostics, diagnostics_open: true };
    // When all of this is dropped, the tree goes before the belongings.
    let (belongings, tree) = (belongings, tree);
    let mut reins = Reins {
        tree: &tree,
        stdin: &mut stdin,
        story,
        limits,
        watchdog: Watchdog::new(started),
        ending: Ending::No,
        terminate: None,
        cause: None,
    };
    reins.live(&mut streams, outlet, started).await;
    reins.drain(&mut streams, outlet).await;

    let cause = reins.cause.take();
    let grace = match reins.ending {
        Ending::Forced(since) => limits.grace.saturating_sub(since.elapsed()),
        _ => limits.grace,
    };
    let forced = reins.is_forced();
    drop(reins);
    let keep = background == Background::Keep && cause.is_none() && !forced;
    let end = delivering(&mut story.outbox, async {
        let survivors = if keep { Vec::new() } else { tree.terminate(grace).await };
        let exit = tree.exited().await;
        let kept = if keep { tree.leave().await } else { Vec::new() };
        (survivors, kept, exit)
    });
    let (survivors, kept, exit) = end.await;
    delivering(&mut story.outbox, belongings.remove()).await;
    if !survivors.is_empty() {
        story.say(left(&survivors).into());
    }
    let left = survivors.into_iter().chain(kept).map(|Survivor { pid, name }| LeftProcess { pid, name }).collect();
    Ended { cause, exit: Some(exit), stderr: streams.diagnostics.text(), left }
}

impl Reins<'_> {
    /// Until the leader has exited. No arm loses anything when another one wins.
    async fn live(&mut self, streams: &mut Streams, outlet: &Outlet, started: Instant) {
        let deadline = (!self.limits.deadline.is_zero()).then(|| started + self.limits.deadline);
        let (mut listening, mut interrupted) = (true, false);
        self.tell(Input::Started);
        loop {
            let listen = !self.story.outbox.is_full();
            if listen && !listening {
                self.watchdog.listen_again(Instant::now());
            }
            listening = listen;
            let alarm = self.alarm(deadline, listening);
            tokio::select! {
                _ = self.tree.exited() => return self.note_stop(outlet),
                read = streams.output.fill(), if streams.output_open && listening => {
                    streams.output_open = is_more(&read);
                    self.frames(&mut streams.output);
                }
                read = streams.diagnostics.fill(), if streams.diagnostics_open => {
                    streams.diagnostics_open = is_more(&read);
                }
                // A CLI that does not read its input is no error by itself: its result or its exit tells.
                _ = self.stdin.flush(), if !self.stdin.is_idle() => {}
                () = self.story.outbox.deliver(), if !self.story.outbox.is_empty() => {}
                () = outlet.interrupted.cancelled(), if !interrupted => {
                    interrupted = true;
                    self.ask_to_stop(Cause::Aborted);
                }
                () = outlet.aborted.cancelled(), if !self.is_forced() => self.force(Some(Cause::Aborted)),
                () = finished(&mut self.terminate), if self.terminate.is_some() => self.terminate = None,
                () = sleep_until(alarm.unwrap_or(started)), if alarm.is_some() => {
                    // The host may have been busy elsewhere: what happened meanwhile came before the alarm.
                    if has_exited(self.tree).await {
                        return self.note_stop(outlet);
                    }
                    if listening && let Ok(Some(1..)) = streams.output.fill_now() {
                        self.frames(&mut streams.output);
                    }
                    self.alarmed(deadline);
                }
            }
        }
    }

    /// What the CLI wrote is in the pipe now. Others may hold it open and write too: they get the drain period.
    async fn drain(&mut self, streams: &mut Streams, outlet: &Outlet) {
        let until = Instant::now() + self.limits.drain;
        while streams.output_open {
            tokio::select! {
                read = streams.output.fill() => {
                    streams.output_open = is_more(&read);
                    self.frames(&mut streams.output);
                }
                read = streams.diagnostics.fill(), if streams.diagnostics_open => {
                    streams.diagnostics_open = is_more(&read);
                }
                () = self.story.outbox.deliver(), if !self.story.outbox.is_empty() => {}
                () = sleep_until(until) => break,
                () = outlet.aborted.cancelled() => break,
            }
        }
        // They may write for ever: what the CLI itself left is no more than the pipe holds, and comes first.
        let mut left = PIPE_BYTES;
        while left > 0
            && let Ok(Some(count @ 1..)) = streams.output.fill_now()
        {
            left = left.saturating_sub(count);
            self.frames(&mut streams.output);
        }
        while let Some(frame) = streams.output.finish() {
            self.frame(frame);
        }
        let mut left = PIPE_BYTES;
        while left > 0
            && let Ok(Some(count @ 1..)) = streams.diagnostics.fill_now()
        {
            left = left.saturating_sub(count);
        }
    }

    fn frames(&mut self, output: &mut OutputReader) {
        while let Some(frame) = output.next() {
            self.frame(frame);
        }
    }

    fn frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::Line(line) | Frame::Unterminated(line) => self.tell(Input::Line(line)),
            Frame::TooLong { head, length } => {
                let text = format!("skipped a line of {length} bytes, more than {}", self.limits.max_line_bytes);
                let head: String = String::from_utf8_lossy(head).chars().take(120).collect();
                self.story.say(Warning::new(WarningCode::LineTooLong, text).with("line", head).into());
            }
        }
    }

    /// Tells the protocol what happened and does what it says.
    fn tell(&mut self, input: Input<'_>) {
        self.story.tell(input);
        if self.story.panicked && !self.is_forced() {
            self.force(Some(Cause::Failed(bug())));
        }
        let mut actions = std::mem::take(&mut self.story.actions);
        for action in actions.drain(..) {
            self.act(action);
        }
        self.story.actions = actions;
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Emit(event) => {
                match &event {
                    Event::Init(_) | Event::Text(_) | Event::Thinking(_) | Event::ToolUse(_) => {
                        self.watchdog.activity(Instant::now());
                    }
                    // Noise, maybe of others who hold the agent's stdout, says nothing about the agent's work.
                    Event::Warning(warning) if warning.code == WarningCode::MalformedLine => {}
                    _ => self.watchdog.alive(Instant::now()),
                }
                self.story.say(event);
            }
            Action::Alive => self.watchdog.alive(Instant::now()),
            Action::Write(bytes) => self.stdin.push(Bytes::from(bytes)),
            Action::CloseStdin => self.stdin.close_when_written(),
            Action::Outcome(outcome) => {
                self.watchdog.final_word(Instant::now());
                self.story.conclude(*outcome);
            }
            Action::Interrupt => self.tree.signal(Signal::Interrupt),
            Action::Stop => self.force(None),
            _ => {}
        }
    }

    /// Notes why we end the run. The first cause stays; and what the agent said before, if it was its final word.
    fn blame(&mut self, cause: Cause) {
        if !self.story.transcript.has_outcome() {
            self.cause.get_or_insert(cause);
        }
    }

    /// Asks the agent to stop, and lets it until the grace period is over.
    fn ask_to_stop(&mut self, cause: Cause) {
        if !matches!(self.ending, Ending::No) {
            return;
        }
        self.blame(cause);
        self.ending = Ending::Asked(Instant::now() + self.limits.grace);
        self.tell(Input::Interrupt);
    }

    /// The agent has exited. A stop that was asked for before this was noticed came first.
    fn note_stop(&mut self, outlet: &Outlet) {
        if outlet.aborted.is_cancelled() || outlet.interrupted.is_cancelled() {
            self.blame(Cause::Aborted);
        }
    }

    fn is_forced(&self) -> bool {
        matches!(self.ending, Ending::Forced(_))
    }

    fn force(&mut self, cause: Option<Cause>) {
        if let Some(cause) = cause {
            self.blame(cause);
        }
        if !self.is_forced() {
            self.ending = Ending::Forced(Instant::now());
            self.terminate = Some(Box::pin(self.tree.terminate(self.limits.grace)));
        }
    }

    /// When something is due next.
    fn alarm(&self, deadline: Option<Instant>, listening: bool) -> Option<Instant> {
        let tool = self.story.transcript.running_tool();
        match self.ending {
            Ending::Forced(_) => None,
            Ending::Asked(until) => Some(until),
            Ending::No => {
                let silent = listening.then(|| self.watchdog.due(self.limits, tool)).flatten();
                silent.into_iter().chain(deadline).min()
            }
        }
    }

    fn alarmed(&mut self, deadline: Option<Instant>) {
        if let Ending::Asked(_) = self.ending {
            return self.force(None);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            let text = format!("the run took longer than its deadline of {} s", self.limits.deadline.as_secs_f64());
            let failure = Failure::new(ErrorCode::DeadlineExceeded, text);
            return self.ask_to_stop(Cause::Failed(failure));
        }
        let tool = self.story.transcript.running_tool();
        if self.watchdog.due(self.limits, tool).is_none_or(|due| due > Instant::now()) {
            return;
        }
        match self.watchdog.bark(self.limits, tool) {
            Bark::Silent(text) => {
                self.ask_to_stop(Cause::Failed(Failure::new(ErrorCode::WatchdogTimeout, text)));
            }
            Bark::ExitOverdue => {
                let seconds = self.limits.after_result.as_secs_f64();
                let text = format!("the CLI did not exit within {seconds} s after its result, and was ended");
                self.story.say(Warning::new(WarningCode::ExitForced, text).into());
                self.force(None);
            }
        }
    }
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

/// Whether the leader has exited by now.
async fn has_exited(tree: &ProcessTree) -> bool {
    tokio::select! {
        biased;
        _ = tree.exited() => true,
        () = std::future::ready(()) => false,
    }
}

/// Whether a stream goes on after this read.
fn is_more(read: &std::io::Result<usize>) -> bool {
    matches!(read, Ok(count) if *count > 0)
}

async fn finished(terminate: &mut Option<Terminate<'_>>) {
    if let Some(terminate) = terminate {
        terminate.await;
    }
}
