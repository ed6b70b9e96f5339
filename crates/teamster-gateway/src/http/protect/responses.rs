//! The responses to refused requests.

use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use crate::access::{Denial, WrongOrigin};
use crate::http::{Problem, ProblemCode};

/// A page of another site cannot set this header without a preflight, which the gateway does not answer.
pub(super) const CSRF_HEADER: &str = "x-teamster-csrf";

/// Returns the response to a request without a valid token. It contains no reason that the caller could not know.
pub(super) fn denied(denial: &Denial) -> Response {
    let detail = match denial {
        Denial::Missing => "send the header `Authorization: Bearer TOKEN`; a token in the URL is not accepted",
        Denial::Malformed => "send exactly one header `Authorization: Bearer TOKEN`",
        Denial::Unknown | Denial::Revoked => "the token is not valid; ask the operator of the gateway for another one",
        Denial::Expired => "the session has ended; log in again",
        Denial::Locked(wait) => {
            return too_many("too many attempts to authenticate from this address have failed", *wait);
        }
        Denial::Failed(error) => return Problem::internal(error).into_response(),
    };
    let mut response = Problem::new(ProblemCode::Unauthorized, detail).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Returns the response to a request from another site, or under another name.
pub(super) fn wrong_origin(reason: WrongOrigin) -> Response {
    let detail = match reason {
        WrongOrigin::Host => {
            "the header `Host` does not name this gateway; the operator adds a name to `hosts` in the configuration"
        }
        WrongOrigin::Origin => "the header `Origin` does not name this gateway; pages of other sites may not call it",
    };
    forbidden(detail)
}

/// Returns the response to a request with a session that another site may have caused.
pub(super) fn forged() -> Response {
    forbidden(
        "a change with the session of the page needs the headers `Origin` and `X-Teamster-CSRF: 1`; or send a token",
    )
}

pub(super) fn forbidden(detail: impl Into<String>) -> Response {
    Problem::new(ProblemCode::Forbidden, detail).into_response()
}

pub(super) fn too_many(detail: &str, wait: Duration) -> Response {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1);
    let detail = format!("{detail}; try again after {seconds} s");
    Problem::new(ProblemCode::RateLimited, detail).retry_after(seconds).into_response()
}

pub(super) fn too_large(limit: usize) -> Response {
    let detail = format!("the body is larger than {limit} bytes, the limit of the gateway");
    Problem::new(ProblemCode::PayloadTooLarge, detail).into_response()
}

pub(super) fn wrong_media_type() -> Response {
    let detail = "a body needs a `Content-Type` that a form of another site cannot send, such as `application/json`";
    Problem::new(ProblemCode::UnsupportedMediaType, detail).into_response()
}
