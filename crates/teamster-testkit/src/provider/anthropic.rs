//! The Anthropic Messages API, as Claude Code calls it.
//!
//! Claude Code 2.1.197 sends `HEAD /` at start, `POST /v1/messages?beta=true` and `POST
//! /v1/messages/count_tokens`.

mod read;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use axum::routing::{any, get, post};
use serde_json::json;

use super::failure::HttpError;
use super::playback::{error_response, json_response, respond};
use super::state::{ProviderState, RequestHead};
use crate::server::headers_by_name;
use write::Anthropic;

/// The longest request body: room for a whole conversation with attachments.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// The divisor of the token estimate, which is not exact.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn router(state: Arc<ProviderState>) -> Router {
    Router::new()
        .route("/", any(probe))
        .route("/v1/models", get(list_models))
        .route("/v1/messages", post(create_message))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

async fn create_message(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = head(&method, &uri, &headers);
    match read::parse(&body) {
        Ok(request) => respond(&state, &Anthropic, head, request).await,
        Err(why) => {
            state.record_side_request(head, body.to_vec());
            error_response(&Anthropic, &HttpError::bad_request(why), state.ids())
        }
    }
}

async fn count_tokens(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    state.record_side_request(head(&method, &uri, &headers), body.to_vec());
    let tokens = body.len() / BYTES_PER_TOKEN;
    json_response(&Anthropic, &json!({ "input_tokens": tokens }), state.ids())
}

async fn probe(State(state): State<Arc<ProviderState>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    state.record_side_request(head(&method, &uri, &headers), Vec::new());
    json_response(&Anthropic, &json!({}), state.ids())
}

async fn list_models(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    state.record_side_request(head(&method, &uri, &headers), Vec::new());
    let models = json!({
        "data": [{
            "type": "model",
            "id": "claude-sonnet-4-5",
            "display_name": "Claude Sonnet 4.5",
            "created_at": "2025-09-29T00:00:00Z",
        }],
        "has_more": false,
        "first_id": "claude-sonnet-4-5",
        "last_id": "claude-sonnet-4-5",
    });
    json_response(&Anthropic, &models, state.ids())
}

async fn unknown_path(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    state.record_side_request(head(&method, &uri, &headers), body.to_vec());
    error_response(&Anthropic, &HttpError::path_not_found(), state.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> RequestHead {
    RequestHead { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
