//! The OpenAI Chat Completions API, as OpenCode and compatible vendors use it.
//!
//! OpenCode 1.18.33 sends `POST /v1/chat/completions`, with the base URL `.../v1`.

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
use write::OpenAiChat;

/// The longest request body: room for a whole conversation with attachments.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn router(state: Arc<ProviderState>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(create_completion))
        .route("/v1/models", get(list_models))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

async fn create_completion(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = head(&method, &uri, &headers);
    match read::parse(&body) {
        Ok(request) => respond(&state, &OpenAiChat, head, request).await,
        Err(why) => {
            state.record_side_request(head, body.to_vec());
            error_response(&OpenAiChat, &HttpError::bad_request(why), state.ids())
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
    let models =
        json!({"object": "list", "data": [{"id": "m1", "object": "model", "created": 0, "owned_by": "testkit"}]});
    json_response(&OpenAiChat, &models, state.ids())
}

async fn unknown_path(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    state.record_side_request(head(&method, &uri, &headers), body.to_vec());
    error_response(&OpenAiChat, &HttpError::path_not_found(), state.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> RequestHead {
    RequestHead { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
