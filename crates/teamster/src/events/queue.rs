//! The queue of events between the driver and the consumer of a run.
//!
//! The driver collects the events of one reading of the output, and passes them on with one lock and at most one wake-up. The
//! consumer takes all that is there with one lock. Neither waits for a batch to fill.
//!
//! Invariants: events are delivered in the order in which they were pushed. The driver never waits for a consumer, except that
//! it does not read from the agent while the queue is full. When all senders are dropped, the consumer still gets every event.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use teamster_types::event::Event;
use tokio::sync::Notify;
use tokio::task::coop;

use crate::events::backlog::{Backlog, Bounds};
use crate::events::stamped::{Timed, now_ms};

/// The state that the driver and the consumer share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a full queue has room again.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    backlog: Backlog,
    /// Wakes the consumer, if it waits.
    consumer: Option<Waker>,
    /// Whether the consumer was dropped.
    is_abandoned: bool,
    /// Whether all senders were dropped.
    is_closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The driver's side of a queue. The queue is closed when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct EventSender(Arc<OpenQueue>);

/// Closes the queue when it is dropped.
#[derive(Debug)]
struct OpenQueue(Arc<Shared>);

/// The consumer's side of a queue.
#[derive(Debug)]
pub(crate) struct EventReceiver {
    shared: Arc<Shared>,
    /// Events that were taken from the queue.
    taken: VecDeque<Timed>,
}

/// Creates a queue without bounds. Its [`EventQueue`] sets them.
pub(crate) fn channel() -> (EventSender, EventReceiver) {
    let shared = Arc::<Shared>::default();
    let receiver = EventReceiver { shared: Arc::clone(&shared), taken: VecDeque::new() };
    (EventSender(Arc::new(OpenQueue(shared))), receiver)
}

/// The events that a driver passes to the consumer of a run. Dropping it passes the last ones on.
#[derive(Debug)]
pub(crate) struct EventQueue {
    sender: EventSender,
    /// Events that were not passed on yet.
    batch: Vec<Event>,
}

impl EventQueue {
    /// Creates the queue's end for one driver.
    pub(crate) fn new(sender: EventSender, bounds: Bounds) -> Self {
        sender.0.0.state().backlog.bounds = bounds;
        Self { sender, batch: Vec::new() }
    }

    /// Adds an event. The consumer gets it at the next [`flush`](Self::flush).
    pub(crate) fn push(&mut self, event: Event) {
        self.batch.push(event);
    }

    /// Passes the events on to the consumer. Call it before each wait.
    pub(crate) fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let at_ms = now_ms();
        let mut state = self.sender.0.0.state();
        if state.is_abandoned {
            return self.batch.clear();
        }
        state.backlog.extend(self.batch.drain(..).map(|event| Timed::at(at_ms, event)));
        let consumer = state.consumer.take();
        drop(state);
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }

    /// Whether the driver must stop reading from the agent.
    pub(crate) fn is_full(&self) -> bool {
        self.sender.0.0.state().backlog.is_full()
    }

    /// Whether many events wait that the consumer has not taken.
    pub(crate) fn is_behind(&self) -> bool {
        self.sender.0.0.state().backlog.is_large()
    }

    /// Waits until the queue is not full. Cancel safe.
    pub(crate) async fn room(&self) {
        while self.is_full() {
            self.sender.0.0.room.notified().await;
        }
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Drop for OpenQueue {
    fn drop(&mut self) {
        let consumer = {
            let mut state = self.0.state();
            state.is_closed = true;
            state.consumer.take()
        };
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }
}

impl EventReceiver {
    /// Returns the next event; `None` if there is none and the queue is closed.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Timed>> {
        if let Some(event) = self.taken.pop_front() {
            return Poll::Ready(Some(event));
        }
        // A consumer that always finds events must let other tasks run too.
        let progress = ready!(coop::poll_proceed(context));
        let mut state = self.shared.state();
        let was_full = state.backlog.is_full();
        state.backlog.take_batch(&mut self.taken);
        let has_room = was_full && !state.backlog.is_full();
        let event = self.taken.pop_front();
        if event.is_none() && !state.is_closed {
            state.consumer = Some(context.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        if has_room {
            self.shared.room.notify_one();
        }
        progress.made_progress();
        Poll::Ready(event)
    }

    /// Returns the next event of those that were taken from the queue before.
    pub(crate) fn next_taken(&mut self) -> Option<Timed> {
        self.taken.pop_front()
    }

    /// Adds events after those that were taken.
    pub(crate) fn append(&mut self, events: impl IntoIterator<Item = Event>) {
        let at_ms = now_ms();
        self.taken.extend(events.into_iter().map(|event| Timed::at(at_ms, event)));
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_abandoned = true;
        let backlog = std::mem::take(&mut state.backlog);
        drop(state);
        drop(backlog);
        self.shared.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use teamster_types::event::Delta;
    use teamster_types::request::Limits;

    use super::*;

    fn text(number: usize) -> Event {
        Event::Text(Delta::new("m", number.to_string()))
    }

    async fn next(receiver: &mut EventReceiver) -> Option<Event> {
        std::future::poll_fn(|context| receiver.poll_next(context)).await.map(|timed| timed.event)
    }

    fn queue() -> (EventQueue, EventReceiver) {
        let (sender, receiver) = channel();
        (EventQueue::new(sender, Bounds::of(&Limits::default())), receiver)
    }

    #[tokio::test]
    async fn a_queue_whose_consumer_is_gone_drops_its_events() {
        let (mut queue, receiver) = queue();
        queue.push(text(1));
        drop(receiver);
        queue.push(text(2));
        queue.flush();
        assert!(queue.batch.is_empty() && queue.sender.0.0.state().backlog.is_empty());
    }

    #[tokio::test]
    async fn the_consumer_gets_every_event_of_a_driver_that_is_gone() {
        let (mut queue, mut receiver) = queue();
        (0..3).for_each(|number| queue.push(text(number)));
        queue.flush();
        (3..5).for_each(|number| queue.push(text(number)));
        drop(queue);
        for number in 0..5 {
            assert_eq!(next(&mut receiver).await, Some(text(number)));
        }
        assert_eq!(next(&mut receiver).await, None);
    }

    #[tokio::test]
    async fn a_waiting_consumer_is_woken_by_events_and_by_the_end() {
        let (mut queue, mut receiver) = queue();
        let consumer = tokio::spawn(async move {
            let mut events = 0;
            while next(&mut receiver).await.is_some() {
                events += 1;
            }
            events
        });
        for number in 0..3 {
            tokio::task::yield_now().await;
            queue.push(text(number));
            queue.flush();
        }
        tokio::task::yield_now().await;
        drop(queue);
        assert_eq!(consumer.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_full_queue_has_room_when_the_consumer_has_taken_its_events_or_is_gone() {
        let (sender, mut receiver) = channel();
        let mut queue = EventQueue::new(sender, Bounds::default());
        (0..3).for_each(|number| queue.push(text(number)));
        queue.flush();
        assert!(queue.is_full());
        let mut taken = 0;
        tokio::join!(queue.room(), async {
            while taken < 3 {
                taken += usize::from(next(&mut receiver).await.is_some());
            }
        });
        (0..3).for_each(|number| queue.push(text(number)));
        queue.flush();
        assert!(queue.is_full());
        tokio::join!(queue.room(), async { drop(receiver) });
    }
}
