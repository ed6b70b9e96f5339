//! Events that wait for their consumer: in memory up to a bound, then on disk up to another. Beyond both, the driver stops
//! reading from the agent.
//!
//! Invariant: events are taken in the order in which they were added, whether they waited in memory or on disk.

use std::collections::VecDeque;

use teamster_process::Spill;
use teamster_types::event::{Event, Warning, WarningCode};
use teamster_types::request::Limits;

use crate::events::size;
use crate::events::stamped::{Timed, now_ms};

/// The maximum estimated size in bytes of the events that a consumer takes at once, unless the first one is larger.
const BATCH_BYTES: usize = 256 * 1024;

/// The estimated size in bytes from which on the waiting events are many.
const MANY_BYTES: usize = 16 * 1024;

/// The maximum number of events for which an empty list keeps its memory.
const KEPT_EVENTS: usize = 1024;

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

/// Waiting events.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) bounds: Bounds,
    /// The oldest events, in memory.
    front: VecDeque<Timed>,
    front_bytes: usize,
    /// The events after them, on disk.
    spill: Option<Spill>,
    /// The events after those, which did not fit on disk. The driver reads nothing more until the consumer has taken them.
    overflow: VecDeque<Timed>,
}

impl Backlog {
    /// Adds events.
    pub(super) fn extend(&mut self, events: impl Iterator<Item = Timed>) {
        self.front.reserve(events.size_hint().0);
        for event in events {
            // The usual case: everything fits in memory.
            if self.spill.is_none() && self.overflow.is_empty() && self.front_bytes < self.bounds.memory {
                self.push_to_memory(event);
            } else {
                self.push(event);
            }
        }
    }

    /// Adds an event.
    fn push(&mut self, event: Timed) {
        // No warning may come between an error and its `done`, so these two stay in memory.
        let is_last = matches!(event.event, Event::Error(_) | Event::Done(_));
        if self.is_full() {
            self.overflow.push_back(event);
        } else if self.spilled() > 0 || (self.is_memory_used_up() && !is_last) {
            self.push_to_disk(event);
        } else {
            self.push_to_memory(event);
        }
    }

    /// Moves the next events to an empty list: at least one, if there is one.
    pub(super) fn take_batch(&mut self, batch: &mut VecDeque<Timed>) {
        if self.front_bytes <= BATCH_BYTES && !self.front.is_empty() {
            batch.shrink_to(KEPT_EVENTS);
            self.front_bytes = 0;
            return std::mem::swap(&mut self.front, batch);
        }
        let mut bytes = 0;
        while bytes < BATCH_BYTES
            && let Some(event) = self.pop()
        {
            bytes += size::in_memory(&event.event);
            batch.push_back(event);
        }
    }

    fn pop(&mut self) -> Option<Timed> {
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

    /// Whether many events wait.
    pub(super) fn is_large(&self) -> bool {
        self.front_bytes >= MANY_BYTES
    }

    /// Whether no event waits.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.front.is_empty() && self.overflow.is_empty() && self.spilled() == 0
    }

    /// Whether the driver must stop reading from the agent.
    pub(super) fn is_full(&self) -> bool {
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
            self.push_to_memory(Timed::at(now_ms(), Warning::new(WarningCode::Spilled, text).into()));
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
                Some(Timed::at(now_ms(), Warning::new(WarningCode::Spilled, text).into()))
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

    fn timed(event: Event) -> Timed {
        Timed::at(0, event)
    }

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
            backlog.push(timed(text(pushed)));
            pushed += 1;
        }
        backlog.push(timed(text(pushed)));
        let events = all(&mut backlog);
        assert_eq!(numbers(&events), (0..=pushed).collect::<Vec<_>>());
        assert_eq!(events.iter().filter(|event| is_spilled(event)).count(), 1);
        assert!(!backlog.is_full(), "reading continues when the consumer has caught up");
    }

    #[test]
    fn with_bounds_of_zero_reading_stops_after_one_waiting_event() {
        let mut backlog = Backlog::default();
        backlog.push(timed(text(0)));
        assert!(!backlog.is_full());
        backlog.push(timed(text(1)));
        backlog.push(timed(text(2)));
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
            (0..before).map(text).chain(last()).for_each(|event| backlog.push(timed(event)));
            assert!(all(&mut backlog).ends_with(&last()), "after {before}");
        }
    }
}
