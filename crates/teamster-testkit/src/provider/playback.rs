//! Sends a reply over HTTP: as a whole, or frame by frame with gates, pauses and faults. The code
//! is independent of the vendor; a [`WireFormat`] encodes the replies.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures::stream;
use serde_json::Value;

use super::failure::HttpError;
use super::reply::{DeliveryEvent, DeliveryEventKind, Reply};
use super::state::{Answer, Ids, ParsedRequest, PendingResponse, ProviderState, RequestHead};
use super::usage::Usage;

/// A vendor's encoding of replies and errors.
pub(crate) trait WireFormat: Send + Sync {
    /// Returns the frames of a streamed reply.
    fn frames(&self, message: &OutgoingMessage<'_>) -> Vec<Frame>;
    /// Returns the body of a reply that is not streamed.
    fn whole(&self, message: &OutgoingMessage<'_>) -> Value;
    /// Returns the status and the body of an error.
    fn error(&self, error: &HttpError, ids: &Ids) -> (u16, Value);
    /// Returns an error event within a stream.
    fn error_event(&self, error: &HttpError) -> Bytes;
    /// Returns bytes that keep a silent stream alive.
    fn ping(&self) -> Bytes;
    /// Returns the headers of every response.
    fn headers(&self, ids: &Ids) -> Vec<(String, String)>;
}

/// A reply to be encoded.
#[derive(Debug)]
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) model: &'a str,
    pub(crate) reply: &'a Reply,
    pub(crate) ids: &'a Ids,
}

/// The bytes of a stream that are sent at once.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An event around the deltas.
    Structure,
    Delta,
    /// The first frame that reports the end of the message and its usage.
    Closing,
}

/// Responds to a model request as the scenario defines.
pub(crate) async fn respond(
    state: &Arc<ProviderState>,
    format: &'static dyn WireFormat,
    head: RequestHead,
    request: ParsedRequest,
) -> Response {
    let (mut pending, answer) = state.accept(head, request);
    match answer {
        Answer::Error(error) => {
            pending.complete();
            error_response(format, &error, state.ids())
        }
        Answer::Reply(reply) => {
            if let Some(gate) = &reply.delivery.gate_before {
                state.wait_at_gate(gate).await;
            }
            if let Some(delay) = reply.delivery.delay_before {
                tokio::time::sleep(delay).await;
            }
            if pending.request().stream {
                stream_reply(pending, format, &reply)
            } else {
                send_whole(pending, format, &reply).await
            }
        }
    }
}

/// Returns an HTTP error in the vendor's format.
pub(crate) fn error_response(format: &dyn WireFormat, error: &HttpError, ids: &Ids) -> Response {
    let (status, body) = format.error(error, ids);
    let mut headers = format.headers(ids);
    let bytes = match &error.raw_body {
        Some(raw) => {
            headers.push(("content-type".to_owned(), raw.content_type.clone()));
            raw.bytes.clone()
        }
        None => json_bytes(&mut headers, &body),
    };
    headers.extend(error.headers.iter().cloned());
    http_response(status, headers, Body::from(bytes))
}

/// Returns a JSON response.
pub(crate) fn json_response(format: &dyn WireFormat, body: &Value, ids: &Ids) -> Response {
    let mut headers = format.headers(ids);
    let bytes = json_bytes(&mut headers, body);
    http_response(200, headers, Body::from(bytes))
}

fn json_bytes(headers: &mut Vec<(String, String)>, body: &Value) -> Vec<u8> {
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    body.to_string().into_bytes()
}

fn http_response(status: u16, headers: Vec<(String, String)>, body: Body) -> Response {
    let mut response = Response::new(body);
    let head = StatusCode::from_u16(status).ok().zip(header_map(headers)).ok_or(StatusCode::INTERNAL_SERVER_ERROR);
    match head {
        Ok((status, headers)) => {
            *response.status_mut() = status;
            *response.headers_mut() = headers;
        }
        Err(status) => {
            *response.status_mut() = status;
            *response.body_mut() = Body::from("the scenario contains an invalid HTTP status or header");
        }
    }
    response
}

/// Converts headers. Later values take precedence, so that a scenario can replace the protocol's
/// values.
fn header_map(headers: Vec<(String, String)>) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name).ok()?;
        map.insert(name, HeaderValue::try_from(value).ok()?);
    }
    Some(map)
}

