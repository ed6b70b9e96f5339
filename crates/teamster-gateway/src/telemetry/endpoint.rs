//! `GET /metrics`.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use tokio::time::timeout;

use super::metrics::WorkerLevels;
use crate::access::{Identity, Scope};
use crate::engine::Gateway;
use crate::http::{Problem, ProblemCode};

/// How long a scrape waits for the status of the store. Prometheus waits for 10 s by default.
const LIMIT: Duration = Duration::from_secs(5);

/// The text format of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `OpenMetrics`, for scrapers that request it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the route `GET /metrics`. It needs a token with the scope `read`, also on loopback: other users and programs of the
/// machine can reach loopback addresses. Put the access layer around it.
pub fn metrics_router(gateway: Gateway) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(gateway)
}

async fn metrics(
    State(gateway): State<Gateway>,
    identity: Option<Extension<Identity>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(Extension(identity)) = identity else {
        return Err(Problem::new(ProblemCode::Unauthorized, "send the header `Authorization: Bearer TOKEN`"));
    };
    identity.require(Scope::Read)?;
    let now = gateway.now();
    let (counted, status) =
        tokio::join!(timeout(LIMIT, gateway.metrics().writes_counted()), timeout(LIMIT, gateway.store().status(now)));
    if counted.is_err() {
        tracing::warn!("writes of the store take too long; they are not counted yet");
    }
    let status = match status {
        Ok(Ok(status)) => Some(status),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the status of the store cannot be read");
            None
        }
        Err(_) => {
            tracing::warn!("the store does not answer in time");
            None
        }
    };
    let activity = gateway.activity();
    let worker = WorkerLevels {
        running_turns: activity.running_turns,
        idle_sessions: activity.idle_sessions,
        hook_failures: gateway.hooks().failure_count(),
    };
    gateway.metrics().set_levels(worker, status.as_ref(), now);
    gateway.metrics().set_channels(&gateway.channel_status());
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let is_open_metrics = accept.contains("application/openmetrics-text");
    let text = gateway.metrics().encode(is_open_metrics).map_err(|error| Problem::internal(&error))?;
    let kind = if is_open_metrics { OPEN_METRICS } else { TEXT };
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")], text).into_response())
}
