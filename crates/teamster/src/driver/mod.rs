//! The driver: one loop, the same for every agent and mode.
//!
//! It starts the process tree, feeds the protocol with what happens, does what the protocol says, keeps time, and
//! guarantees the end: exactly one `done`, last, and no process left. Everything that the agent says passes through the
//! transcript, which keeps the rules of the stream, and the outbox, which keeps what the consumer has not taken yet.
//!
//! Order at the end: the leader exits; what it wrote is read; whoever is left of the tree is ended; the leader is reaped;
//! the protocol hears of the exit; the transcript closes the stream. A run that may be started again goes through this once
//! for each attempt, and its stream is closed after the last one.

pub(crate) mod attempts;
pub(crate) mod budget;
pub(crate) mod desk;
mod link;
mod live;
mod log;
pub(crate) mod outbox;
pub(crate) mod pool;
mod prepare;
mod process;
mod retry;
pub(crate) mod session;
pub(crate) mod warm;
mod watchdog;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use teamster_agents::agent::Plan;
use teamster_agents::launch::Launch;
use teamster_agents::protocol::{Action, ExitReport, Input, Outcome, Protocol};
use teamster_agents::transcript::{Cause, End, Transcript};
use teamster_config::RestoreLog;
use teamster_process::{Exit, Ledger, Supervisor};
use teamster_types::event::{ErrorCode, Event, Failure, LeftProcess, Queued, Warning};
use teamster_types::request::{Limits, OrphanPolicy, RunRequest};
use tokio::time::{Duration, Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::agent_server::Password;
use crate::callers::Callers;
use crate::permits::Ticket;
use crate::recording::redact::Redactor;
use crate::recording::{Recorder, Recording};
use crate::run::Outlet;
use crate::setup::environment::Environment;
use crate::setup::path_resolver::DiskPathResolver;
use attempts::Again;
use budget::Budget;
use outbox::{Bounds, Outbox};
use process::Ended;

/// How often the position in the queue is looked at.
const POSITION_INTERVAL: Duration = Duration::from_secs(1);

/// How long a start that is given up may take to end what it has started. It takes that long only where every helper process is
/// stopped or killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// What the host gives to a run.
#[derive(Clone)]
pub(crate) struct Host {
    /// What the CLI inherits.
    pub(crate) environment: Environment,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) ledger: Arc<Ledger>,
    /// Where it is noted what is changed in configuration files, if there is a place for it.
    pub(crate) journals: Option<RestoreLog>,
    /// By which a server that the CLI starts knows us.
    pub(crate) password: Password,
    /// The agent's name.
    pub(crate) agent: String,
    pub(crate) orphans: OrphanPolicy,
    /// Absolute, and a directory a moment ago.
    pub(crate) cwd: PathBuf,
    pub(crate) recording: Option<Recording>,
    /// The conversation, as tools of this program know it.
    pub(crate) callers: Callers,
}

impl Host {
    /// Returns the redactor of the secrets that a CLI with this launch gets.
    pub(crate) fn redactor(&self, launch: &Launch, request: &RunRequest) -> Redactor {
        Redactor::new(&self.environment, &self.password, launch, request)
    }

    /// What writes down what goes in and out of a process that gets these secrets.
    fn recorder(&self, redactor: &Arc<Redactor>) -> Recorder {
        Recorder::new(self.recording.as_ref(), redactor)
    }
}

/// A run to be driven.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    /// Where it may be started again.
    pub(crate) again: Option<Again>,
    /// What is to be said before anything else.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) host: Host,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
}

/// Drives a run from its turn to its `done`. What the consumer has not taken by then is left to the run.
pub(crate) async fn drive(mut ticket: Ticket, job: Job, outlet: Outlet) {
    let Job { plan, again, warnings, host, redactor, limits, budget } = job;
    let outbox = Outbox::new(outlet.events.clone(), outlet.estate.clone(), Bounds::of(&limits));
    let mut story = Story::new(plan.protocol, redactor, outbox, host.recording.clone());
    story.callers = host.callers.next_turn();
    story.budget = budget;
    let stopped = wait_in_queue(&mut ticket, &mut story, &outlet).await;
    story.started = Instant::now();
    for warning in warnings {
        story.say(warning.into());
    }
    let ended = if stopped {
        Ended::by(Cause::Aborted)
    } else {
        attempts::run(plan.launch, again, &mut ticket, host, &limits, &mut story, &outlet).await
    };
    story.settle().await;
    story.end(&ended);
}

