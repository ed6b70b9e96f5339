//! The HTTP side: tokens, faults, rate limits and files.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use futures::stream;
use serde_json::Value;

use super::body::{MAX_BODY, Sent};
use super::clock::now_ms;
use super::control;
use super::error::ApiError;
use super::faults::Fault;
use super::gateway::connect;
use super::routes::{Action, Route, has_own_token, route, run};
use super::world::{Call, Shared, World};

/// The limit of routes that have no other one: calls of a channel, and the time for them.
const USUAL_LIMIT: (usize, Duration) = (100, Duration::from_secs(1));

/// The result of a call.
type Answer = Result<Option<Value>, ApiError>;

/// Returns the routes of the API, of the gateway, of the files and of the control calls.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/v10/{*path}", any(call))
        .route("/gateway", get(connect))
        .route("/gateway/", get(connect))
        .route("/resume", get(connect))
        .route("/resume/", get(connect))
        .route("/cdn/attachments/{channel}/{id}/{name}", get(file))
        .nest("/control", control::router())
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(shared)
}

async fn call(State(shared): State<Arc<Shared>>, Path(path): Path<String>, request: Request<Body>) -> Response {
    let Some(route) = route(request.method(), &path) else {
        return respond(&Err(ApiError::not_found()), HeaderMap::new());
    };
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let is_known = authorization.and_then(|text| text.strip_prefix("Bot ")) == Some(&shared.world().token);
    if !is_known && !has_own_token(&route.action) {
        return respond(&Err(ApiError::unauthorized()), HeaderMap::new());
    }
    let sent = match Sent::read(request).await {
        Ok(sent) => sent,
        Err(problem) => return respond(&Err(ApiError::new(400, 50_109, problem)), HeaderMap::new()),
    };
    let (fault, limited, headers) = shared.change(|world| {
        world.calls.push(Call { route: route.name.to_owned(), path: path.clone(), body: sent.json.clone() });
        let (limited, headers) = count(world, &route);
        (world.faults.take(route.name), limited, headers)
    });
    if let Some(after) = limited {
        return respond(&Err(ApiError::too_many(after, false)), headers);
    }
    let run = |action: &Action| shared.change(|world| run(world, action, &sent));
    match fault {
        None => respond(&run(&route.action), headers),
        Some(Fault::RateLimit { after_ms, is_global }) => {
            respond(&Err(ApiError::too_many(Duration::from_millis(after_ms), is_global)), headers)
        }
        Some(Fault::Error { status, code, message }) => respond(&Err(ApiError::new(status, code, message)), headers),
        Some(Fault::BadGateway) => bad_gateway(),
        Some(Fault::BadGatewayAfter) => {
            _ = run(&route.action);
            bad_gateway()
        }
        Some(Fault::Blocked { retry_after }) => {
            let retry = [(header::RETRY_AFTER, retry_after.to_string())];
            (StatusCode::TOO_MANY_REQUESTS, retry, "<html>1015</html>").into_response()
        }
        Some(Fault::CutBefore) => cut(),
        Some(Fault::CutAfter) => {
            _ = run(&route.action);
            cut()
        }
        Some(Fault::Hang) => {
            _ = run(&route.action);
            std::future::pending().await
        }
    }
}

/// Counts a call. Returns how long it must wait, if it exceeds the limit, and the headers of the answer.
fn count(world: &mut World, route: &Route) -> (Option<Duration>, HeaderMap) {
    let (limit, period) = world.limits.get(route.name).copied().unwrap_or(USUAL_LIMIT);
    let now = Instant::now();
    let counted = world.counted.entry((route.name.to_owned(), route.major.clone())).or_default();
    while counted.front().is_some_and(|at| now.saturating_duration_since(*at) >= period) {
        counted.pop_front();
    }
    let is_limited = counted.len() >= limit;
    if !is_limited {
        counted.push_back(now);
    }
    let reset = counted.front().map_or(period, |first| (*first + period).saturating_duration_since(now));
    let reset_at = Duration::from_millis(now_ms()) + reset;
    let headers = [
        ("x-ratelimit-limit", limit.to_string()),
        ("x-ratelimit-remaining", limit.saturating_sub(counted.len()).to_string()),
        ("x-ratelimit-reset", format!("{:.3}", reset_at.as_secs_f64())),
        ("x-ratelimit-reset-after", format!("{:.3}", reset.as_secs_f64())),
        ("x-ratelimit-bucket", format!("bucket-{}", route.name)),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
    (is_limited.then_some(reset), headers.collect())
}

async fn file(State(shared): State<Arc<Shared>>, Path((_, id, _)): Path<(String, u64, String)>) -> Response {
    match shared.change(|world| {
        world.calls.push(Call { route: "file".to_owned(), path: id.to_string(), body: Value::Null });
        world.faults.take("file")
    }) {
        Some(Fault::CutBefore | Fault::CutAfter) => return cut(),
        Some(Fault::Error { status, code, message }) => {
            return respond(&Err(ApiError::new(status, code, message)), HeaderMap::new());
        }
        Some(_) => return bad_gateway(),
        None => {}
    }
    let content = shared.world().files.content(id);
    match content {
        Some(bytes) => bytes.into_response(),
        None => respond(&Err(ApiError::not_found()), HeaderMap::new()),
    }
}

fn respond(answer: &Answer, mut headers: HeaderMap) -> Response {
    let (status, body) = match answer {
        Ok(None) => return (StatusCode::NO_CONTENT, headers).into_response(),
        Ok(Some(result)) => (200, result.clone()),
        Err(error) => (error.status, error.body()),
    };
    if let Err(ApiError { limited: Some((after, is_global)), .. }) = answer {
        let more = [
            ("retry-after", after.as_secs_f64().ceil().to_string()),
            // Without it, clients take the answer for one of a proxy.
            ("via", "1.1 google".to_owned()),
            ("x-ratelimit-scope", if *is_global { "global" } else { "user" }.to_owned()),
        ];
        let global = is_global.then(|| ("x-ratelimit-global", "true".to_owned()));
        for (name, value) in more.into_iter().chain(global) {
            if let Ok(value) = value.parse() {
                headers.insert(name, value);
            }
        }
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, headers, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn bad_gateway() -> Response {
    (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response()
}

/// Returns a response that breaks off, so that its connection is closed.
fn cut() -> Response {
    let broken = stream::once(async { Err::<Bytes, _>(io::Error::other("cut")) });
    ([(header::CONTENT_LENGTH, "1000")], Body::from_stream(broken)).into_response()
}
