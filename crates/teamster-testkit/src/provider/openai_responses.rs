//! The OpenAI Responses API over HTTP and SSE, as Codex calls it.
//!
//! Paths seen from Codex 0.169.0 with a provider of its configuration: `POST /v1/responses` alone; with the built-in one also
//! `GET /v1/responses`, which asks for a WebSocket and is refused, so that it falls back to HTTP.

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
use super::playback::{answer_json, perform, refuse};
use super::stage::{Head, Stage};
use crate::server::headers_by_name;
use write::OpenAiResponses;

/// Room for the longest conversation that an agent sends in one piece.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn router(stage: Arc<Stage>) -> Router {
    Router::new()
        .route("/v1/models", get(list_models))
        .route("/v1/responses", post(create_response))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(stage)
}

async fn create_response(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = head(&method, &uri, &headers);
    match read::asked(&body) {
        Ok(asked) => perform(&stage, &OpenAiResponses, head, asked).await,
        Err(why) => {
            stage.record_side_request(head, body.to_vec());
            refuse(&OpenAiResponses, &HttpError::bad_request(why), stage.ids())
        }
    }
}

async fn list_models(State(stage): State<Arc<Stage>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), Vec::new());
    let model = json!({"id": "gpt-5.5", "object": "model", "created": 1_767_225_600, "owned_by": "openai"});
    answer_json(&OpenAiResponses, &json!({"object": "list", "data": [model]}), stage.ids())
}

async fn unknown_path(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), body.to_vec());
    refuse(&OpenAiResponses, &HttpError::path_not_found(), stage.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> Head {
    Head { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
