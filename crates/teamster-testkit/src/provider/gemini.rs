//! The Gemini API, as Gemini CLI calls it with an API key.
//!
//! Gemini CLI 0.61.0 sends `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`, and the same
//! with `generateContent` (its router and summaries) and `countTokens`.

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
use super::playback::{error_response, json_response, respond};
use super::state::{ProviderState, RequestHead};
use crate::server::headers_by_name;
use write::Gemini;

/// The longest request body: room for a whole conversation with attachments.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// The divisor of the token estimate, which is not exact.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn router(state: Arc<ProviderState>) -> Router {
    Router::new()
        .route("/v1beta/models/{call}", post(call_model))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

/// Serves `MODEL:METHOD`, which is one segment of the path.
async fn call_model(
    State(state): State<Arc<ProviderState>>,
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
            state.record_side_request(head, body.to_vec());
            return json_response(&Gemini, &json!({"totalTokens": body.len() / BYTES_PER_TOKEN}), state.ids());
        }
        _ => {
            state.record_side_request(head, body.to_vec());
            return error_response(&Gemini, &HttpError::path_not_found(), state.ids());
        }
    };
    match read::parse(model, stream, &body) {
        Ok(request) => respond(&state, &Gemini, head, request).await,
        Err(why) => {
            state.record_side_request(head, body.to_vec());
            error_response(&Gemini, &HttpError::bad_request(why), state.ids())
        }
    }
}

async fn unknown_path(
    State(state): State<Arc<ProviderState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    state.record_side_request(head(&method, &uri, &headers), body.to_vec());
    error_response(&Gemini, &HttpError::path_not_found(), state.ids())
}

fn head(method: &Method, uri: &Uri, headers: &HeaderMap) -> RequestHead {
    RequestHead { method: method.to_string(), path: uri.to_string(), headers: headers_by_name(headers) }
}
