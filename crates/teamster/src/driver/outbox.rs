//! What waits for the consumer: in memory up to a bound, then on disk up to another, and only then is reading stopped.
//!
//! Invariants: events leave in the order they came, whichever way they took; and what waits when the driver ends is left
//! to the run, so that the driver never waits for a consumer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use teamster_process::Spill;
use teamster_types::event::{Event, Warning, WarningCode};
use teamster_types::request::Limits;
use tokio::sync::mpsc;

use crate::events::size;
use crate::events::stamped::Timed;

/// How much may wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// Bytes of events in memory, roughly.
    memory: usize,
    /// Bytes of events on disk.
    disk: u64,
}

impl Bounds {
    pub(super) fn of(limits: &Limits) -> Self {
        Self { memory: limits.backlog_bytes, disk: limits.backlog_disk_bytes }
    }
}

/// An event that weighs more than this is delivered only when the consumer has taken all before it: what the channel to the
/// consumer holds is bounded in bytes too.
const LARGE: usize = 16 * 1024;

/// Events on their way to the consumer. Dropping it leaves to the run what has not been delivered.
#[derive(Debug)]
pub(super) struct Outbox {
    consumer: mpsc::Sender<Timed>,
    backlog: Backlog,
    estate: Estate,
}

/// Where the driver leaves what the consumer has not taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estate(Arc<Mutex<Option<Backlog>>>);

/// Events that wait.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bounds: Bounds,
    /// The oldest, in memory.
    front: VecDeque<Timed>,
    front_bytes: usize,
    /// Those that came after them.
    spill: Option<Spill>,
    /// Those that no longer fitted on disk. They had been read already, so they are kept; nothing more is read.
    overflow: VecDeque<Timed>,
}

impl Outbox {
    pub(super) fn new(consumer: mpsc::Sender<Timed>, estate: Estate, bounds: Bounds) -> Self {
        Self { consumer, backlog: Backlog { bounds, ..Backlog::default() }, estate }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Whether nothing more should be read for now.
    pub(super) fn is_full(&self) -> bool {
        self.backlog.is_full()
    }

    pub(super) fn push(&mut self, event: Event) {
        if !self.consumer.is_closed() {
            self.backlog.push(event);
        }
    }

    /// Delivers until nothing waits or the consumer takes no more for now. Can be dropped and called again at any time.
    pub(super) async fn deliver(&mut self) {
        let consumer = self.consumer.clone();
        let places = if self.backlog.is_next_large() { consumer.max_capacity() } else { 1 };
        let Ok(mut permits) = consumer.reserve_many(places).await else {
            // The consumer is gone, and the run is being ended: `push` keeps nothing any more.
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

impl Drop for Outbox {
    /// Before the channel closes: whoever sees its end finds the rest.
    fn drop(&mut self) {
        self.estate.leave(std::mem::take(&mut self.backlog));
    }
}

impl Estate {
    fn leave(&self, backlog: Backlog) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(backlog);
    }

    /// What was left, once.
    pub(crate) fn take(&self) -> Option<Backlog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Backlog {
    /// Adds an event, which is emitted now.
    pub(crate) fn push(&mut self, event: Event) {
        // Nothing may stand between an error and its done, so the last words cause no warning.
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

    /// Whether the next event is large. One that waits on disk is read back to find out.
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
                    tracing::warn!(%error, "cannot keep waiting events on disk");
                    return self.overflow.push_back(event);
                }
            }
            let text = "the consumer is slow: events wait on disk";
            self.push_to_memory(Timed::now(Warning::new(WarningCode::Spilled, text).into()));
        }
        let Some(spill) = &mut self.spill else { return self.overflow.push_back(event) };
        let record = serde_json::to_vec(&event).unwrap_or_default();
        if let Err(error) = spill.push(&record) {
            tracing::warn!(%error, "no more waiting events fit on disk");
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
        Event::Text(Delta { text: number.to_string().into(), message_id: "m".into(), parent_tool_id: None })
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
    fn events_keep_their_order_through_memory_disk_and_overflow() {
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
        assert!(!backlog.is_full(), "reading goes on when the consumer has caught up");
    }

    #[test]
    fn with_bounds_of_zero_one_event_waits_before_reading_stops() {
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
    fn nothing_comes_between_an_error_and_its_done() {
        let last = || {
            let failure = Failure::new(ErrorCode::Protocol, "");
            [Event::Error(Box::new(failure)), Event::Done(Box::new(Done { result: RunResult::default() }))]
        };
        for before in 0..20 {
            let mut backlog = small();
            (0..before).map(text).chain(last()).for_each(|event| backlog.push(event));
            assert!(all(&mut backlog).ends_with(&last()), "after {before}");
        }
    }

    #[test]
    fn an_event_weighs_what_it_holds() {
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
        assert!(size::in_memory(&Event::Done(Box::new(Done { result }))) >= 10_000);
    }

    #[tokio::test]
    async fn a_consumer_that_is_gone_holds_nothing_up() {
        let (sender, consumer) = mpsc::channel(1);
        let mut outbox = Outbox::new(sender, Estate::default(), Bounds::of(&Limits::default()));
        outbox.push(text(1));
        drop(consumer);
        outbox.push(text(2));
        outbox.deliver().await;
        assert!(outbox.is_empty());
    }

    #[tokio::test]
    async fn what_is_not_delivered_is_left_to_the_run() {
        let (sender, mut consumer) = mpsc::channel(2);
        let estate = Estate::default();
        let mut outbox = Outbox::new(sender, estate.clone(), Bounds::of(&Limits::default()));
        (0..5).map(text).for_each(|event| outbox.push(event));
        outbox.deliver().await;
        drop(outbox);
        let mut events = Vec::new();
        while let Some(event) = consumer.recv().await {
            events.push(event.event);
        }
        events.extend(all(&mut estate.take().unwrap()));
        assert_eq!(numbers(&events), [0, 1, 2, 3, 4]);
    }
}
