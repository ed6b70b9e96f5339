//! The events of a conversation, with reconnection: each event once and in order, whatever happens to the connection.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use sse_stream::SseStream;
use teamster::Event;
use teamster_gateway::event::GatewayEvent;
use tokio::time::{Instant, sleep, timeout};

use super::connection::{ClientError, Connection};

/// How long a stream may be silent. The gateway writes a comment at a configured interval, 10 seconds by default.
const SILENCE: Duration = Duration::from_mins(2);

/// How long the client tries to reach a lost gateway again.
const RECONNECT_TIMEOUT: Duration = Duration::from_mins(2);

/// The first delay before a further attempt. It doubles up to the last.
const FIRST_DELAY: Duration = Duration::from_millis(250);
const LAST_DELAY: Duration = Duration::from_secs(10);

/// An event of a log.
#[derive(Debug)]
pub(crate) struct LogEvent {
    pub(crate) seq: u64,
    pub(crate) turn: Option<String>,
    pub(crate) event: LogBody,
    /// The whole object.
    pub(crate) json: Box<RawValue>,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum LogBody {
    /// In the gateway.
    Gateway(GatewayEvent),
    /// In the agent.
    Agent(Event),
}

/// What all events of a log have.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    seq: u64,
    #[serde(default)]
    turn_id: Option<String>,
}

/// The last frame of a stream.
#[derive(Deserialize)]
struct End {
    code: String,
    reason: String,
}

type Frames = Pin<Box<dyn Stream<Item = Result<sse_stream::Sse, sse_stream::Error>> + Send>>;

/// What a stream of events returns.
#[derive(Debug)]
pub(crate) enum Change {
    Event(Box<LogEvent>),
    /// The gateway cannot be reached. The connection is opened again after a pause.
    Lost(ClientError),
    /// The gateway is reached again.
    Connected,
}

/// How long a lost gateway is called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReconnectLimit {
    /// Two minutes.
    Limited,
    /// Until the caller gives up.
    Unlimited,
}

/// The events of a conversation after a number.
pub(super) struct Events {
    connection: Connection,
    conversation: String,
    last: u64,
    reconnect: ReconnectLimit,
    frames: Option<Frames>,
    delay: Duration,
    /// When the gateway was lost.
    lost: Option<Instant>,
    /// The last stream has had no event. Streams that end at once must not be opened in a loop.
    was_empty: bool,
}

impl Events {
    pub(super) fn new(connection: &Connection, conversation: &str, after: u64) -> Self {
        Self {
            connection: connection.clone(),
            conversation: conversation.to_owned(),
            last: after,
            reconnect: ReconnectLimit::Limited,
            frames: None,
            delay: FIRST_DELAY,
            lost: None,
            was_empty: false,
        }
    }

    pub(super) fn with_reconnect(self, reconnect: ReconnectLimit) -> Self {
        Self { reconnect, ..self }
    }

    /// Returns the number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the next event, and waits for it. A lost connection is opened again after the last event.
    ///
    /// # Errors
    /// The gateway refuses the stream, or cannot be reached for two minutes.
    pub(super) async fn next(&mut self) -> Result<LogEvent, ClientError> {
        loop {
            if let Change::Event(event) = self.next_change().await? {
                return Ok(*event);
            }
        }
    }

    /// Returns the next event, or a change of the connection. Cancel-safe, but a cancelled pause starts again.
    ///
    /// # Errors
    /// The gateway refuses the stream, or cannot be reached until its time limit.
    pub(super) async fn next_change(&mut self) -> Result<Change, ClientError> {
        loop {
            let Some(frames) = &mut self.frames else {
                if let Some(change) = self.connect().await? {
                    return Ok(change);
                }
                continue;
            };
            let Ok(Some(Ok(frame))) = timeout(SILENCE, frames.next()).await else {
                // The stream has ended, is broken or silent.
                self.frames = None;
                continue;
            };
            let Some(data) = frame.data else { continue };
            if frame.event.as_deref() == Some("stream_end") {
                self.frames = None;
                ended(&data)?;
                continue;
            }
            // An event that is not new was sent again.
            if let Some(event) = parse(&data).filter(|event| event.seq > self.last) {
                self.last = event.seq;
                self.was_empty = false;
                return Ok(Change::Event(Box::new(event)));
            }
        }
    }

    /// Opens the stream. After a failure that may pass, the next call waits before it tries again.
    async fn connect(&mut self) -> Result<Option<Change>, ClientError> {
        if self.lost.is_some() {
            sleep(self.delay).await;
            self.delay = (self.delay * 2).min(LAST_DELAY);
        }
        let path = format!("v1/conversations/{}/events?after={}", self.conversation, self.last);
        match self.connection.stream(&path, Some(self.last).filter(|last| *last > 0)).await {
            Ok(response) => {
                self.frames = Some(Box::pin(SseStream::from_bytes_stream(response.bytes_stream())));
                self.delay = FIRST_DELAY;
                if std::mem::replace(&mut self.was_empty, true) {
                    sleep(FIRST_DELAY).await;
                }
                Ok(self.lost.take().map(|_| Change::Connected))
            }
            Err(error) if error.is_transient() => {
                let is_first = self.lost.is_none();
                let lost = *self.lost.get_or_insert_with(Instant::now);
                if self.reconnect == ReconnectLimit::Limited && lost.elapsed() > RECONNECT_TIMEOUT {
                    return Err(error);
                }
                Ok(is_first.then_some(Change::Lost(error)))
            }
            Err(error) => Err(error),
        }
    }
}

/// Decides whether the end of a stream is the end of its events.
fn ended(data: &str) -> Result<(), ClientError> {
    let Ok(End { code, reason }) = serde_json::from_str(data) else { return Ok(()) };
    if matches!(code.as_str(), "NOT_FOUND" | "EVENTS_PRUNED") {
        return Err(ClientError::Refused { status: 410, code, detail: reason });
    }
    Ok(())
}

/// Reads an event. Types of newer versions are events of the agent that no format shows.
fn parse(data: &str) -> Option<LogEvent> {
    let Head { seq, turn_id } = serde_json::from_str(data).ok()?;
    let json: Box<RawValue> = serde_json::from_str(data).ok()?;
    let event = match serde_json::from_str::<GatewayEvent>(data) {
        Ok(event) => LogBody::Gateway(event),
        Err(_) => LogBody::Agent(serde_json::from_str(data).ok()?),
    };
    Some(LogEvent { seq, turn: turn_id, event, json })
}

/// Reads an event, for tests of its users.
#[cfg(test)]
pub(crate) fn read_event(data: &str) -> Option<LogEvent> {
    parse(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_gateway_and_of_agents_are_read() {
        let queued =
            parse(r#"{"seq":1,"turnId":"t","at":"x","type":"turn_queued","messageId":"m","author":"a","text":"hi"}"#);
        let queued = queued.unwrap();
        assert_eq!((queued.seq, queued.turn.as_deref()), (1, Some("t")));
        assert!(matches!(queued.event, LogBody::Gateway(GatewayEvent::TurnQueued { .. })));
        let text = parse(r#"{"seq":2,"turnId":"t","at":"x","type":"text","messageId":"m","text":"hi"}"#).unwrap();
        assert!(matches!(text.event, LogBody::Agent(Event::Text(_))));
        assert!(parse("{}").is_none() && parse("no").is_none());
        assert!(parse(r#"{"seq":3,"type":"of_the_future"}"#).is_some());
    }
}
