//! The queue of events between the driver and the consumer: in memory up to a bound, then on disk up to another. Beyond both,
//! the driver stops reading from the agent.
//!
//! Invariants: events are delivered in the order in which they were pushed, whether they waited in memory or on disk. When
//! the driver ends, the run takes over the undelivered events, so the driver never waits for a consumer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use teamster_process::Spill;
use teamster_types::event::{Event, Warning, WarningCode};
use teamster_types::request::Limits;
use tokio::sync::mpsc;

use crate::events::size;
use crate::events::stamped::Timed;

/// The maximum size of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// Bytes of events in memory, estimated.
    memory: usize,
    /// Bytes of events on disk.
    disk: u64,
}

impl Bounds {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { memory: limits.backlog_bytes, disk: limits.backlog_disk_bytes }
    }
}

/// The size in bytes above which an event is delivered only after the consumer has read every event before it. This bounds the
/// bytes in the channel to the consumer.
const LARGE: usize = 16 * 1024;

/// The events that wait for the consumer of a run. Dropping the queue hands the undelivered events over to the run.
#[derive(Debug)]
pub(crate) struct EventQueue {
    consumer: mpsc::Sender<Timed>,
    backlog: Backlog,
    leftovers: Leftovers,
}

/// The undelivered events of a driver that has ended, for the run to take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leftovers(Arc<Mutex<Option<Backlog>>>);

/// Waiting events.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bounds: Bounds,
    /// The oldest events, in memory.
    front: VecDeque<Timed>,
    front_bytes: usize,
    /// The events after them, on disk.
    spill: Option<Spill>,
    /// The events after those, which did not fit on disk. The driver reads nothing more until the consumer has taken them.
    overflow: VecDeque<Timed>,
}

impl EventQueue {
    pub(crate) fn new(consumer: mpsc::Sender<Timed>, leftovers: Leftovers, bounds: Bounds) -> Self {
        Self { consumer, backlog: Backlog { bounds, ..Backlog::default() }, leftovers }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Whether the driver must stop reading from the agent.
    pub(crate) fn is_full(&self) -> bool {
        self.backlog.is_full()
    }

    pub(crate) fn push(&mut self, event: Event) {
        if !self.consumer.is_closed() {
            self.backlog.push(event);
        }
    }

    /// Delivers events until the queue is empty or the channel to the consumer is full. Cancel safe.
    pub(crate) async fn deliver(&mut self) {
        let consumer = self.consumer.clone();
        let places = if self.backlog.is_next_large() { consumer.max_capacity() } else { 1 };
        let Ok(mut permits) = consumer.reserve_many(places).await else {
            // The consumer is gone and the run is being ended. From now on `push` drops events.
            self.backlog = Backlog::default();
            return;
        };
        let mut permit = permits.next();
        drop(permits);
        while let Some(free) = permit {
            let Some(event) = self.backlog.pop() else { return };
            free.send(event);
            permit = if self.backlog.is_next_large() { None } else { consumer.try_reserve().ok() };
        }
    }
}

impl Drop for EventQueue {
    /// Stores the remaining events before the channel closes, so that the consumer finds them at the end of the channel.
    fn drop(&mut self) {
        self.leftovers.set(std::mem::take(&mut self.backlog));
    }
}

impl Leftovers {
    fn set(&self, backlog: Backlog) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(backlog);
    }

