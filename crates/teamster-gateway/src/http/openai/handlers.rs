//! The calls.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, MatchedPath, Path, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tracing::Instrument as _;

use super::chunks::Head;
use super::error::ApiError;
use super::request::{self, ChatRequest};
use super::turn::{self, ChatTurn, Step};
use crate::access::{Scope, StreamPermit, StreamPermits};
use crate::engine::Gateway;
use crate::http::extract::{Authenticated, Body};
use crate::http::problem::Problem;
use crate::http::state::SEND_TIMEOUT;

/// The time that `/v1/models` gives for all models, since agents have no date.
const CREATED: u64 = 1_735_689_600;

/// The number of chunks that wait for a client.
const WAITING_CHUNKS: usize = 16;

/// The paths of the calls.
const ROUTES: [&str; 3] = ["/v1/chat/completions", "/v1/models", "/v1/models/{*model}"];

/// What the calls share.
struct OpenAiState {
    gateway: Gateway,
    /// The permits of open requests: each of them follows a conversation.
    permits: StreamPermits,
    /// How long a stream waits for a client that does not read.
    send_timeout: Duration,
}

/// Returns the calls of the OpenAI-compatible API. They need an identity, and have no time limit: an answer takes as long as its turn.
pub(in crate::http) fn router(gateway: Gateway) -> Router {
    build(gateway, SEND_TIMEOUT)
}

/// Returns the calls with this `send_timeout`, for tests.
pub(super) fn build(gateway: Gateway, send_timeout: Duration) -> Router {
    let limits = &gateway.config().limits;
    let body = limits.body_bytes;
    let [completions, list, one] = ROUTES;
    let permits = StreamPermits::new(limits.subscribers);
    Router::new()
        .route(completions, post(complete))
        .route(list, get(models))
        .route(one, get(model))
        .layer(DefaultBodyLimit::max(body))
        .with_state(Arc::new(OpenAiState { gateway, permits, send_timeout }))
}

/// Shows the problems of the layers around the calls, such as a missing token, in the form that clients of OpenAI read.
pub(in crate::http) async fn with_errors(route: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if !route.is_some_and(|route| ROUTES.contains(&route.as_str())) {
        return response;
    }
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let error = ApiError::from(problem).into_response();
    let (mut parts, _) = response.into_parts();
    for name in [CONTENT_TYPE, CONTENT_LENGTH] {
        parts.headers.remove(&name);
        parts.headers.extend(error.headers().get(&name).cloned().map(|value| (name, value)));
    }
    Response::from_parts(parts, error.into_body())
}

async fn complete(
    State(state): State<Arc<OpenAiState>>,
    caller: Result<Authenticated, Problem>,
    headers: HeaderMap,
    body: Result<Body<Value>, Problem>,
) -> Result<Response, ApiError> {
    let caller = caller?;
    caller.require(Scope::Send)?;
    let Body(body) = body?;
    let request = request::read(&body, &headers)?;
    drop(body);
    if request.conversation.is_some() {
        // The answer can repeat what others have written in the conversation.
        caller.require(Scope::Read)?;
    }
    check_agent(&state.gateway, &request)?;
    let permit = state.permits.take(caller.identity.limit_key()).ok_or_else(|| {
        let message = "too many requests are open, in total or with this token; try again later";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, message, Some("TOO_MANY_SUBSCRIBERS"))
    })?;
    let (stream, include_usage, model) = (request.stream, request.include_usage, request.model.clone());
    let turn = turn::accept(state.gateway.clone(), request, caller.identity).await?;
    let created = state.gateway.now().as_millis().div_euclid(1_000);
    let head = Head::new(turn.id(), created, &model, include_usage);
    let ids = ids(&turn);
    let mut response =
        if stream { streamed(&state, turn, head, permit) } else { whole(&state.gateway, turn, &head).await? };
    response.headers_mut().extend(ids);
    Ok(response)
}

/// Returns the headers that name the turn, so that people can find it.
fn ids(turn: &ChatTurn) -> [(HeaderName, HeaderValue); 3] {
    // An id can always be a header.
    let value = |id: String| HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static(""));
    [
        (HeaderName::from_static("x-teamster-conversation"), value(turn.conversation().to_string())),
        (HeaderName::from_static("x-teamster-turn"), value(turn.id().to_string())),
        (HeaderName::from_static("x-request-id"), value(turn.id().to_string())),
    ]
}

