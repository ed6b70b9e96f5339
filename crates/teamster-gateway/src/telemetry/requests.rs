//! Counts HTTP requests.

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use super::labels::{OTHER, RequestLabels};
use super::metrics::Metrics;

/// Counts the requests of an app. Put it around everything else, so that refused requests are counted as well.
pub fn count_requests(app: Router, metrics: &Metrics) -> Router {
    app.layer(from_fn_with_state(metrics.clone(), count))
}

async fn count(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let method = method(request.method());
    // The template, not the path: ids in paths would be values without a bound. An unknown path has no template.
    let route = request.extensions().get::<MatchedPath>().map_or(OTHER, MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    metrics.request_ended(&RequestLabels { method, route, status: status(response.status()) });
    response
}

fn method(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| method.as_str() == *known).unwrap_or(OTHER)
}

const fn status(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}
