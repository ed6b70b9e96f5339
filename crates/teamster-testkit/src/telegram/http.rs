//! The routes.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use futures::stream;
use serde_json::{Value, json};

use super::control;
use super::error::ApiError;
use super::faults::Fault;
use super::polls::get_updates;
use super::world::{Shared, World};
use crate::params::{MAX_BODY, Params};

/// Returns the routes of the Bot API and of the control calls.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/{bot}/{method}", any(method))
        .route("/file/{bot}/{*path}", get(file))
        .nest("/control", control::router())
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(shared)
}

async fn method(
    State(shared): State<Arc<Shared>>,
    Path((bot, method)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    if let Err(error) = authorize(&shared, &bot) {
        return respond(Err(error));
    }
    let params = match Params::read(request).await {
        Ok(params) => params,
        Err(problem) => return respond(Err(ApiError::new(400, problem))),
    };
    // Names of methods are case-insensitive.
    let name = method.to_ascii_lowercase();
    let fault = shared.change(|world| {
        world.record(&method, &params);
        world.faults.take(&name)
    });
    match fault {
        None => respond(run(&shared, &name, &params).await),
        Some(Fault::RateLimit { retry_after }) => respond(Err(ApiError::too_many(retry_after))),
        Some(Fault::Error { code, description }) => respond(Err(ApiError::new(code, description))),
        Some(Fault::BadGateway) => (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response(),
        Some(Fault::CutBefore) => cut(),
        Some(Fault::CutAfter) => {
            _ = run(&shared, &name, &params).await;
            cut()
        }
        Some(Fault::Hang) => {
            _ = run(&shared, &name, &params).await;
            std::future::pending().await
        }
    }
}

async fn file(State(shared): State<Arc<Shared>>, Path((bot, path)): Path<(String, String)>) -> Response {
    if let Err(error) = authorize(&shared, &bot) {
        return respond(Err(error));
    }
    match shared.change(|world| world.faults.take("file")) {
        Some(Fault::CutBefore | Fault::CutAfter) => return cut(),
        Some(_) => return (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response(),
        None => {}
    }
    let content = shared.world().files.at(&path);
    match content {
        Some(bytes) => bytes.into_response(),
        None => respond(Err(ApiError::new(404, "Not Found"))),
    }
}

fn authorize(shared: &Shared, bot: &str) -> Result<(), ApiError> {
    match bot.strip_prefix("bot") {
        Some(token) if token == shared.world().token => Ok(()),
        Some(token) if token.contains(':') => Err(ApiError::new(401, "Unauthorized")),
        _ => Err(ApiError::new(404, "Not Found")),
    }
}

async fn run(shared: &Arc<Shared>, method: &str, params: &Params) -> Result<Value, ApiError> {
    if method == "getupdates" {
        return get_updates(shared, params).await;
    }
    shared.change(|world| call(world, method, params))
}

fn call(world: &mut World, method: &str, params: &Params) -> Result<Value, ApiError> {
    match method {
        "getme" => Ok(world.me()),
        "getwebhookinfo" => Ok(world.webhook_info()),
        "setwebhook" => Ok(world.set_webhook(params, true)),
        "deletewebhook" => Ok(world.set_webhook(params, false)),
        "setmycommands" => world.set_commands(params),
        "getmycommands" => Ok(world.commands.clone()),
        "sendmessage" => world.send_message(params),
        "senddocument" => world.send_file(params, "document"),
        "sendphoto" => world.send_file(params, "photo"),
        "sendchataction" => world.chat_action(params),
        "editmessagetext" => world.edit_text(params),
        "editmessagereplymarkup" => world.edit_keyboard(params),
        "deletemessage" => world.delete_message(params),
        "answercallbackquery" => world.answer_query(params),
        "getfile" => world.get_file(params),
        _ => Err(ApiError::new(404, "Not Found")),
    }
}

fn respond(result: Result<Value, ApiError>) -> Response {
    let (code, body) = match result {
        Ok(result) => (200, json!({"ok": true, "result": result})),
        Err(error) => (error.code, error.body()),
    };
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Returns a response that breaks off, so that its connection is closed.
fn cut() -> Response {
    let broken = stream::once(async { Err::<Bytes, _>(io::Error::other("cut")) });
    ([(header::CONTENT_LENGTH, "1000")], Body::from_stream(broken)).into_response()
}
