//! The Anthropic Messages API, as Claude Code calls it.
//!
//! Paths seen from Claude Code 2.1.197: `HEAD /` at start, `POST /v1/messages?beta=true`, `POST /v1/messages/count_tokens`.

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
use super::playback::{answer_json, perform, refuse};
use super::stage::{Head, Stage};
use crate::server::headers_by_name;
use write::Anthropic;

/// Room for the longest conversation that an agent sends in one piece.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of a request that make a token, for counts that nobody should rely on.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn router(stage: Arc<Stage>) -> Router {
    Router::new()
        .route("/", any(probe))
        .route("/v1/models", get(list_models))
        .route("/v1/messages", post(create_message))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(stage)
}

async fn create_message(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = head(&method, &uri, &headers);
    match read::asked(&body) {
        Ok(asked) => perform(&stage, &Anthropic, head, asked).await,
        Err(why) => {
            stage.record_side_request(head, body.to_vec());
            refuse(&Anthropic, &HttpError::bad_request(why), stage.ids())
        }
    }
}

async fn count_tokens(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), body.to_vec());
    let tokens = body.len() / BYTES_PER_TOKEN;
    answer_json(&Anthropic, &json!({ "input_tokens": tokens }), stage.ids())
}

async fn probe(State(stage): State<Arc<Stage>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), Vec::new());
    answer_json(&Anthropic, &json!({}), stage.ids())
}

async fn list_models(State(stage): State<Arc<Stage>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), Vec::new());
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
    answer_json(&Anthropic, &models, stage.ids())
}

async fn unknown_path(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), body.to_vec());
    refuse(&Anthropic, &HttpError::path_not_found(), stage.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> Head {
    Head { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
