//! Plays a reply over HTTP: whole, or frame by frame with gates, pauses and faults. It knows no vendor: a [`Wire`] turns
//! replies into bytes.

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
use super::reply::{Cue, CueKind, Reply};
use super::stage::{Asked, Head, Ids, Line, Stage, Underway};
use super::usage::Usage;

/// How a vendor's protocol writes what the scenario says.
pub(crate) trait Wire: Send + Sync {
    /// The frames of a streamed answer.
    fn frames(&self, message: &Outgoing<'_>) -> Vec<Frame>;
    /// The body of an answer that is not streamed.
    fn whole(&self, message: &Outgoing<'_>) -> Value;
    /// Status and body of an error.
    fn error(&self, error: &HttpError, ids: &Ids) -> (u16, Value);
    /// An error in mid-stream.
    fn error_event(&self, error: &HttpError) -> Bytes;
    /// What keeps a silent stream alive.
    fn ping(&self) -> Bytes;
    /// Headers of every response.
    fn headers(&self, ids: &Ids) -> Vec<(String, String)>;
}

/// A reply that is about to be written.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) model: &'a str,
    pub(crate) reply: &'a Reply,
    pub(crate) ids: &'a Ids,
}

/// Bytes of a stream that are sent at once.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// What stands around the deltas.
    Scaffold,
    Delta,
    /// The first frame that tells the end of the message and its usage.
    Closing,
}

/// Answers a request by the scenario.
pub(crate) async fn perform(stage: &Arc<Stage>, wire: &'static dyn Wire, head: Head, asked: Asked) -> Response {
    let (mut underway, line) = stage.ask(head, asked);
    match line {
        Line::Error(error) => {
            underway.over();
            refuse(wire, &error, stage.ids())
        }
        Line::Reply(reply) => {
            if let Some(gate) = &reply.delivery.gate_before {
                stage.pass_gate(gate).await;
            }
            if let Some(delay) = reply.delivery.delay_before {
                tokio::time::sleep(delay).await;
            }
            if underway.request().stream {
                play(underway, wire, &reply)
            } else {
                hand_over(underway, wire, &reply).await
            }
        }
    }
}

/// An HTTP error in the vendor's words.
pub(crate) fn refuse(wire: &dyn Wire, error: &HttpError, ids: &Ids) -> Response {
    let (status, body) = wire.error(error, ids);
    let mut headers = wire.headers(ids);
    let bytes = match &error.raw_body {
        Some(raw) => {
            headers.push(("content-type".to_owned(), raw.content_type.clone()));
            raw.bytes.clone()
        }
        None => json_bytes(&mut headers, &body),
    };
    headers.extend(error.headers.iter().cloned());
    respond(status, headers, Body::from(bytes))
}

/// A JSON answer.
pub(crate) fn answer_json(wire: &dyn Wire, body: &Value, ids: &Ids) -> Response {
    let mut headers = wire.headers(ids);
    let bytes = json_bytes(&mut headers, body);
    respond(200, headers, Body::from(bytes))
}

fn json_bytes(headers: &mut Vec<(String, String)>, body: &Value) -> Vec<u8> {
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    body.to_string().into_bytes()
}

fn respond(status: u16, headers: Vec<(String, String)>, body: Body) -> Response {
    let mut response = Response::new(body);
    let head = StatusCode::from_u16(status).ok().zip(header_map(headers)).ok_or(StatusCode::INTERNAL_SERVER_ERROR);
    match head {
        Ok((status, headers)) => {
            *response.status_mut() = status;
            *response.headers_mut() = headers;
        }
        Err(status) => {
            *response.status_mut() = status;
            *response.body_mut() = Body::from("the scenario has a status or a header that HTTP does not allow");
        }
    }
    response
}

/// Later values win, so that a scenario can replace what the protocol sends.
fn header_map(headers: Vec<(String, String)>) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name).ok()?;
        map.insert(name, HeaderValue::try_from(value).ok()?);
    }
    Some(map)
}