    /// Takes the undelivered events. Returns `None` if the driver has not ended, or they were taken before.
    pub(crate) fn take(&self) -> Option<Backlog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Backlog {
    /// Adds an event with the current time.
    pub(crate) fn push(&mut self, event: Event) {
        // No warning may come between an error and its `done`, so these two stay in memory.
        let is_last = matches!(event, Event::Error(_) | Event::Done(_));
        let event = Timed::now(event);
        if self.is_full() {
            self.overflow.push_back(event);
        } else if self.spilled() > 0 || (self.is_memory_used_up() && !is_last) {
            self.push_to_disk(event);
        } else {
            self.push_to_memory(event);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Timed> {
        if let Some(event) = self.front.pop_front() {
            self.front_bytes = self.front_bytes.saturating_sub(size::in_memory(&event.event));
            return Some(event);
        }
        if self.spilled() > 0
            && let Some(event) = self.pop_from_disk()
        {
            return Some(event);
        }
        self.overflow.pop_front()
    }

    /// Whether the next event is large. Reads it back from disk if necessary.
    fn is_next_large(&mut self) -> bool {
        if self.front.is_empty()
            && self.spilled() > 0
            && let Some(event) = self.pop_from_disk()
        {
            self.push_to_memory(event);
        }
        self.front.front().or(self.overflow.front()).is_some_and(|event| size::in_memory(&event.event) > LARGE)
    }

    fn is_empty(&self) -> bool {
        self.front.is_empty() && self.overflow.is_empty() && self.spilled() == 0
    }

    fn is_full(&self) -> bool {
        !self.overflow.is_empty()
    }

    fn is_memory_used_up(&self) -> bool {
        !self.front.is_empty() && self.front_bytes >= self.bounds.memory
    }

    fn push_to_memory(&mut self, event: Timed) {
        self.front_bytes += size::in_memory(&event.event);
        self.front.push_back(event);
    }

    fn push_to_disk(&mut self, event: Timed) {
        if self.bounds.disk == 0 {
            return self.overflow.push_back(event);
        }
        if self.spill.is_none() {
            match Spill::create(&std::env::temp_dir(), self.bounds.disk) {
                Ok(spill) => self.spill = Some(spill),
                Err(error) => {
                    tracing::warn!(%error, "waiting events cannot be written to disk");
                    return self.overflow.push_back(event);
                }
            }
            let text = "the consumer is slow; events wait on disk";
            self.push_to_memory(Timed::now(Warning::new(WarningCode::Spilled, text).into()));
        }
        let Some(spill) = &mut self.spill else { return self.overflow.push_back(event) };
        let record = serde_json::to_vec(&event).unwrap_or_default();
        if let Err(error) = spill.push(&record) {
            tracing::warn!(%error, "the disk space for waiting events is used up");
            self.overflow.push_back(event);
        }
    }

    fn pop_from_disk(&mut self) -> Option<Timed> {
        let spill = self.spill.as_mut()?;
        let read = spill.pop().map_err(|error| error.to_string());
        let event = read
            .and_then(|record| serde_json::from_slice(&record.unwrap_or_default()).map_err(|error| error.to_string()));
        match event {
            Ok(event) => Some(event),
            Err(error) => {
                let text = format!("{} events that waited on disk cannot be read back: {error}", spill.len() + 1);
                self.spill = None;
                Some(Timed::now(Warning::new(WarningCode::Spilled, text).into()))
            }
        }
    }

    fn spilled(&self) -> usize {
        self.spill.as_ref().map_or(0, Spill::len)
    }
}

#[cfg(test)]
mod tests {
    use teamster_types::event::{Delta, Done, ErrorCode, Failure, RunResult};

    use super::*;

    fn text(number: usize) -> Event {
        Event::Text(Delta::new("m", number.to_string()))
    }

    fn all(backlog: &mut Backlog) -> Vec<Event> {
        std::iter::from_fn(|| backlog.pop()).map(|timed| timed.event).collect()
    }

    fn numbers(events: &[Event]) -> Vec<usize> {
        let texts = events.iter().filter_map(|event| match event {
            Event::Text(delta) => Some(&delta.text),
            _ => None,
        });
        texts.map(|text| text.parse().unwrap()).collect()
    }

    fn small() -> Backlog {
        Backlog { bounds: Bounds { memory: 10 * size::EVENT_BYTES, disk: 2000 }, ..Backlog::default() }
    }

    fn is_spilled(event: &Event) -> bool {
        matches!(event, Event::Warning(warning) if warning.code == WarningCode::Spilled)
    }

    #[test]
    fn events_keep_their_order_in_memory_on_disk_and_in_the_overflow() {
        let mut backlog = small();
        let mut pushed = 0;
        while !backlog.is_full() {
            backlog.push(text(pushed));
            pushed += 1;
        }
        backlog.push(text(pushed));
        let events = all(&mut backlog);
        assert_eq!(numbers(&events), (0..=pushed).collect::<Vec<_>>());
        assert_eq!(events.iter().filter(|event| is_spilled(event)).count(), 1);
        assert!(!backlog.is_full(), "reading continues when the consumer has caught up");
    }

    #[test]
    fn with_bounds_of_zero_reading_stops_after_one_waiting_event() {
        let mut backlog = Backlog::default();
        backlog.push(text(0));
        assert!(!backlog.is_full());
        backlog.push(text(1));
        backlog.push(text(2));
        assert!(backlog.is_full());
        let events = all(&mut backlog);
        assert_eq!(numbers(&events), [0, 1, 2]);
        assert!(!backlog.is_full() && !events.iter().any(is_spilled));
    }

    #[test]
    fn no_event_comes_between_an_error_and_its_done() {
        let last = || {
            let failure = Failure::new(ErrorCode::Protocol, "");
            [Event::Error(Box::new(failure)), Event::Done(Box::new(Done::new(RunResult::default())))]
        };
        for before in 0..20 {
            let mut backlog = small();
            (0..before).map(text).chain(last()).for_each(|event| backlog.push(event));
            assert!(all(&mut backlog).ends_with(&last()), "after {before}");
        }
    }

    #[test]
    fn the_size_of_an_event_includes_its_contents() {
        let event = |value: serde_json::Value| serde_json::from_value::<Event>(value).unwrap();
        let nested = serde_json::json!([{"type": "x", "list": vec![serde_json::json!([1]); 20_000]}]);
        let long = "x".repeat(10_000);
        let rows = [
            event(serde_json::json!({"type": "tool_result", "toolId": "t", "output": "", "content": nested})),
            event(serde_json::json!({"type": "tool_result", "toolId": "t", "output": long})),
            event(
                serde_json::json!({"type": "tool_use", "toolId": "t", "toolName": long, "input": {}, "kind": "other"}),
            ),
            event(
                serde_json::json!({"type": "tool_use", "toolId": "t", "toolName": "x", "input": [long], "kind": "other"}),
            ),
            event(serde_json::json!({"type": "text", "messageId": long, "text": "x"})),
            event(serde_json::json!({"type": "plan", "entries": [{"content": long, "status": "pending"}]})),
            event(serde_json::json!({"type": "warning", "message": "", "code": "NOTICE", "data": {"line": long}})),
            event(serde_json::json!({"type": "init", "agent": "x", "sessionId": "s", "tools": [long]})),
            event(serde_json::json!({"type": "question", "requestId": "r", "questions": [
                {"id": "q", "text": "", "options": [{"label": "x", "description": long}]}
            ]})),
            event(serde_json::json!({"type": "permission_request", "requestId": "r", "toolName": "x", "input": {},
                "options": [{"optionId": "o", "name": long, "kind": "allow_once"}]})),
        ];
        for event in rows {
            assert!(size::in_memory(&event) >= 10_000, "{}: {event:?}", size::in_memory(&event));
        }
        // Each of the thousand lists is an allocation of its own.
        assert!(
            size::in_memory(&event(
                serde_json::json!({"type": "tool_result", "toolId": "t", "output": "", "content": nested})
            )) > 64_000
        );
        let mut result = RunResult::default();
        result.text = long.into();
        assert!(size::in_memory(&Event::Done(Box::new(Done::new(result)))) >= 10_000);
    }

    #[tokio::test]
    async fn a_queue_whose_consumer_is_gone_drops_its_events() {
        let (sender, consumer) = mpsc::channel(1);
        let mut queue = EventQueue::new(sender, Leftovers::default(), Bounds::of(&Limits::default()));
        queue.push(text(1));
        drop(consumer);
        queue.push(text(2));
        queue.deliver().await;
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn the_run_takes_over_undelivered_events() {
        let (sender, mut consumer) = mpsc::channel(2);
        let leftovers = Leftovers::default();
        let mut queue = EventQueue::new(sender, leftovers.clone(), Bounds::of(&Limits::default()));
        (0..5).map(text).for_each(|event| queue.push(event));
        queue.deliver().await;
        drop(queue);
        let mut events = Vec::new();
        while let Some(event) = consumer.recv().await {
            events.push(event.event);
        }
        events.extend(all(&mut leftovers.take().unwrap()));
        assert_eq!(numbers(&events), [0, 1, 2, 3, 4]);
    }
}
