//! Views of a stream of events: whole messages, a selection of events, the result alone.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use teamster_types::event::{Delta, Event, RunFailure, RunResult};

/// Views of a stream of events.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use teamster::stream::EventStream as _;
/// use teamster::{Event, RunRequest, Runtime};
///
/// let run = Runtime::new().run("claude", RunRequest::new("Say hello"))?;
/// let important = run.whole_messages().only(|event| matches!(event, Event::Text(_) | Event::Done(_)));
/// let result = important.into_result().await?;
/// # Ok(())
/// # }
/// ```
pub trait EventStream: Stream<Item = Event> + Unpin + Sized {
    /// Joins the deltas of a message into one event, which is emitted when the message is complete. The text of a retracted
    /// message is not emitted.
    fn whole_messages(self) -> WholeMessages<Self> {
        WholeMessages { events: self, open: None, ready: VecDeque::new(), ended: false }
    }

    /// Returns the events for which the predicate is true.
    fn only<P: FnMut(&Event) -> bool + Unpin>(self, predicate: P) -> Only<Self, P> {
        Only { events: self, predicate }
    }

    /// Reads to [`Event::Done`] and returns the result of a run that succeeded.
    ///
    /// # Errors
    /// The run failed or was stopped. The error contains the result. Or the stream ended without [`Event::Done`]; then the
    /// code is [`INVALID_REQUEST`](teamster_types::event::ErrorCode::InvalidRequest).
    fn into_result(mut self) -> impl Future<Output = Result<RunResult, RunFailure>> {
        std::future::poll_fn(move |context| {
            loop {
                match ready!(Pin::new(&mut self).poll_next(context)) {
                    Some(Event::Done(done)) => return Poll::Ready(done.result.into_result()),
                    Some(_) => {}
                    None => return Poll::Ready(Err(RunFailure::without_done())),
                }
            }
        })
    }
}

impl<S: Stream<Item = Event> + Unpin> EventStream for S {}

/// A stream of whole messages ([`EventStream::whole_messages`]).
///
/// ```no_run
/// use teamster::Run;
/// use teamster::stream::{EventStream as _, WholeMessages};
///
/// fn without_deltas(run: Run) -> WholeMessages<Run> {
///     run.whole_messages()
/// }
/// ```
#[derive(Debug)]
pub struct WholeMessages<S> {
    events: S,
    open: Option<Event>,
    ready: VecDeque<Event>,
    ended: bool,
}

impl<S: Stream<Item = Event> + Unpin> Stream for WholeMessages<S> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(event) = ready!(Pin::new(&mut self.events).poll_next(context)) {
                self.take(event);
            } else {
                self.ended = true;
                let open = self.open.take();
                self.ready.extend(open);
            }
        }
    }
}

impl<S> WholeMessages<S> {
    fn take(&mut self, event: Event) {
        match (&mut self.open, event) {
            (Some(Event::Text(open)), Event::Text(more)) | (Some(Event::Thinking(open)), Event::Thinking(more))
                if is_same(open, &more) =>
            {
                open.text.push_str(&more.text);
            }
            // A usage event does not end a message.
            (Some(_), event @ Event::Usage(_)) => self.ready.push_back(event),
            (open @ Some(Event::Text(_) | Event::Thinking(_)), Event::Retract(retract))
                if open.as_ref().and_then(delta).is_some_and(|delta| delta.message_id == retract.message_id) =>
            {
                *open = None;
                self.ready.push_back(Event::Retract(retract));
            }
            (_, event) => {
                let open = self.open.take();
                self.ready.extend(open);
                if delta(&event).is_some() {
                    self.open = Some(event);
                } else {
                    self.ready.push_back(event);
                }
            }
        }
    }
}

fn delta(event: &Event) -> Option<&Delta> {
    match event {
        Event::Text(delta) | Event::Thinking(delta) => Some(delta),
        _ => None,
    }
}

fn is_same(open: &Delta, more: &Delta) -> bool {
    open.message_id == more.message_id && open.parent_tool_id == more.parent_tool_id
}

/// A stream of the events for which a predicate is true ([`EventStream::only`]).
///
/// ```no_run
/// use teamster::stream::{EventStream as _, Only};
/// use teamster::{Event, Run};
///
/// fn warnings(run: Run) -> Only<Run, fn(&Event) -> bool> {
///     run.only(|event| matches!(event, Event::Warning(_)))
/// }
/// ```
#[derive(Debug)]
pub struct Only<S, P> {
    events: S,
    predicate: P,
}

impl<S: Stream<Item = Event> + Unpin, P: FnMut(&Event) -> bool + Unpin> Stream for Only<S, P> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            let event = ready!(Pin::new(&mut self.events).poll_next(context));
            match event {
                Some(event) if !(self.predicate)(&event) => {}
                event => return Poll::Ready(event),
            }
        }
    }
}
