//! The Gemini API, as Gemini CLI calls it with an API key.
//!
//! Paths seen from Gemini CLI 0.61.0: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`, the same with
//! `generateContent` (its router and summaries), and `countTokens`.

mod read;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use axum::routing::post;
use serde_json::json;

use super::failure::HttpError;
use super::playback::{answer_json, perform, refuse};
use super::stage::{Head, Stage};
use crate::server::headers_by_name;
use write::Gemini;

/// Room for the longest conversation that an agent sends in one piece.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of a request that make a token, for counts that nobody should rely on.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn router(stage: Arc<Stage>) -> Router {
    Router::new()
        .route("/v1beta/models/{call}", post(call_model))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(stage)
}

/// `MODEL:METHOD` is one segment of the path.
async fn call_model(
    State(stage): State<Arc<Stage>>,
    Path(call): Path<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = head(&method, &uri, &headers);
    let (model, stream) = match call.rsplit_once(':') {
        Some((model, "streamGenerateContent")) => (model, true),
        Some((model, "generateContent")) => (model, false),
        Some((_, "countTokens")) => {
            stage.record_side_request(head, body.to_vec());
            return answer_json(&Gemini, &json!({"totalTokens": body.len() / BYTES_PER_TOKEN}), stage.ids());
        }
        _ => {
            stage.record_side_request(head, body.to_vec());
            return refuse(&Gemini, &HttpError::path_not_found(), stage.ids());
        }
    };
    match read::asked(model, stream, &body) {
        Ok(asked) => perform(&stage, &Gemini, head, asked).await,
        Err(why) => {
            stage.record_side_request(head, body.to_vec());
            refuse(&Gemini, &HttpError::bad_request(why), stage.ids())
        }
    }
}

async fn unknown_path(
    State(stage): State<Arc<Stage>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    stage.record_side_request(head(&method, &uri, &headers), body.to_vec());
    refuse(&Gemini, &HttpError::path_not_found(), stage.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> Head {
    Head { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
