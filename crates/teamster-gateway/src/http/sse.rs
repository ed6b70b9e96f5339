//! Event streams: frames, heartbeats, slow subscribers and the end.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use teamster_store::{ConversationId, Event, FeedEvent};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::problem::{Problem, ProblemCode, Result};
use super::state::Api;
use crate::access::{Identity, StreamPermit};
use crate::engine::{EventStream, FeedStream, StreamError};
use crate::event::render;
use crate::telemetry::Subscriber;

/// The number of chunks that wait for a subscriber.
const CHUNKS: usize = 4;

/// The size of a chunk. Events that are ready go into one chunk until it is larger.
const CHUNK_BYTES: usize = 32 << 10;

/// The last frame of a stream. It has no id, so that a subscriber resumes after its last event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StreamEnd<'a> {
    r#type: &'static str,
    code: ProblemCode,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_seq: Option<u64>,
    /// The position in the stream of all conversations with which a subscriber accepts a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_after: Option<&'a str>,
}

/// Where a stream gets its events from.
pub(super) enum Source {
    Conversation(EventStream),
    /// Events that are read already, and where further ones come from.
    All(VecDeque<FeedEvent>, FeedStream),
}

/// Why a stream ends.
enum End {
    /// The subscriber has disconnected.
    Gone,
    /// The subscriber does not read.
    Slow,
    /// The gateway stops.
    Stopping,
    /// The source has ended.
    Source(StreamError),
}

/// Takes the permit of a stream.
pub(super) fn take_permit(api: &Api, identity: &Identity) -> Result<StreamPermit> {
    api.subscribers.take(identity.limit_key()).ok_or_else(|| {
        let detail = "too many event streams are open, in total or with this token; close one or connect later";
        Problem::new(ProblemCode::TooManySubscribers, detail).retry_after(10)
    })
}

/// Returns the response with the events of a source.
pub(super) fn respond(api: &Api, permit: StreamPermit, source: Source) -> Response {
    let (sender, receiver) = mpsc::channel(CHUNKS + 1);
    let producer = Producer {
        sender,
        stopping: api.gateway.stopping().clone(),
        heartbeat: api.gateway.config().timing.heartbeat,
        send_timeout: api.send_timeout,
        _counted: api.gateway.metrics().subscriber(),
        _permit: permit,
    };
    tokio::spawn(producer.run(source));
    let chunks = ReceiverStream::new(receiver).map(Ok::<Bytes, Infallible>);
    let mut response = Body::from_stream(chunks).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Fills a stream. It ends with its subscriber, its source, or the gateway.
struct Producer {
    sender: mpsc::Sender<Bytes>,
    stopping: CancellationToken,
    heartbeat: Duration,
    send_timeout: Duration,
    _permit: StreamPermit,
    _counted: Subscriber,
}

impl Producer {
    async fn run(self, mut source: Source) {
        // One slot of the channel is reserved for the last frame, so that a slow subscriber gets the reason as well.
        let Ok(last) = self.sender.clone().reserve_owned().await else { return };
        // It lets headers through proxies that wait for the first byte.
        let end = match self.send(": connected\n\n".to_owned()).await {
            Ok(()) => self.fill(&mut source).await,
            Err(end) => end,
        };
        if let Some(frame) = end.frame() {
            last.send(frame);
        }
    }

    async fn fill(&self, source: &mut Source) -> End {
        loop {
            let chunk = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return End::Stopping,
                () = self.sender.closed() => return End::Gone,
                next = tokio::time::timeout(self.heartbeat, source.next()) => match next {
                    Ok(Ok(chunk)) => chunk,
                    Ok(Err(error)) => return End::Source(error),
                    Err(_) => ": heartbeat\n\n".to_owned(),
                },
            };
            if let Err(end) = self.send(chunk).await {
                return end;
            }
        }
    }

    async fn send(&self, chunk: String) -> Result<(), End> {
        let sent = tokio::select! {
            sent = self.sender.send_timeout(chunk.into(), self.send_timeout) => sent,
            () = self.stopping.cancelled() => return Err(End::Stopping),
        };
        sent.map_err(|error| match error {
            SendTimeoutError::Timeout(_) => End::Slow,
            SendTimeoutError::Closed(_) => End::Gone,
        })
    }
}

impl Source {
    /// Returns the frames of the next events. Cancel safe.
    async fn next(&mut self) -> Result<String, StreamError> {
        let mut chunk = String::new();
        match self {
            Self::Conversation(events) => {
                let event = events.next().await?;
                write_event(&mut chunk, &event.seq.to_string(), &event, None);
                while chunk.len() < CHUNK_BYTES
                    && let Some(event) = events.next_ready()
                {
                    write_event(&mut chunk, &event.seq.to_string(), &event, None);
                }
            }
            Self::All(ready, feed) => {
                if ready.is_empty() {
                    ready.extend(feed.next().await?.0);
                }
                while chunk.len() < CHUNK_BYTES
                    && let Some(FeedEvent { conversation, event, cursor }) = ready.pop_front()
                {
                    write_event(&mut chunk, cursor.as_str(), &event, Some(conversation));
                }
            }
        }
        Ok(chunk)
    }
}

impl End {
    /// Returns the last frame of the stream. There is none if the subscriber has disconnected.
    fn frame(&self) -> Option<Bytes> {
        let mut resume_after = None;
        let (code, reason, oldest_seq) = match self {
            Self::Gone => return None,
            Self::Slow => {
                (ProblemCode::DeadlineExceeded, "the subscriber did not read; connect again".to_owned(), None)
            }
            Self::Stopping => (ProblemCode::ShuttingDown, "the gateway stops; connect again".to_owned(), None),
            Self::Source(error @ StreamError::Pruned { oldest }) => {
                (ProblemCode::EventsPruned, error.to_string(), Some(oldest.get()))
            }
            Self::Source(error @ StreamError::FeedPruned { resume }) => {
                resume_after = Some(resume.as_str());
                (ProblemCode::EventsPruned, error.to_string(), None)
            }
            Self::Source(error @ StreamError::Deleted) => (ProblemCode::NotFound, error.to_string(), None),
            Self::Source(StreamError::Store(error)) => {
                let problem = Problem::from(error.clone());
                (problem.code(), problem.detail().to_owned(), None)
            }
        };
        let end = StreamEnd { r#type: "stream_end", code, reason: &reason, oldest_seq, resume_after };
        let data = serde_json::to_string(&end).unwrap_or_default();
        Some(format!("event: stream_end\ndata: {data}\n\n").into())
    }
}

/// Writes a frame. A line break in a stored document is between its tokens; a space means the same there.
fn write_event(chunk: &mut String, id: &str, event: &Event, conversation: Option<ConversationId>) {
    let is_break = |byte: char| matches!(byte, '\n' | '\r');
    let mut data = render(event);
    if let Some(conversation) = conversation {
        data.replace_range(..1, &format!("{{\"conversationId\":\"{conversation}\","));
    }
    if data.contains(is_break) {
        data = data.replace(is_break, " ");
    }
    // Writing to a text cannot fail.
    _ = write!(chunk, "id: {id}\nevent: {}\ndata: {data}\n\n", event.kind.replace(is_break, " "));
}
