//! What the driver does while a process lives: until its leader has exited, or until a turn of a session is over.

mod alarm;
mod hearing;

use std::pin::Pin;

use teamster_agents::protocol::{Action, Command, Input, Taken};
use teamster_agents::transcript::Cause;
use teamster_process::{ProcessTree, Signal, Survivor};
use teamster_types::event::{
    AnsweredBy, Event, PermissionAnswered, PermissionDecision, RequestId, SteerId, WarningCode,
};
use teamster_types::request::{Answer, Limits};
use tokio::time::{Instant, sleep_until};

use self::alarm::has_exited;
use super::desk::{Asked, Desk, Given};
use super::link::Link;
use super::log::Wait;
use super::process::{Forced, Process, Seen, Streams, Then, is_more};
use super::watchdog::Watchdog;
use super::{Story, bug};
use crate::agent_server::{ServerEvent, next_event};
use crate::run::Outlet;

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

/// How many bytes of answers wait to be read by an agent before its output is not read any more. It is silent then, and the limits
/// of silence end it.
pub(super) const MOST_UNREAD: usize = 16 << 20;

type Terminate<'a> = Pin<Box<dyn Future<Output = Vec<Survivor>> + Send + 'a>>;

/// With what a turn begins, or a run.
pub(super) enum Opening<'a> {
    /// The protocol is told this.
    Tell(&'a [Input<'a>]),
    /// The agent has begun, and the protocol has said this.
    Begun(Vec<Action>),
}

/// The driver's hands on a living process.
struct Reins<'a> {
    tree: &'a ProcessTree,
    link: &'a mut Link,
    story: &'a mut Story,
    limits: &'a Limits,
    watchdog: Watchdog,
    /// When the limits are judged: what was said before they were reached is read until then.
    judged_at: Option<Instant>,
    /// Alarms that came late since the agent last did something.
    halts: u8,
    /// What was logged last of what is waited for.
    logged: Option<Wait>,
    ending: Ending,
    terminate: Option<Terminate<'a>>,
    cause: Option<Cause>,
    /// Where this is a turn of a session: who says what else is wanted.
    desk: Option<&'a mut Desk>,
    reopen: bool,
    /// The process is ended because there is no more to do.
    dismissed: bool,
    then: Then,
    /// What does not belong to the turn any more.
    rest: Option<Vec<Action>>,
    /// Answers that the rules of the request give, not told yet.
    by_rule: Vec<Given>,
    /// How the agent takes the answer to a request that it withdraws next.
    taken: Option<Box<Taken>>,
    /// The protocol's actions end the turn.
    concludes: bool,
    /// When more bytes than this wait to be read by the agent, nothing more is read of it.
    most_unread: usize,
}

/// Until the leader has exited and what it wrote has been read; with a desk, until the turn is over at the latest.
pub(super) async fn attend(
    process: &mut Process,
    opening: Opening<'_>,
    story: &mut Story,
    limits: &Limits,
    outlet: &Outlet,
    desk: Option<&mut Desk>,
    started: Instant,
) -> Seen {
    let mut watchdog = Watchdog::new(started);
    if !matches!(opening, Opening::Tell([Input::Started, ..])) {
        watchdog.activity(started);
    }
    let mut reins = Reins {
        tree: &process.tree,
        link: &mut process.link,
        story,
        limits,
        watchdog,
        judged_at: None,
        halts: 0,
        logged: None,
        ending: Ending::No,
        terminate: None,
        cause: None,
        desk,
        reopen: false,
        dismissed: false,
        then: Then::Next,
        rest: None,
        by_rule: Vec::new(),
        taken: None,
        concludes: false,
        most_unread: MOST_UNREAD,
    };
    if let Some(desk) = &mut reins.desk {
        desk.steers = reins.story.protocol.supports_steering();
    }
    match opening {
        Opening::Tell(inputs) => inputs.iter().for_each(|input| reins.tell(*input)),
        Opening::Begun(actions) => reins.follow(actions),
    }
    reins.expect_unread();
    let lives = reins.live(&mut process.streams, outlet, started).await;
    if lives {
        reins.deny_all();
    } else {
        reins.drain(&mut process.streams, outlet).await;
    }
    let forced = match reins.ending {
        Ending::Forced(since) => Some(Forced { since, dismissed: reins.dismissed }),
        _ => None,
    };
    let rest = reins.rest.take().unwrap_or_default();
    let Reins { reopen, then, .. } = reins;
    Seen { cause: reins.cause.take(), forced, lives, reopen, then, rest }
}