/// Waits until a turn is admitted, and emits its position meanwhile. Returns true if the caller ends it before that.
async fn wait_in_queue(ticket: &mut Ticket, story: &mut Story, outlet: &Outlet) -> bool {
    let mut last = None;
    loop {
        if let Some(position) = ticket.position().filter(|position| last != Some(*position)) {
            last = Some(position);
            tracing::debug!(position, "waits for a place among the runs");
            story.say(Event::Queued(Queued { position }));
        }
        tokio::select! {
            biased;
            () = outlet.aborted.cancelled() => return true,
            () = outlet.interrupted.cancelled() => return true,
            () = ticket.granted() => return false,
            () = story.outbox.deliver(), if !story.outbox.is_empty() => {}
            () = sleep(POSITION_INTERVAL) => {}
        }
    }
}

/// Waits for the start. An abort does not cut it short at once: what was started is ended where its end can be told. A start
/// that is cut short has to end what it may have started.
async fn start<T>(
    start: impl AsyncFnOnce(&CancellationToken) -> Result<T, Failure>,
    limits: &Limits,
    outlet: &Outlet,
) -> Result<T, Cause> {
    let stop = CancellationToken::new();
    let mut start = std::pin::pin!(start(&stop));
    let cause = tokio::select! {
        biased;
        started = &mut start => return started.map_err(Cause::Failed),
        () = outlet.aborted.cancelled() => match timeout(limits.grace, &mut start).await {
            Ok(started) => return started.map_err(Cause::Failed),
            Err(_) => Cause::Aborted,
        },
        () = sleep(limits.deadline), if !limits.deadline.is_zero() => Cause::Failed(too_late(limits)),
    };
    stop.cancel();
    // One that was ready at the last moment is ended like any other.
    timeout(STOP_LIMIT, start).await.ok().and_then(Result::ok).ok_or(cause)
}

/// The failure of a run or turn that was longer than its deadline.
fn too_late(limits: &Limits) -> Failure {
    let text = format!("the run took longer than its deadline of {} s", limits.deadline.as_secs_f64());
    Failure::new(ErrorCode::DeadlineExceeded, text)
}

/// What has been said so far, and who understands it.
struct Story {
    protocol: Box<dyn Protocol>,
    transcript: Transcript,
    redactor: Arc<Redactor>,
    outbox: Outbox,
    recording: Option<Recording>,
    callers: Callers,
    budget: Budget,
    /// Why the turn is to be stopped, since it has used up what it may.
    over_budget: Option<Failure>,
    actions: Vec<Action>,
    events: Vec<Event>,
    /// Set when the protocol panicked: it is asked nothing any more.
    panicked: bool,
    /// Set when the agent has said anything at all in this attempt.
    heard: bool,
    started: Instant,
}

/// Gives the protocol our resolver for the paths in rules.
fn with_files(mut protocol: Box<dyn Protocol>) -> Box<dyn Protocol> {
    protocol.set_path_resolver(Box::new(DiskPathResolver));
    protocol
}

impl Story {
    fn new(protocol: Box<dyn Protocol>, redactor: Arc<Redactor>, outbox: Outbox, recording: Option<Recording>) -> Self {
        let (transcript, actions, events) = (Transcript::new(), Vec::new(), Vec::new());
        let (panicked, heard, started) = (false, false, Instant::now());
        let (callers, budget, over_budget) = (Callers::default(), Budget::default(), None);
        let protocol = with_files(protocol);
        Self {
            protocol,
            transcript,
            redactor,
            outbox,
            recording,
            callers,
            budget,
            over_budget,
            actions,
            events,
            panicked,
            heard,
            started,
        }
    }

    /// Tells the protocol what happened; what it wants done stands in `actions` then.
    fn tell(&mut self, input: Input<'_>) {
        if self.panicked {
            return;
        }
        if !self.heard && matches!(input, Input::Line(_) | Input::Server(_)) {
            self.heard = true;
            tracing::debug!("the agent has written its first output");
        }
        let Self { protocol, actions, .. } = self;
        // A bug in one agent's protocol must not take the host down with it.
        if catch_unwind(AssertUnwindSafe(|| protocol.handle(input, actions))).is_err() {
            self.panicked = true;
        }
    }

