//! The routes.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use futures::stream;
use serde_json::{Value, json};

use super::control;
use super::error::ApiError;
use super::faults::Fault;
use super::world::Shared;
use crate::params::{MAX_BODY, Params};

/// Returns the routes of the Web API, of files, and of the control calls.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/{method}", any(method))
        .route("/upload/{id}", post(upload))
        .route("/files/{id}", get(file))
        .route("/actions/{trigger}", post(respond_to))
        .nest("/control", control::router())
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(shared)
}

async fn method(
    State(shared): State<Arc<Shared>>,
    Path(method): Path<String>,
    headers: HeaderMap,
    request: Request<Body>,
) -> Response {
    let params = match Params::read(request).await {
        Ok(params) => params,
        Err(problem) => return (StatusCode::BAD_REQUEST, problem).into_response(),
    };
    let token = bearer(&headers).or_else(|| params.text("token").map(str::to_owned));
    let fault = shared.change(|world| {
        world.record(&method, &params);
        world.faults.take(&method)
    });
    let run = || {
        shared.change(|world| {
            world.authorize(&method, token.as_deref())?;
            world.call(&method, &params)
        })
    };
    match fault {
        None => respond(&shared, run()),
        Some(Fault::RateLimit { retry_after }) => respond(&shared, Err(ApiError::too_many(retry_after))),
        Some(Fault::Error { error }) => json_response(&json!({"ok": false, "error": error})),
        Some(Fault::ErrorAfter { error }) => {
            _ = run();
            json_response(&json!({"ok": false, "error": error}))
        }
        Some(Fault::BadGateway) => (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response(),
        Some(Fault::CutBefore) => cut(),
        Some(Fault::CutAfter) => {
            _ = run();
            cut()
        }
        Some(Fault::Hang) => {
            _ = run();
            std::future::pending().await
        }
    }
}

/// Takes the content of a file. Its URL is the permission.
async fn upload(State(shared): State<Arc<Shared>>, Path(id): Path<String>, request: Request<Body>) -> Response {
    let is_form = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.to_str().unwrap_or_default().starts_with("multipart/"));
    let bytes = if is_form {
        let params = Params::read(request).await.unwrap_or_default();
        params.files.into_values().next().map(|file| file.bytes).unwrap_or_default()
    } else {
        axum::body::to_bytes(request.into_body(), MAX_BODY).await.unwrap_or_default().to_vec()
    };
    match shared.change(|world| (world.faults.take("upload"), world.files.take(&id, &bytes))) {
        (Some(Fault::CutBefore | Fault::CutAfter), _) => cut(),
        (Some(_), _) => (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response(),
        (None, true) => format!("OK - {}", bytes.len()).into_response(),
        (None, false) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns a file. Without the scope, it is the page of a login.
async fn file(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    match shared.change(|world| world.faults.take("download")) {
        Some(Fault::CutBefore | Fault::CutAfter) => return cut(),
        Some(_) => return (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response(),
        None => {}
    }
    let world = shared.world();
    let is_permitted =
        bearer(&headers).is_some_and(|token| token == world.bot_token) && world.scopes.contains("files:read");
    if !is_permitted {
        return ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], "<html>Sign in</html>").into_response();
    }
    match world.files.content(&id) {
        Some((bytes, media_type)) => ([(header::CONTENT_TYPE, media_type)], bytes).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Takes what a person who has pressed a button, or sent a command, sees.
async fn respond_to(State(shared): State<Arc<Shared>>, Path(trigger): Path<String>, body: Bytes) -> Response {
    let Ok(response) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::BAD_REQUEST, "invalid_payload").into_response();
    };
    shared.change(|world| world.responses.entry(trigger).or_default().push(response));
    "ok".into_response()
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::to_owned)
}

fn respond(shared: &Shared, result: Result<Value, ApiError>) -> Response {
    let scopes = shared.world().scope_list();
    let mut response = match result {
        Ok(mut result) => {
            if let Some(result) = result.as_object_mut() {
                result.insert("ok".to_owned(), true.into());
            }
            json_response(&result)
        }
        Err(error) => {
            let mut response = json_response(&error.body());
            if let Some(seconds) = error.retry_after {
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    };
    if let Ok(scopes) = scopes.parse() {
        response.headers_mut().insert("x-oauth-scopes", scopes);
    }
    response
}

fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], value.to_string()).into_response()
}

/// Returns a response that breaks off, so that its connection is closed.
fn cut() -> Response {
    let broken = stream::once(async { Err::<Bytes, _>(io::Error::other("cut")) });
    ([(header::CONTENT_LENGTH, "1000")], Body::from_stream(broken)).into_response()
}
