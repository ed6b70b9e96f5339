//! The driver: one loop, the same for every agent and mode.
//!
//! It starts the process tree, feeds the protocol with what happens, does what the protocol says, keeps time, and
//! guarantees the end: exactly one `done`, last, and no process left. Everything that the agent says passes through the
//! transcript, which keeps the rules of the stream, and the outbox, which keeps what the consumer has not taken yet.
//!
//! Order at the end: the leader exits; what it wrote is read; whoever is left of the tree is ended; the leader is reaped;
//! the protocol hears of the exit; the transcript closes the stream.

pub(crate) mod environment;
mod live;
pub(crate) mod outbox;
mod overlay;
mod prepare;
pub(crate) mod redact;
mod stand_in;
mod watchdog;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use teamster_process::{Exit, Ledger, Supervisor};
use teamster_protocol::agent::Plan;
use teamster_protocol::event::{ErrorCode, Event, Failure, Warning};
use teamster_protocol::protocol::{Action, ExitReport, Input, Protocol};
use teamster_protocol::request::Limits;
use teamster_protocol::transcript::{Cause, End, Transcript};
use tokio::time::{Instant, timeout};

use crate::gate::Turn;
use crate::run::Outlet;
use environment::Environment;
use outbox::{Bounds, Outbox};
use redact::Redactor;

/// What the host gives to a run.
pub(crate) struct Host {
    /// What the CLI inherits.
    pub(crate) environment: Environment,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) ledger: Arc<Ledger>,
    /// The agent's name.
    pub(crate) agent: String,
    /// Absolute, and a directory a moment ago.
    pub(crate) cwd: PathBuf,
}

/// Drives a run from its turn to its `done`. What the consumer has not taken by then is left to the run.
pub(crate) async fn drive(
    mut turn: Turn,
    plan: Plan,
    warnings: Vec<Warning>,
    host: Host,
    redactor: Redactor,
    limits: Limits,
    outlet: Outlet,
) {
    let stopped = tokio::select! {
        biased;
        () = outlet.aborted.cancelled() => true,
        () = outlet.interrupted.cancelled() => true,
        () = turn.come() => false,
    };
    let started = Instant::now();
    let outbox = Outbox::new(outlet.events.clone(), outlet.estate.clone(), Bounds::of(&limits));
    let mut story = Story::new(plan.protocol, redactor, outbox, started);
    for warning in warnings {
        story.say(warning.into());
    }
    let start = if stopped {
        Err(Cause::Aborted)
    } else {
        start(prepare::start(plan.launch, host, &limits), &limits, &outlet).await
    };
    let ended = match start {
        Ok(mut live) => {
            if let Some(warning) = live.warning.take() {
                story.say(warning.into());
            }
            live::run(live, &mut story, &limits, &outlet, started).await
        }
        Err(cause) => live::Ended { cause: Some(cause), ..live::Ended::default() },
    };
    story.end(ended);
}

/// Waits for the start. An abort does not cut it short at once: what was started is ended where its end can be told.
async fn start(
    start: impl Future<Output = Result<prepare::Live, Failure>>,
    limits: &Limits,
    outlet: &Outlet,
) -> Result<prepare::Live, Cause> {
    let mut start = std::pin::pin!(start);
    let started = tokio::select! {
        biased;
        started = &mut start => started,
        () = outlet.aborted.cancelled() => timeout(limits.grace, start).await.map_err(|_| Cause::Aborted)?,
    };
    started.map_err(Cause::Failed)
}

/// What has been said so far, and who understands it.
struct Story {
    protocol: Box<dyn Protocol>,
    transcript: Transcript,
    redactor: Redactor,
    outbox: Outbox,
    actions: Vec<Action>,
    events: Vec<Event>,
    /// Set when the protocol panicked: it is asked nothing any more.
    panicked: bool,
    started: Instant,
}

impl Story {
    fn new(protocol: Box<dyn Protocol>, redactor: Redactor, outbox: Outbox, started: Instant) -> Self {
        let (transcript, actions, events) = (Transcript::new(), Vec::new(), Vec::new());
        Self { protocol, transcript, redactor, outbox, actions, events, panicked: false, started }
    }

    /// Tells the protocol what happened; what it wants done stands in `actions` then.
    fn tell(&mut self, input: Input<'_>) {
        if self.panicked {
            return;
        }
        let Self { protocol, actions, .. } = self;
        // A bug in one agent's protocol must not take the host down with it.
        if catch_unwind(AssertUnwindSafe(|| protocol.handle(input, actions))).is_err() {
            self.panicked = true;
        }
    }

    /// Says an event, as the rules of the stream allow.
    fn say(&mut self, event: Event) {
        self.transcript.push(event, &mut self.events);
        self.pass_on();
    }

    fn pass_on(&mut self) {
        for mut event in self.events.drain(..) {
            self.redactor.event(&mut event);
            self.outbox.push(event);
        }
    }

    fn end(&mut self, ended: live::Ended) {
        let live::Ended { cause, exit, stderr } = ended;
        // Before anybody takes a piece of it.
        let stderr = self.redactor.text(&stderr).into_owned();
        let signal = exit.and_then(Exit::signal_name);
        let report = exit.map(|exit| ExitReport { code: exit.code, signal: signal.as_deref(), stderr: &stderr });
        if let Some(report) = report {
            self.tell(Input::Exited(report));
            for action in std::mem::take(&mut self.actions) {
                match action {
                    Action::Emit(event) => self.say(event),
                    Action::Outcome(outcome) => self.transcript.set_outcome(*outcome),
                    _ => {}
                }
            }
        }
        let cause = match cause {
            None if self.panicked => Some(Cause::Failed(bug())),
            cause => cause,
        };
        self.close(cause, report);
    }

    /// Closes the stream, if it is open.
    fn close(&mut self, cause: Option<Cause>, exit: Option<ExitReport<'_>>) {
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.transcript.end(&End { cause, exit, duration_ms }, &mut self.events);
        self.pass_on();
    }
}

/// The driver's task may be dropped at any time, with its Tokio runtime: the process tree is gone by now, and the stream
/// ends as it should.
impl Drop for Story {
    fn drop(&mut self) {
        self.close(Some(Cause::Aborted), None);
    }
}

fn bug() -> Failure {
    Failure::new(ErrorCode::Protocol, "a bug in Teamster: the agent's protocol panicked; the run was ended")
}