    /// Takes what the agent says of how the run ended.
    fn conclude(&mut self, outcome: Outcome) {
        if let Some(row) = outcome.classified_by {
            tracing::debug!(matchers = ?row.matchers, code = %row.code, "a row of the failure table matched");
        }
        self.transcript.set_outcome(outcome);
    }

    /// Says an event, as the rules of the stream allow.
    fn say(&mut self, event: Event) {
        self.transcript.push(event, &mut self.events);
        self.pass_on();
    }

    fn pass_on(&mut self) {
        for mut event in self.events.drain(..) {
            self.callers.note(&event);
            self.over_budget = self.budget.note(&event).or(self.over_budget.take());
            self.redactor.event(&mut event);
            log::event(&event);
            if let Some(recording) = &self.recording {
                recording.event(&event, &self.redactor);
            }
            self.outbox.push(event);
        }
    }

    /// Hears what the protocol makes of the exit, when nothing of the process is left.
    fn last_word(&mut self, ended: &mut Ended) {
        self.show_less(&mut ended.stderr);
        // Before anybody takes a piece of it.
        ended.stderr = self.redactor.text(&ended.stderr).into_owned();
        let signal = ended.signal();
        if let Some(report) = ended.report(signal.as_deref()) {
            self.tell(Input::Exited(report));
            for action in std::mem::take(&mut self.actions) {
                match action {
                    Action::Emit(event) => self.say(event),
                    Action::Outcome(outcome) => self.conclude(*outcome),
                    _ => {}
                }
            }
        }
        if self.panicked {
            ended.cause.get_or_insert_with(|| Cause::Failed(bug()));
        }
    }

    /// Takes away what the CLI says for the protocol alone.
    fn show_less(&mut self, stderr: &mut String) {
        if self.panicked {
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| self.protocol.visible_stderr(stderr))) {
            Ok(Some(shown)) => *stderr = shown,
            Ok(None) => {}
            Err(_) => self.panicked = true,
        }
    }

    /// Why an attempt failed; `None` if it went well.
    fn failure(&self, ended: &Ended) -> Option<Failure> {
        let signal = ended.signal();
        let exit = ended.report(signal.as_deref());
        self.transcript.failure(&End { cause: ended.cause.clone(), exit, left: Vec::new(), duration_ms: 0 })
    }

    /// Takes back what an attempt said: the run is started again.
    fn begin_again(&mut self) {
        self.transcript.begin_again(&mut self.events);
        self.pass_on();
    }

    /// Another attempt begins, with a protocol that knows nothing of the last one.
    fn listen_to(&mut self, protocol: Box<dyn Protocol>) {
        self.protocol = with_files(protocol);
        self.actions.clear();
        (self.panicked, self.heard) = (false, false);
    }

    /// Tells what is wrong with the recording.
    async fn settle(&mut self) {
        if let Some(recording) = self.recording.clone()
            && let Some(warning) = recording.problem().await
        {
            self.say(warning.into());
        }
    }

    fn end(&mut self, ended: &Ended) {
        let signal = ended.signal().filter(|_| !ended.dismissed);
        let exit = ended.report(signal.as_deref());
        self.close(ended.cause.clone(), exit, ended.left.clone());
    }

    /// Closes the stream, if it is open.
    fn close(&mut self, cause: Option<Cause>, exit: Option<ExitReport<'_>>, left: Vec<LeftProcess>) {
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.transcript.end(&End { cause, exit, left, duration_ms }, &mut self.events);
        self.pass_on();
    }
}

impl Ended {
    /// Without a process.
    fn by(cause: Cause) -> Self {
        Self { cause: Some(cause), ..Self::default() }
    }

    fn signal(&self) -> Option<Cow<'static, str>> {
        self.exit.and_then(Exit::signal_name)
    }

    /// What the protocol and the transcript are told of the exit.
    fn report<'a>(&'a self, signal: Option<&'a str>) -> Option<ExitReport<'a>> {
        self.exit.map(|exit| ExitReport { code: exit.code, signal, stderr: &self.stderr })
    }
}

/// The driver's task may be dropped at any time, with its Tokio runtime: the process tree is gone by now, and the stream
/// ends as it should.
impl Drop for Story {
    fn drop(&mut self) {
        self.close(Some(Cause::Aborted), None, Vec::new());
    }
}

fn bug() -> Failure {
    Failure::new(ErrorCode::Protocol, "a bug in Teamster: the agent's protocol panicked; the run was ended")
}