impl Reins<'_> {
    /// Until the leader has exited, or the session's turn is over; tells whether the leader lives. No arm loses anything
    /// when another one wins.
    async fn live(&mut self, streams: &mut Streams, outlet: &Outlet, started: Instant) -> bool {
        let deadline = (!self.limits.deadline.is_zero()).then(|| started + self.limits.deadline);
        let (mut listening, mut interrupted) = (true, false);
        // What was read with the end of the turn before.
        self.frames(&mut streams.output);
        loop {
            if self.is_answered() {
                return true;
            }
            let reading = self.link.stdin.pending() <= self.most_unread;
            let listen = !self.story.outbox.is_full();
            if listen && !listening {
                self.watchdog.listen_again(Instant::now());
            }
            listening = listen;
            self.log_wait(listening);
            let alarm = self.alarm(deadline, listening);
            tokio::select! {
                _ = self.tree.exited() => break,
                read = streams.output.fill(), if streams.output_open && listening && reading => {
                    streams.output_open = is_more(&read);
                    self.frames(&mut streams.output);
                }
                read = streams.diagnostics.fill(), if streams.diagnostics_open => {
                    streams.diagnostics_open = is_more(&read);
                    self.diagnostics(&mut streams.diagnostics);
                }
                // A CLI that does not read its input is no error by itself: its result or its exit tells.
                _ = self.link.stdin.flush(), if !self.link.stdin.is_idle() => {}
                heard = next_event(&mut self.link.server), if listening => {
                    // A reply comes after what the CLI said of it in its diagnostics.
                    if matches!(heard, ServerEvent::Reply { .. })
                        && streams.diagnostics_open
                        && let Ok(Some(1..)) = streams.diagnostics.fill_now()
                    {
                        self.diagnostics(&mut streams.diagnostics);
                    }
                    self.hear(&heard);
                }
                () = self.story.outbox.deliver(), if !self.story.outbox.is_empty() => {}
                () = outlet.interrupted.cancelled(), if !interrupted => {
                    interrupted = true;
                    self.ask_to_stop(Cause::Aborted);
                }
                () = outlet.aborted.cancelled(), if !self.is_forced() => self.force(Some(Cause::Aborted)),
                () = finished(&mut self.terminate), if self.terminate.is_some() => self.terminate = None,
                asked = ask(&mut self.desk), if self.desk.is_some() => self.asked(asked),
                () = sleep_until(alarm.unwrap_or(started)), if alarm.is_some() => {
                    if has_exited(self.tree).await {
                        break;
                    }
                    self.due(alarm.unwrap_or(started), deadline, streams, listening && reading).await;
                }
            }
        }
        self.note_stop(outlet);
        false
    }

    /// The caller's own words may be of any length, and the agent may write before it reads them: what was written for them does
    /// not keep its output from being read.
    fn expect_unread(&mut self) {
        self.most_unread = self.most_unread.max(self.link.stdin.pending().saturating_add(MOST_UNREAD));
    }

    /// Whether this is a turn of a session that is over, with nobody being ended.
    fn is_answered(&self) -> bool {
        let is_over = self.then == Then::Again || self.story.transcript.has_outcome();
        self.desk.is_some() && is_over && !self.is_forced()
    }

    /// Whether the agent waits for the caller.
    fn is_awaited(&self) -> bool {
        self.desk.as_ref().is_some_and(|desk| desk.is_awaited())
    }

    /// The caller of the session wants something in mid-turn.
    fn asked(&mut self, asked: Asked) {
        match asked {
            Asked::Steer { id, prompt } if matches!(self.ending, Ending::No) => {
                self.tell(Input::Command(Command::Steer { id: &id, prompt: &prompt }));
                self.expect_unread();
            }
            Asked::Steer { id, .. } => self.steered(&id, false),
            Asked::Answer(given) => {
                self.watchdog.activity(Instant::now());
                self.answer(&given);
            }
            Asked::SetModel(model) => self.tell(Input::Command(Command::SetModel(&model))),
            Asked::SetPermissionMode(mode) => self.tell(Input::Command(Command::SetPermissionMode(mode))),
        }
    }

    /// Tells the protocol what happened and does what it says.
    fn tell(&mut self, input: Input<'_>) {
        self.story.tell(input);
        self.told();
    }

    /// Gives the agent an answer, and reports what it was before anything that comes of it.
    fn answer(&mut self, given: &Given) {
        self.story.tell(given.input());
        // If the protocol has panicked, the agent gets no answer.
        if !self.story.panicked {
            let event = given.event(&self.story.actions);
            self.story.say(event);
        }
        self.told();
    }

    /// Does what the protocol said last.
    fn told(&mut self) {
        if self.story.panicked && !self.is_forced() {
            self.force(Some(Cause::Failed(bug())));
        }
        let mut actions = std::mem::take(&mut self.story.actions);
        self.concludes = actions.iter().any(|action| matches!(action, Action::Outcome(_)));
        self.follow(actions.drain(..));
        self.story.actions = actions;
    }

    /// Does what the protocol says.
    fn follow(&mut self, actions: impl IntoIterator<Item = Action>) {
        for action in actions {
            match &mut self.rest {
                Some(rest) => rest.push(action),
                None => self.act(action),
            }
        }
        for given in std::mem::take(&mut self.by_rule) {
            self.answer(&given);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Emit(mut event) => {
                if let Some(desk) = &mut self.desk {
                    if let Some(answer) = desk.by_rule(&event) {
                        self.watchdog.alive(Instant::now());
                        return self.by_rule.push(answer);
                    }
                    desk.note(&mut event, self.limits.answer);
                }
                match &event {
                    Event::Init(_) | Event::Text(_) | Event::Thinking(_) | Event::ToolUse(_) => {
                        self.watchdog.activity(Instant::now());
                        // Once a limit waits to be judged, an agent that writes without end cannot put that off.
                        if self.judged_at.is_none() {
                            self.halts = 0;
                        }
                    }
                    // Noise, maybe of others who hold the agent's stdout, says nothing about the agent's work.
                    Event::Warning(warning) if warning.code == WarningCode::MalformedLine => {}
                    _ => self.watchdog.alive(Instant::now()),
                }
                self.story.say(event);
                if let Some(failure) = self.story.over_budget.take() {
                    self.ask_to_stop(Cause::Failed(failure));
                }
            }
            Action::Alive => self.watchdog.alive(Instant::now()),
            Action::Outcome(outcome) => {
                self.watchdog.final_word(Instant::now());
                self.story.conclude(*outcome);
            }
            Action::Answered(taken) => self.taken = Some(taken),
            Action::Withdraw(request) => self.withdraw(request),
            Action::Steered { id, heard } => self.steered(&id, heard),
            Action::SteerTurnStarted => self.then = Then::Begins,
            Action::AgentTurnStarted if self.is_answered() => self.rest = Some(vec![Action::AgentTurnStarted]),
            Action::PromptNotAccepted if self.desk.is_some() => {
                (self.then, self.rest) = (Then::Again, Some(Vec::new()));
            }
            Action::RestartProcess => self.reopen = true,
            Action::Interrupt => self.tree.signal(Signal::Interrupt),
            Action::Stop => self.force(None),
            Action::Shutdown => {
                self.dismissed = !self.is_forced();
                self.force(None);
            }
            action => self.link.pass_on(action),
        }
    }

    /// The agent does not wait for an answer any more.
    fn withdraw(&mut self, request: RequestId) {
        if let Some(desk) = &mut self.desk {
            desk.withdraw(&request);
        }
        let ends = self.concludes || self.story.transcript.has_outcome() || !matches!(self.ending, Ending::No);
        let by = if ends { AnsweredBy::End } else { AnsweredBy::Agent };
        let taken = self.taken.take().filter(|taken| taken.request == request);
        let decision = taken.map_or(PermissionDecision::Cancelled, |taken| taken.decision);
        self.story.say(PermissionAnswered::new(request, decision, by).into());
    }

    fn steered(&mut self, id: &SteerId, heard: bool) {
        if let Some(desk) = &mut self.desk {
            desk.steered(id, heard);
        }
    }

    /// Notes why we end the run. The first cause stays; and what the agent said before, if it was its final word.
    fn blame(&mut self, cause: Cause) {
        if !self.story.transcript.has_outcome() {
            self.cause.get_or_insert(cause);
        }
    }

    /// The turn is over, and with it the caller's time to answer.
    fn deny_all(&mut self) {
        for request in self.desk.as_mut().map(|desk| desk.clear()).unwrap_or_default() {
            let answer = Answer::Deny { message: Some("The turn is over.".to_owned()) };
            self.answer(&Given::of(request, answer, AnsweredBy::End));
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
}

/// What the caller of a session wants in mid-turn.
async fn ask(desk: &mut Option<&mut Desk>) -> Asked {
    match desk {
        Some(desk) => desk.next().await,
        None => std::future::pending().await,
    }
}

async fn finished(terminate: &mut Option<Terminate<'_>>) {
    if let Some(terminate) = terminate {
        terminate.await;
    }
}
