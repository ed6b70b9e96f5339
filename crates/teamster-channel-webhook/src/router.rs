//! The HTTP endpoint for programs. Its authentication is the signature: a request without a valid one has no effect.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use serde_json::{Value, json};
use teamster_channel::signature::{
    ID_HEADER, SIGNATURE_HEADER, SignatureError, SignedMessage, TIMESTAMP_HEADER, WebhookSecret, check_time,
};
use teamster_channel::{InboxError, PromptDecision, Receipt};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::channel::{MAX_AGE, MAX_SKEW, Reply, WebhookChannel, unix_seconds};
use crate::inbound::{MAX_ID, parse};

/// The longest time for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest list of signatures in bytes.
const MAX_SIGNATURES: usize = 2_048;

/// The size of all bodies whose signatures are not checked yet, in KiB.
const UNVERIFIED_KIB: u32 = 64 << 10;

/// What the requests share.
struct Endpoint {
    channels: HashMap<String, Arc<WebhookChannel>>,
    /// The memory for bodies whose signatures are not checked yet, which anyone can send.
    unverified: Semaphore,
}

/// Returns a router with `POST /v1/webhooks/{name}` for these channels. Merge it outside of the authentication by tokens.
pub fn router(channels: impl IntoIterator<Item = Arc<WebhookChannel>>) -> Router {
    let channels = channels.into_iter().map(|channel| (channel.config().name.clone(), channel));
    let unverified = Semaphore::new(usize::try_from(UNVERIFIED_KIB).unwrap_or(Semaphore::MAX_PERMITS));
    let endpoint = Arc::new(Endpoint { channels: channels.collect(), unverified });
    Router::new().route("/v1/webhooks/{name}", post(receive)).with_state(endpoint)
}

/// An error for a program (RFC 9457).
struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retry_after: Option<u16>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after: None }
    }

    fn later(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { retry_after: Some(5), ..Self::new(status, code, detail) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, code, detail, retry_after } = self;
        let title = status.canonical_reason().unwrap_or("Error");
        let problem =
            json!({"type": "about:blank", "title": title, "status": status.as_u16(), "code": code, "detail": detail});
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

async fn receive(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let channel = endpoint.channels.get(&name);
    let channel =
        channel.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND", "there is no such webhook"))?;
    let signed = SignedHeaders::read(&headers)?;
    check_time(signed.timestamp, unix_seconds(), MAX_AGE, MAX_SKEW).map_err(|error| unauthorized(&error))?;
    let limit = channel.config().max_body_bytes;
    let room = endpoint.room(&body, limit)?;
    let body = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, limit)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Err(too_large(limit)),
        Err(_) => {
            let detail = "the body was not sent in time";
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "DEADLINE_EXCEEDED", detail));
        }
    };
    verify(channel.secrets(), &signed.message(&body))?;
    drop(room);
    let request =
        parse(signed.id, &body).map_err(|detail| Problem::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", detail))?;
    match channel.hand_over(signed.id.to_owned(), request).await {
        Some(outcome) => answer(outcome),
        None => Err(Problem::later(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "the gateway cannot take it now")),
    }
}

impl Endpoint {
    /// Reserves the memory for a body. For a body of unknown size, the maximum is reserved.
    fn room(&self, body: &Body, limit: usize) -> Result<SemaphorePermit<'_>, Problem> {
        let limit_bytes = u64::try_from(limit).unwrap_or(u64::MAX);
        let size = body.size_hint().exact().unwrap_or(limit_bytes);
        if size > limit_bytes {
            return Err(too_large(limit));
        }
        let kib = u32::try_from(size.div_ceil(1 << 10)).unwrap_or(UNVERIFIED_KIB).min(UNVERIFIED_KIB);
        self.unverified.try_acquire_many(kib).map_err(|_| {
            let detail = "too many requests are being received at the same time";
            Problem::later(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", detail)
        })
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body has more than {limit} bytes, or it ended early");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", detail)
}

fn unauthorized(error: &SignatureError) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", error.to_string())
}

/// The headers of a signed request. All three are required.
struct SignedHeaders<'a> {
    id: &'a str,
    timestamp: &'a str,
    signatures: &'a str,
}

impl<'a> SignedHeaders<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, Problem> {
        let read = |name: &str, max: usize| {
            let mut values = headers.get_all(name).iter();
            let value = values.next().and_then(|value| value.to_str().ok());
            let value = value.filter(|value| !value.is_empty() && value.len() <= max && values.next().is_none());
            value.ok_or_else(|| {
                let detail = format!("send exactly one header {name}, with 1 to {max} visible ASCII characters");
                Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", detail)
            })
        };
        Ok(Self {
            id: read(ID_HEADER, MAX_ID)?,
            timestamp: read(TIMESTAMP_HEADER, 20)?,
            signatures: read(SIGNATURE_HEADER, MAX_SIGNATURES)?,
        })
    }

    fn message(&self, body: &'a [u8]) -> SignedMessage<'a> {
        SignedMessage { id: self.id, timestamp: self.timestamp, signatures: self.signatures, body }
    }
}

/// Checks the signature with each secret.
fn verify(secrets: &[WebhookSecret], message: &SignedMessage<'_>) -> Result<(), Problem> {
    let now = unix_seconds();
    let mut rejection = SignatureError::Mismatch;
    for secret in secrets {
        match secret.verify(message, now, MAX_AGE, MAX_SKEW) {
            Ok(()) => return Ok(()),
            Err(SignatureError::Mismatch) => {}
            Err(other) => rejection = other,
        }
    }
    Err(unauthorized(&rejection))
}

fn answer(outcome: Result<Reply, InboxError>) -> Result<Response, Problem> {
    let reply =
        outcome.map_err(|error| Problem::later(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", error.to_string()))?;
    let ok = |body: Value| Ok((StatusCode::OK, Json(body)).into_response());
    match reply {
        Reply::Message(Receipt::Accepted { turn }) => {
            Ok((StatusCode::ACCEPTED, Json(json!({"status": "accepted", "turnId": turn}))).into_response())
        }
        Reply::Message(Receipt::Duplicate) | Reply::Repeated => ok(json!({"status": "duplicate"})),
        Reply::Message(Receipt::Ignored) => ok(json!({"status": "ignored"})),
        Reply::Message(Receipt::Refused(detail)) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "REJECTED", detail))
        }
        Reply::Message(Receipt::Busy(detail)) => {
            Err(Problem::later(StatusCode::TOO_MANY_REQUESTS, "QUEUE_FULL", detail))
        }
        Reply::Answer(PromptDecision::Applied) => ok(json!({"status": "applied"})),
        Reply::Answer(PromptDecision::Closed) => {
            let detail = "the request was answered before, or it has ended";
            Err(Problem::new(StatusCode::CONFLICT, "ALREADY_ANSWERED", detail))
        }
        Reply::Answer(PromptDecision::NotAllowed) => {
            Err(Problem::new(StatusCode::FORBIDDEN, "FORBIDDEN", "this author must not answer; the request stays open"))
        }
        Reply::Command(text) => ok(json!({"status": "done", "text": text})),
        Reply::Edited => ok(json!({"status": "done"})),
        Reply::Busy => {
            let detail = "too many commands and edits within the last minutes";
            Err(Problem::later(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail))
        }
    }
}
