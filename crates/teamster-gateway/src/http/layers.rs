//! The layers of every call: a time limit, panics as problems, and problems for unknown paths and methods.

use std::any::Any;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use super::problem::{Problem, ProblemCode};

/// The time until a call has its response. The longest wait for a turn is a minute. Event streams may last longer: the
/// limit applies to their start only.
const LIMIT: Duration = Duration::from_secs(90);

/// Puts the time limit, the handling of panics, and problems for unknown methods around routes. No response is cached or shown
/// as another type than its own.
pub(super) fn around(router: Router) -> Router {
    let private = HeaderValue::from_static("no-store");
    let exact = HeaderValue::from_static("nosniff");
    router
        .method_not_allowed_fallback(unknown_method)
        .layer(from_fn(limited))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, private))
        .layer(SetResponseHeaderLayer::if_not_present(X_CONTENT_TYPE_OPTIONS, exact))
}

/// Adds a problem for unknown paths.
pub(super) fn with_fallback(router: Router) -> Router {
    router.fallback(unknown_path)
}

async fn limited(request: Request, next: Next) -> Response {
    let response = tokio::time::timeout(LIMIT, next.run(request)).await;
    response.unwrap_or_else(|_| {
        let detail = format!("the call did not end within {} s; it may still take effect", LIMIT.as_secs());
        Problem::new(ProblemCode::DeadlineExceeded, detail).into_response()
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the layer passes the payload by value")]
fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text");
    Problem::internal(&text).into_response()
}

async fn unknown_path(uri: Uri) -> Problem {
    Problem::new(ProblemCode::NotFound, format!("the path {} does not exist; see /v1/openapi.json", uri.path()))
}

async fn unknown_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("the path {} does not support {method}; see /v1/openapi.json", uri.path());
    Problem::new(ProblemCode::MethodNotAllowed, detail)
}
