//! The stream of one run, and its reins.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use teamster_agents::transcript::{Cause, End, Transcript};
use teamster_types::event::{Event, RunResult};
use teamster_types::request::Prompt;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::driver::outbox::{Backlog, Estate};
use crate::stamp::{RunIdentity, StampedEvent, Timed};
use crate::turns::{Content, TurnOrder, Waiting};

/// Events that wait between the driver and the consumer before the driver's own queue begins.
const CHANNEL_EVENTS: usize = 256;

/// One run: a stream of events that ends in exactly one [`Event::Done`].
///
/// Dropping it ends the run's process tree: politely if the Tokio runtime goes on, at once if it does not.
#[derive(Debug)]
pub struct Run {
    events: mpsc::Receiver<Timed>,
    control: Control,
    estate: Estate,
    /// What the driver left when it ended.
    rest: Option<Backlog>,
    done: bool,
    turn_id: Option<String>,
    identity: RunIdentity,
}

/// The events of a run with their [stamps](StampedEvent): see [`Run::stamped`].
#[derive(Debug)]
pub struct Stamped(Run);

/// The reins of a run, to be held elsewhere than its stream.
#[derive(Clone, Debug)]
pub struct Control {
    interrupt: CancellationToken,
    abort: CancellationToken,
    /// Where this is a turn of a session: what it needs to begin, while it waits.
    waiting: Option<Waiting>,
}

/// The driver's end of a run.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) events: mpsc::Sender<Timed>,
    pub(crate) estate: Estate,
    pub(crate) interrupted: CancellationToken,
    pub(crate) aborted: CancellationToken,
}

impl Outlet {
    /// Whether the caller has asked for the end.
    pub(crate) fn is_ended(&self) -> bool {
        self.aborted.is_cancelled() || self.interrupted.is_cancelled()
    }
}

impl Run {
    /// Starts the driver in a task that the tracker owns.
    pub(crate) fn start<F>(drivers: &TaskTracker, identity: RunIdentity, drive: impl FnOnce(Outlet) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (run, outlet) = Self::with_abort(CancellationToken::new(), identity);
        drivers.spawn(drive(outlet));
        run
    }

    /// A turn of a session, which is aborted when the session is.
    pub(crate) fn of_session(aborted: &CancellationToken, identity: RunIdentity, id: Option<String>) -> (Self, Outlet) {
        let (mut run, outlet) = Self::with_abort(aborted.child_token(), identity);
        run.turn_id = id;
        (run, outlet)
    }

    /// A turn of a session that waits until it can begin.
    pub(crate) fn waiting(
        aborted: &CancellationToken,
        identity: RunIdentity,
        prompt: Prompt,
        place: OwnedSemaphorePermit,
    ) -> (Self, TurnOrder) {
        let (mut run, outlet) = Self::of_session(aborted, identity, prompt.id.clone());
        let order = TurnOrder::new(Content { prompt, outlet, place }, &mut run.control);
        (run, order)
    }

    fn with_abort(abort: CancellationToken, identity: RunIdentity) -> (Self, Outlet) {
        let (sender, events) = mpsc::channel(CHANNEL_EVENTS);
        let control = Control { interrupt: CancellationToken::new(), abort, waiting: None };
        let estate = Estate::default();
        let outlet = Outlet {
            events: sender,
            estate: estate.clone(),
            interrupted: control.interrupt.clone(),
            aborted: control.abort.clone(),
        };
        (Self { events, control, estate, rest: None, done: false, turn_id: None, identity }, outlet)
    }

    /// The next event; `None` after [`Event::Done`].
    ///
    /// Can be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll(context)).await.map(|timed| timed.event)
    }

    /// The next event with its run, its turn and its time; `None` after [`Event::Done`].
    ///
    /// Can be dropped and called again at any time.
    pub async fn next_stamped(&mut self) -> Option<StampedEvent> {
        std::future::poll_fn(|context| self.poll_stamped(context)).await
    }

    /// The stream with the stamp of each event.
    pub fn stamped(self) -> Stamped {
        Stamped(self)
    }

    /// The run's id, a UUID; turns of a session have that of the session.
    pub fn run_id(&self) -> &str {
        &self.identity.run_id
    }

    /// The turn's name: the [id of its prompt](teamster_types::request::Prompt::id), if it has one, or `own-1`, `own-2` and
    /// so on where the agent began the turn by itself.
    pub fn turn_id(&self) -> Option<&str> {
        self.turn_id.as_deref()
    }

    /// The reins.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Reads the stream to its end and gives the result.
    pub async fn result(mut self) -> RunResult {
        loop {
            match self.next().await {
                Some(Event::Done(done)) => return done.result,
                Some(_) => {}
                None => return RunResult::default(),
            }
        }
    }

    fn poll_stamped(&mut self, context: &mut Context<'_>) -> Poll<Option<StampedEvent>> {
        let timed = ready!(self.poll(context));
        Poll::Ready(timed.map(|timed| self.identity.stamp(timed, self.turn_id.as_deref())))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Timed>> {
        if self.done {
            return Poll::Ready(None);
        }
        let event = match &mut self.rest {
            None => ready!(self.events.poll_recv(context)),
            Some(rest) => rest.pop(),
        };
        let Some(event) = event else {
            self.rest = Some(self.estate.take().unwrap_or_else(nothing_said));
            return self.poll(context);
        };
        self.done = matches!(event.event, Event::Done(_));
        Poll::Ready(Some(event))
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll(context).map(|timed| timed.map(|timed| timed.event))
    }
}

impl Stamped {
    /// The run's control.
    pub fn control(&self) -> Control {
        self.0.control()
    }
}

impl Stream for Stamped {
    type Item = StampedEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StampedEvent>> {
        self.0.poll_stamped(context)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.control.abort();
    }
}

impl Control {
    /// Asks the agent to stop. What does not stop within the grace period is ended. A turn that waits ends at once.
    pub fn interrupt(&self) {
        self.interrupt.cancel();
        self.cancel();
    }

    /// Ends the run at once: SIGTERM to the process tree, SIGKILL after the grace period.
    pub fn abort(&self) {
        self.abort.cancel();
        self.cancel();
    }

    /// Ends a turn that waits.
    fn cancel(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.cancel();
        }
    }

    pub(crate) fn cancel_with(&mut self, waiting: Waiting) {
        self.waiting = Some(waiting);
    }
}

/// For a run whose driver never began, since its Tokio runtime was dropped first.
fn nothing_said() -> Backlog {
    let mut events = Vec::new();
    Transcript::new().end(&End { cause: Some(Cause::Aborted), ..End::default() }, &mut events);
    let mut backlog = Backlog::default();
    for event in events {
        backlog.push(event);
    }
    backlog
}