/// Responds to a request without streaming.
async fn send_whole(mut pending: PendingResponse, format: &dyn WireFormat, reply: &Reply) -> Response {
    let state = pending.state().clone();
    for event in sorted_by_position(&reply.delivery.events) {
        match &event.what {
            DeliveryEventKind::Gate(name) => state.wait_at_gate(name).await,
            DeliveryEventKind::Stall { .. } => std::future::pending().await,
            // These faults exist in streams only: a client that falls back to a plain request
            // should succeed.
            DeliveryEventKind::Cut | DeliveryEventKind::Error(_) => {}
        }
    }
    pending.complete();
    let ids = state.ids();
    let mut headers = format.headers(ids);
    headers.extend(reply.headers.iter().cloned());
    if reply.delivery.drop_unstreamed {
        let broken = stream::once(cut());
        return http_response(200, headers, Body::from_stream(broken));
    }
    pending.report_usage(reply.usage);
    let message = OutgoingMessage { model: &pending.request().model, reply, ids };
    let body = json_bytes(&mut headers, &format.whole(&message));
    http_response(200, headers, Body::from(body))
}

fn stream_reply(pending: PendingResponse, format: &'static dyn WireFormat, reply: &Reply) -> Response {
    let state = pending.state().clone();
    let mut headers = format.headers(state.ids());
    headers.extend([
        (header::CONTENT_TYPE.to_string(), "text/event-stream; charset=utf-8".to_owned()),
        (header::CACHE_CONTROL.to_string(), "no-cache".to_owned()),
    ]);
    headers.extend(reply.headers.iter().cloned());
    let frames = format.frames(&OutgoingMessage { model: &pending.request().model, reply, ids: state.ids() });
    let playback = ReplyStream {
        pending,
        format,
        frames: frames.into(),
        events: sorted_by_position(&reply.delivery.events).into(),
        delay_between: reply.delivery.delay_between,
        usage: reply.usage,
    };
    http_response(200, headers, Body::from_stream(stream::unfold(playback, ReplyStream::next)))
}

fn sorted_by_position(events: &[DeliveryEvent]) -> Vec<DeliveryEvent> {
    let mut events = events.to_vec();
    events.sort_by_key(|event| event.after);
    events
}

/// A reply that is being streamed. It can pause between frames, and each delivery event happens at its
/// position.
struct ReplyStream {
    pending: PendingResponse,
    format: &'static dyn WireFormat,
    frames: VecDeque<Frame>,
    events: VecDeque<DeliveryEvent>,
    delay_between: Option<Duration>,
    usage: Usage,
}

impl ReplyStream {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        let kind = self.frames.front()?.kind;
        while let Some(event) = self.due(kind) {
            match event.what {
                DeliveryEventKind::Gate(name) => {
                    let state = self.pending.state().clone();
                    state.wait_at_gate(&name).await;
                }
                DeliveryEventKind::Stall { ping_every: None } => std::future::pending().await,
                DeliveryEventKind::Stall { ping_every: Some(every) } => {
                    tokio::time::sleep(every).await;
                    self.events.push_front(event);
                    let ping = self.format.ping();
                    return Some((Ok(ping), self));
                }
                DeliveryEventKind::Error(error) => {
                    self.frames.clear();
                    self.pending.complete();
                    let event = self.format.error_event(&error);
                    return Some((Ok(event), self));
                }
                DeliveryEventKind::Cut => {
                    self.frames.clear();
                    self.pending.complete();
                    return Some((cut().await, self));
                }
            }
        }
        if kind == FrameKind::Delta {
            if let Some(delay) = self.delay_between.filter(|_| self.pending.deltas() > 0) {
                tokio::time::sleep(delay).await;
            }
            self.pending.count_delta();
        }
        let frame = self.frames.pop_front()?;
        if kind == FrameKind::Closing {
            self.pending.report_usage(self.usage);
        }
        if self.frames.is_empty() {
            self.pending.complete();
        }
        Some((Ok(frame.bytes), self))
    }

    /// Removes and returns the next delivery event, if it is due before a frame of this kind.
    fn due(&mut self, kind: FrameKind) -> Option<DeliveryEvent> {
        let after = self.events.front()?.after;
        let due = match kind {
            FrameKind::Structure => false,
            FrameKind::Delta => after <= self.pending.deltas(),
            FrameKind::Closing => true,
        };
        if due { self.events.pop_front() } else { None }
    }
}

/// Breaks the connection. The pause lets the server send its buffered data, which it discards on an
/// error. A client that has not read for megabytes, so that its socket is full, may still lose some
/// of that data.
async fn cut() -> io::Result<Bytes> {
    tokio::task::yield_now().await;
    Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the scenario cuts the connection here"))
}
