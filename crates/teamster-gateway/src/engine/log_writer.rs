//! The events of an attempt on their way to the log: text deltas are joined, and events are appended in batches.

use std::time::Duration;

use teamster::event::{Delta, Event, ToolResult};
use teamster_store::{Json, NewEvent, Progress, Timestamp, TurnId};
use tokio::time::Instant;

/// The number of events that are appended without waiting for the interval.
const MAX_EVENTS: usize = 64;

/// The size of a joined text, after which another event starts.
const MAX_TEXT: usize = 64 << 10;

/// The size of a tool's output in the log. The agent gets the whole output.
const MAX_OUTPUT: usize = 256 << 10;

/// Events that are not in the log yet.
#[derive(Debug)]
pub(super) struct LogBuffer {
    turn: TurnId,
    interval: Duration,
    events: Vec<NewEvent>,
    /// The text at the end, which the next delta may continue.
    text: Option<JoinedText>,
    /// A control event waits, or the batch is full.
    is_urgent: bool,
    last_flush: Instant,
    progress: Progress,
    /// The number of events so far, for the limit.
    count: u64,
}

#[derive(Debug)]
struct JoinedText {
    event: Event,
    at: Timestamp,
}

impl LogBuffer {
    pub(super) fn new(turn: TurnId, interval: Duration) -> Self {
        let last_flush = Instant::now().checked_sub(interval).unwrap_or_else(Instant::now);
        Self {
            turn,
            interval,
            events: Vec::new(),
            text: None,
            is_urgent: false,
            last_flush,
            progress: Progress::Nothing,
            count: 0,
        }
    }

    /// Records that the attempt does this now, before an event shows it.
    pub(super) fn raise(&mut self, progress: Progress) {
        self.progress = self.progress.max(progress);
    }

    /// Returns what the attempt has done so far.
    pub(super) const fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns the number of events of the attempt.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Adds an event of the run.
    pub(super) fn push(&mut self, event: Event, at: Timestamp) -> serde_json::Result<()> {
        self.progress = self.progress.max(progress_of(&event));
        let event = match event {
            Event::Text(delta) => {
                self.join(Event::Text(delta), at)?;
                return Ok(());
            }
            Event::Thinking(delta) => {
                self.join(Event::Thinking(delta), at)?;
                return Ok(());
            }
            Event::ToolResult(result) => Event::ToolResult(Box::new(shortened(*result))),
            other => other,
        };
        self.close_text()?;
        if !matches!(event, Event::ToolOutput(_) | Event::Usage(_)) {
            self.is_urgent = true;
        }
        let body = Json::of(&event)?;
        self.add(kind_of(&body), body, at);
        Ok(())
    }

    /// Adds an event that is already in its stored form.
    pub(super) fn push_stored(&mut self, event: NewEvent) -> serde_json::Result<()> {
        self.close_text()?;
        self.is_urgent = true;
        self.count += 1;
        self.events.push(event);
        Ok(())
    }

    /// Returns when the events must be appended. `None` if there are none.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.events.is_empty() && self.text.is_none() {
            return None;
        }
        if self.is_urgent || self.events.len() >= MAX_EVENTS {
            return Some(self.last_flush);
        }
        Some(self.last_flush + self.interval)
    }

    /// Takes the events for an append.
    pub(super) fn take(&mut self) -> serde_json::Result<Vec<NewEvent>> {
        self.close_text()?;
        self.is_urgent = false;
        self.last_flush = Instant::now();
        Ok(std::mem::take(&mut self.events))
    }

    fn join(&mut self, event: Event, at: Timestamp) -> serde_json::Result<()> {
        if let Some(joined) = &mut self.text
            && continues(&mut joined.event, &event)
        {
            return Ok(());
        }
        self.close_text()?;
        self.text = Some(JoinedText { event, at });
        Ok(())
    }

    fn close_text(&mut self) -> serde_json::Result<()> {
        if let Some(JoinedText { event, at }) = self.text.take() {
            let kind = if matches!(event, Event::Text(_)) { "text" } else { "thinking" };
            self.add(kind.to_owned(), Json::of(&event)?, at);
        }
        Ok(())
    }

    fn add(&mut self, kind: String, body: Json, at: Timestamp) {
        self.count += 1;
        self.events.push(NewEvent { kind, turn: Some(self.turn), at, body });
    }
}

