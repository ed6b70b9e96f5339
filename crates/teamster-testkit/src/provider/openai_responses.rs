//! The OpenAI Responses API over HTTP and SSE, as Codex calls it.
//!
//! With a provider from its configuration, Codex 0.169.0 sends only `POST /v1/responses`. With the
//! built-in provider it first requests a WebSocket with `GET /v1/responses`. That request is
//! rejected, so Codex falls back to HTTP.

mod events;
mod read;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json;

use super::failure::HttpError;
use super::playback::{error_response, json_response, respond};
use super::state::{ProviderState, RequestHead};
use crate::server::headers_by_name;
use write::OpenAiResponses;

/// The longest request body: room for a whole conversation with attachments.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn router(state: Arc<ProviderState>) -> Router {
    Router::new()
        .route("/v1/models", get(list_models))
        .route("/v1/responses", post(create_response))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

async fn create_response(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = head(&method, &uri, &headers);
    match read::parse(&body) {
        Ok(request) => respond(&state, &OpenAiResponses, head, request).await,
        Err(why) => {
            state.record_side_request(head, body.to_vec());
            error_response(&OpenAiResponses, &HttpError::bad_request(why), state.ids())
        }
    }
}

async fn list_models(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    state.record_side_request(head(&method, &uri, &headers), Vec::new());
    let model = json!({"id": "gpt-5.5", "object": "model", "created": 1_767_225_600, "owned_by": "openai"});
    json_response(&OpenAiResponses, &json!({"object": "list", "data": [model]}), state.ids())
}

async fn unknown_path(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    state.record_side_request(head(&method, &uri, &headers), body.to_vec());
    error_response(&OpenAiResponses, &HttpError::path_not_found(), state.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> RequestHead {
    RequestHead { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
