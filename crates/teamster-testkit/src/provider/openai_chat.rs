//! The OpenAI Chat Completions API, as OpenCode calls it and every vendor that calls itself compatible serves it.
//!
//! Paths seen from OpenCode 1.18.33: `POST /v1/chat/completions`, with the base URL `.../v1`.

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
use write::OpenAiChat;

/// Room for the longest conversation that an agent sends in one piece.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn router(stage: Arc<Stage>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(create_completion))
        .route("/v1/models", get(list_models))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(stage)
}

async fn create_completion(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = head(&method, &uri, &headers);
    match read::asked(&body) {
        Ok(asked) => perform(&stage, &OpenAiChat, head, asked).await,
        Err(why) => {
            stage.record_side_request(head, body.to_vec());
            refuse(&OpenAiChat, &HttpError::bad_request(why), stage.ids())
        }
    }
}

async fn list_models(State(stage): State<Arc<Stage>>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), Vec::new());
    let models =
        json!({"object": "list", "data": [{"id": "m1", "object": "model", "created": 0, "owned_by": "testkit"}]});
    answer_json(&OpenAiChat, &models, stage.ids())
}

async fn unknown_path(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), body.to_vec());
    refuse(&OpenAiChat, &HttpError::path_not_found(), stage.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> Head {
    Head { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
