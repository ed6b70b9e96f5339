//! The stream of one run, and its reins.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use teamster_protocol::event::{Event, RunResult};
use teamster_protocol::transcript::{Cause, End, Transcript};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::driver::outbox::{Backlog, Estate};

/// Events that wait between the driver and the consumer before the driver's own queue begins.
const CHANNEL_EVENTS: usize = 256;

/// One run: a stream of events that ends in exactly one [`Event::Done`].
///
/// Dropping it ends the run's process tree: politely if the Tokio runtime goes on, at once if it does not.
#[derive(Debug)]
pub struct Run {
    events: mpsc::Receiver<Event>,
    control: Control,
    estate: Estate,
    /// What the driver left when it ended.
    rest: Option<Backlog>,
    done: bool,
}

/// The reins of a run, to be held elsewhere than its stream.
#[derive(Clone, Debug)]
pub struct Control {
    interrupt: CancellationToken,
    abort: CancellationToken,
}

/// The driver's end of a run.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) events: mpsc::Sender<Event>,
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
    pub(crate) fn start<F>(drivers: &TaskTracker, drive: impl FnOnce(Outlet) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (run, outlet) = Self::with_abort(CancellationToken::new());
        drivers.spawn(drive(outlet));
        run
    }

    /// A turn of a session, which is aborted when the session is.
    pub(crate) fn of_session(aborted: &CancellationToken) -> (Self, Outlet) {
        Self::with_abort(aborted.child_token())
    }

    fn with_abort(abort: CancellationToken) -> (Self, Outlet) {
        let (sender, events) = mpsc::channel(CHANNEL_EVENTS);
        let control = Control { interrupt: CancellationToken::new(), abort };
        let estate = Estate::default();
        let outlet = Outlet {
            events: sender,
            estate: estate.clone(),
            interrupted: control.interrupt.clone(),
            aborted: control.abort.clone(),
        };
        (Self { events, control, estate, rest: None, done: false }, outlet)
    }

    /// The next event; `None` after [`Event::Done`].
    ///
    /// Can be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll(context)).await
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

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
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
        self.done = matches!(event, Event::Done(_));
        Poll::Ready(Some(event))
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll(context)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.control.abort();
    }
}

impl Control {
    /// Asks the agent to stop. What does not stop within the grace period is ended.
    pub fn interrupt(&self) {
        self.interrupt.cancel();
    }

    /// Ends the run at once: SIGTERM to the process tree, SIGKILL after the grace period.
    pub fn abort(&self) {
        self.abort.cancel();
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