/// Appends a delta to a text, if it continues it.
fn continues(text: &mut Event, next: &Event) -> bool {
    let (text, next): (&mut Delta, &Delta) = match (text, next) {
        (Event::Text(text), Event::Text(next)) | (Event::Thinking(text), Event::Thinking(next)) => (text, next),
        _ => return false,
    };
    let is_same = text.message_id == next.message_id && text.parent_tool_id == next.parent_tool_id;
    if !is_same || text.text.len() + next.text.len() > MAX_TEXT {
        return false;
    }
    text.text.push_str(&next.text);
    true
}

/// Returns the progress of an attempt that emits this event.
pub(super) fn progress_of(event: &Event) -> Progress {
    match event {
        Event::Text(_) | Event::Thinking(_) => Progress::Text,
        Event::ToolUse(_) | Event::ToolOutput(_) | Event::ToolResult(_) => Progress::Tools,
        _ => Progress::Nothing,
    }
}

/// Returns the type of a serialized event.
fn kind_of(body: &Json) -> String {
    #[derive(serde::Deserialize)]
    struct Tag {
        #[serde(rename = "type")]
        name: String,
    }
    body.to::<Tag>().map_or_else(|_| "unknown".to_owned(), |tag| tag.name)
}

/// Shortens the output of a tool, which may have any size.
fn shortened(mut result: ToolResult) -> ToolResult {
    let output = result.output.as_str();
    if output.len() > MAX_OUTPUT {
        let end = output.floor_char_boundary(MAX_OUTPUT);
        let omitted = output.len() - end;
        let start = output.get(..end).unwrap_or_default();
        result.output = format!("{start}\n[{omitted} bytes are not in the log]").into();
        result.content = None;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1);

    fn event(json: &str) -> Event {
        serde_json::from_str(json).unwrap()
    }

    fn text(message: &str, text: &str) -> Event {
        event(&format!(r#"{{"type":"text","text":"{text}","messageId":"{message}"}}"#))
    }

    fn buffer() -> LogBuffer {
        LogBuffer::new(TurnId::new(uuid::Uuid::nil()), Duration::from_millis(25))
    }

    #[tokio::test(start_paused = true)]
    async fn deltas_of_a_message_become_one_event() {
        let mut buffer = buffer();
        for delta in
            [text("a", "1"), text("a", "2"), text("b", "3"), event(r#"{"type":"plan","entries":[]}"#), text("b", "4")]
        {
            buffer.push(delta, AT).unwrap();
        }
        let bodies: Vec<_> = buffer.take().unwrap().iter().map(|event| event.body.as_str().to_owned()).collect();
        assert_eq!(
            bodies,
            [
                r#"{"type":"text","text":"12","messageId":"a"}"#,
                r#"{"type":"text","text":"3","messageId":"b"}"#,
                r#"{"type":"plan","entries":[]}"#,
                r#"{"type":"text","text":"4","messageId":"b"}"#,
            ]
        );
        assert!(buffer.due().is_none() && buffer.take().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_delta_is_due_at_once_and_the_next_one_after_the_interval() {
        let mut buffer = buffer();
        buffer.push(text("a", "1"), AT).unwrap();
        assert!(buffer.due().unwrap() <= Instant::now());
        buffer.take().unwrap();
        buffer.push(text("a", "2"), AT).unwrap();
        assert_eq!(buffer.due().unwrap() - Instant::now(), Duration::from_millis(25));
        buffer.push(event(r#"{"type":"plan","entries":[]}"#), AT).unwrap();
        assert!(buffer.due().unwrap() <= Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_huge_output_of_a_tool_is_shortened_in_the_log() {
        let mut buffer = buffer();
        let output = "é".repeat(1 << 20);
        buffer.push(event(&format!(r#"{{"type":"tool_result","toolId":"t","output":"{output}"}}"#)), AT).unwrap();
        let stored = buffer.take().unwrap();
        assert_eq!(stored[0].kind, "tool_result");
        assert!(stored[0].body.as_str().len() < MAX_OUTPUT + 200);
        assert!(stored[0].body.as_str().contains("bytes are not in the log"));
        assert_eq!(buffer.progress(), Progress::Tools);
    }
}