/// Waits for the end of the turn. When a client disconnects, this future is dropped, which aborts the turn.
async fn whole(gateway: &Gateway, mut turn: ChatTurn, head: &Head) -> Result<Response, ApiError> {
    let silence = gateway.config().timing.heartbeat;
    loop {
        match turn.next(silence).await {
            Step::Text(_) | Step::Silence => {}
            Step::Done(usage) => return Ok(Json(head.completion(&turn.text(), usage)).into_response()),
            Step::Failed(error) => return Err(error),
        }
    }
}

/// A stream of chunks.
struct Chunks {
    turn: ChatTurn,
    head: Head,
    /// Chunks that are not sent yet.
    ready: VecDeque<String>,
    has_ended: bool,
    _permit: StreamPermit,
}

/// Returns the response of a stream. The role is sent at once: proxies close connections that are silent for a minute.
fn streamed(state: &OpenAiState, turn: ChatTurn, head: Head, permit: StreamPermit) -> Response {
    let (silence, send_timeout) = (state.gateway.config().timing.heartbeat, state.send_timeout);
    let ready = VecDeque::from([head.start()]);
    let mut chunks = Chunks { turn, head, ready, has_ended: false, _permit: permit };
    let (sender, receiver) = mpsc::channel(WAITING_CHUNKS);
    let work = async move {
        loop {
            let chunk = tokio::select! {
                biased;
                () = sender.closed() => return,
                chunk = chunks.next(silence) => chunk,
            };
            let Some(chunk) = chunk else { return };
            // If a client does not read, its permit is released and its turn is aborted.
            if sender.send_timeout(chunk, send_timeout).await.is_err() {
                return;
            }
        }
    };
    tokio::spawn(work.in_current_span());
    // No event has an id: some clients take a comment after an id for an event.
    let stream = ReceiverStream::new(receiver).map(|chunk| Ok::<_, Infallible>(sse::Event::default().data(chunk)));
    let mut response = Sse::new(stream).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Chunks {
    async fn next(&mut self, silence: Duration) -> Option<String> {
        if let Some(chunk) = self.ready.pop_front() {
            return Some(chunk);
        }
        if self.has_ended {
            return None;
        }
        match self.turn.next(silence).await {
            Step::Text(text) => Some(self.head.text(&text)),
            Step::Silence => Some(self.head.text("")),
            Step::Done(usage) => {
                self.has_ended = true;
                self.ready.extend(self.head.end(usage));
                self.ready.pop_front()
            }
            // An error after the start of the response: no `finish_reason`, and no `[DONE]`, since the answer is not complete.
            Step::Failed(error) => {
                self.has_ended = true;
                serde_json::to_string(&error.body()).ok()
            }
        }
    }
}

async fn models(
    State(state): State<Arc<OpenAiState>>,
    caller: Result<Authenticated, Problem>,
) -> Result<Json<Value>, ApiError> {
    caller?.require(Scope::Read)?;
    let data: Vec<_> = state.gateway.runtime().registry().names().map(model_object).collect();
    Ok(Json(json!({ "object": "list", "data": data })))
}

async fn model(
    State(state): State<Arc<OpenAiState>>,
    caller: Result<Authenticated, Problem>,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    caller?.require(Scope::Read)?;
    let agent = name.split('/').next().unwrap_or_default();
    if state.gateway.runtime().registry().get(agent).is_err() {
        return Err(unknown_model(&state.gateway, &name));
    }
    Ok(Json(model_object(&name)))
}

fn model_object(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": CREATED, "owned_by": "teamster" })
}

fn check_agent(gateway: &Gateway, request: &ChatRequest) -> Result<(), ApiError> {
    match gateway.runtime().registry().get(&request.agent) {
        Ok(_) => Ok(()),
        Err(_) => Err(unknown_model(gateway, &request.model)),
    }
}

fn unknown_model(gateway: &Gateway, name: &str) -> ApiError {
    let agents: Vec<_> = gateway.runtime().registry().names().collect();
    ApiError::unknown_model(name, &agents.join(", "))
}
