//! The stream of events of a run, and its control.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use teamster_agents::transcript::{Cause, End, Transcript};
use teamster_types::event::{Event, RunFailure, RunResult};
use teamster_types::request::Prompt;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::TaskTracker;

use crate::events::queue::{self, EventReceiver};
use crate::events::stamped::{RunIdentity, StampedEvent, Timed};
use crate::turns::control::Control;
use crate::turns::handle::RunHandle;
use crate::turns::list::TurnOrder;
use crate::turns::stop::StopTokens;
use crate::turns::waiting::Content;

/// A run, or a turn of a session: a stream of events that ends with exactly one [`Event::Done`].
///
/// Dropping it kills the run's process tree: after a grace period while the Tokio runtime is alive, otherwise at once.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use teamster::{Event, RunRequest, Runtime};
///
/// let mut run = Runtime::new().run("codex", RunRequest::new("Say hello"))?;
/// while let Some(event) = run.next().await {
///     match event {
///         Event::Text(delta) => print!("{}", delta.text.escaped()),
///         Event::Done(done) => println!("\n{:?}", done.result.into_result()?.usage),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Run {
    events: EventReceiver,
    control: Control,
    done: bool,
    turn_id: Option<String>,
    identity: RunIdentity,
}

/// The stream of a run with a stamp on each event ([`Run::stamped`]).
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use teamster::{RunRequest, Runtime};
///
/// let mut run = Runtime::new().run("claude", RunRequest::new("Say hello"))?;
/// while let Some(stamped) = run.next_stamped().await {
///     println!("{}", serde_json::to_string(&stamped)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stamped(Run);

impl Run {
    /// Starts the driver in a task of the tracker.
    pub(crate) fn start<F>(
        drivers: &TaskTracker,
        stop: StopTokens,
        identity: RunIdentity,
        drive: impl FnOnce(RunHandle) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (run, handle) = Self::stopped_by(stop, identity);
        drivers.spawn(drive(handle));
        run
    }

    /// Creates a turn of a session. It is stopped when the session is.
    pub(crate) fn of_session(session: &StopTokens, identity: RunIdentity, id: Option<String>) -> (Self, RunHandle) {
        let (mut run, handle) = Self::stopped_by(session.child(), identity);
        run.turn_id = id;
        (run, handle)
    }

    /// Creates a waiting turn of a session.
    pub(crate) fn waiting(
        session: &StopTokens,
        identity: RunIdentity,
        prompt: Prompt,
        permit: OwnedSemaphorePermit,
    ) -> (Self, TurnOrder) {
        let (mut run, handle) = Self::of_session(session, identity, prompt.id.clone());
        let order = TurnOrder::new(Content { prompt, handle, permit }, &mut run.control);
        (run, order)
    }

    fn stopped_by(stop: StopTokens, identity: RunIdentity) -> (Self, RunHandle) {
        let (sender, events) = queue::channel();
        let control = Control::new(stop);
        let handle = control.handle(sender);
        (Self { events, control, done: false, turn_id: None, identity }, handle)
    }

    /// Returns the next event; `None` after [`Event::Done`].
    ///
    /// Cancel safe: the call can be dropped and repeated at any time.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll(context)).await.map(|timed| timed.event)
    }

    /// Returns the next event with its run, turn and time; `None` after [`Event::Done`].
    ///
    /// Cancel safe: the call can be dropped and repeated at any time.
    pub async fn next_stamped(&mut self) -> Option<StampedEvent> {
        std::future::poll_fn(|context| self.poll_stamped(context)).await
    }

    /// Waits for an event, and appends it and further events that are ready to a list, with their stamps. Returns their number; 0
    /// after [`Event::Done`]. A consumer that writes events elsewhere can pass them on in one piece.
    ///
    /// Cancel safe: the call can be dropped and repeated at any time.
    pub async fn next_batch(&mut self, events: &mut Vec<StampedEvent>) -> usize {
        std::future::poll_fn(|context| self.poll_batch(context, events)).await
    }

    /// Returns the stream with a stamp on each event.
    pub fn stamped(self) -> Stamped {
        Stamped(self)
    }

    /// Returns the run's id, a UUID. Turns of a session have the session's id.
    pub fn run_id(&self) -> &str {
        &self.identity.run_id
    }

    /// Returns the turn's id: the [id of its prompt](teamster_types::request::Prompt::id), if it has one, or `own-1`, `own-2`
    /// and so on if the agent started the turn by itself.
    pub fn turn_id(&self) -> Option<&str> {
        self.turn_id.as_deref()
    }

    /// Returns a control for this run.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Reads the stream to its end and returns the result of a run that succeeded.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), teamster::RunError> {
    /// use teamster::{RunRequest, Runtime};
    ///
    /// match Runtime::new().run("claude", RunRequest::new("Say hello"))?.result().await {
    ///     Ok(result) => println!("{}", result.final_text.escaped()),
    ///     Err(error) => eprintln!("{error}; until then: {}", error.result.text.escaped()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The run failed or was stopped. The error contains the result. If [`Event::Done`], which contains the result, was read
    /// from the stream before, the code is [`INVALID_REQUEST`](teamster_types::event::ErrorCode::InvalidRequest).
    pub async fn result(mut self) -> Result<RunResult, RunFailure> {
        while let Some(event) = self.next().await {
            if let Event::Done(done) = event {
                return done.result.into_result();
            }
        }
        Err(RunFailure::without_done())
    }

    fn poll_stamped(&mut self, context: &mut Context<'_>) -> Poll<Option<StampedEvent>> {
        let timed = ready!(self.poll(context));
        Poll::Ready(timed.map(|timed| self.identity.stamp(timed, self.turn_id.as_deref())))
    }

    fn poll_batch(&mut self, context: &mut Context<'_>, events: &mut Vec<StampedEvent>) -> Poll<usize> {
        let before = events.len();
        events.extend(ready!(self.poll_stamped(context)));
        while !self.done
            && let Some(timed) = self.events.next_taken()
        {
            self.done = matches!(timed.event, Event::Done(_));
            events.push(self.identity.stamp(timed, self.turn_id.as_deref()));
        }
        Poll::Ready(events.len() - before)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Timed>> {
        if self.done {
            return Poll::Ready(None);
        }
        let Some(event) = ready!(self.events.poll_next(context)) else {
            self.events.append(events_without_driver());
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
    /// Returns a control for this run.
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

/// Returns the events of a run whose driver never started because its Tokio runtime was dropped.
fn events_without_driver() -> Vec<Event> {
    let mut events = Vec::new();
    Transcript::new().end(&End { cause: Some(Cause::Aborted), ..End::default() }, &mut events);
    events
}