/// Answers a request that asked for no stream.
async fn hand_over(mut underway: Underway, wire: &dyn Wire, reply: &Reply) -> Response {
    let stage = underway.stage().clone();
    for cue in in_order(&reply.delivery.cues) {
        match &cue.what {
            CueKind::Gate(name) => stage.pass_gate(name).await,
            CueKind::Stall { .. } => std::future::pending().await,
            // Faults of streams; clients that fall back to a plain request are meant to get through.
            CueKind::Cut | CueKind::Error(_) => {}
        }
    }
    underway.over();
    let ids = stage.ids();
    let mut headers = wire.headers(ids);
    headers.extend(reply.headers.iter().cloned());
    if reply.delivery.drop_unstreamed {
        let broken = stream::once(cut());
        return respond(200, headers, Body::from_stream(broken));
    }
    underway.told_usage(reply.usage);
    let message = Outgoing { model: &underway.request().model, reply, ids };
    let body = json_bytes(&mut headers, &wire.whole(&message));
    respond(200, headers, Body::from(body))
}

fn play(underway: Underway, wire: &'static dyn Wire, reply: &Reply) -> Response {
    let stage = underway.stage().clone();
    let mut headers = wire.headers(stage.ids());
    headers.extend([
        (header::CONTENT_TYPE.to_string(), "text/event-stream; charset=utf-8".to_owned()),
        (header::CACHE_CONTROL.to_string(), "no-cache".to_owned()),
    ]);
    headers.extend(reply.headers.iter().cloned());
    let frames = wire.frames(&Outgoing { model: &underway.request().model, reply, ids: stage.ids() });
    let playback = Playback {
        underway,
        wire,
        frames: frames.into(),
        cues: in_order(&reply.delivery.cues).into(),
        delay_between: reply.delivery.delay_between,
        usage: reply.usage,
    };
    respond(200, headers, Body::from_stream(stream::unfold(playback, Playback::next)))
}

fn in_order(cues: &[Cue]) -> Vec<Cue> {
    let mut cues = cues.to_vec();
    cues.sort_by_key(|cue| cue.after);
    cues
}

/// A stream that is being played. Between two frames it may wait, and at a cue something happens.
struct Playback {
    underway: Underway,
    wire: &'static dyn Wire,
    frames: VecDeque<Frame>,
    cues: VecDeque<Cue>,
    delay_between: Option<Duration>,
    usage: Usage,
}

impl Playback {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        let kind = self.frames.front()?.kind;
        while let Some(cue) = self.due(kind) {
            match cue.what {
                CueKind::Gate(name) => {
                    let stage = self.underway.stage().clone();
                    stage.pass_gate(&name).await;
                }
                CueKind::Stall { ping_every: None } => std::future::pending().await,
                CueKind::Stall { ping_every: Some(every) } => {
                    tokio::time::sleep(every).await;
                    self.cues.push_front(cue);
                    let ping = self.wire.ping();
                    return Some((Ok(ping), self));
                }
                CueKind::Error(error) => {
                    self.frames.clear();
                    self.underway.over();
                    let event = self.wire.error_event(&error);
                    return Some((Ok(event), self));
                }
                CueKind::Cut => {
                    self.frames.clear();
                    self.underway.over();
                    return Some((cut().await, self));
                }
            }
        }
        if kind == FrameKind::Delta {
            if let Some(delay) = self.delay_between.filter(|_| self.underway.deltas() > 0) {
                tokio::time::sleep(delay).await;
            }
            self.underway.sent_delta();
        }
        let frame = self.frames.pop_front()?;
        if kind == FrameKind::Closing {
            self.underway.told_usage(self.usage);
        }
        if self.frames.is_empty() {
            self.underway.over();
        }
        Some((Ok(frame.bytes), self))
    }

    /// The next cue, if it comes before a frame of this kind.
    fn due(&mut self, kind: FrameKind) -> Option<Cue> {
        let after = self.cues.front()?.after;
        let due = match kind {
            FrameKind::Scaffold => false,
            FrameKind::Delta => after <= self.underway.deltas(),
            FrameKind::Closing => true,
        };
        if due { self.cues.pop_front() } else { None }
    }
}

/// Breaks the connection. The pause lets the server send what it has gathered, which it throws away on an error; only a client
/// that has not read for megabytes, so that its socket is full, may miss some of that.
async fn cut() -> io::Result<Bytes> {
    tokio::task::yield_now().await;
    Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the scenario cuts the connection here"))
}
