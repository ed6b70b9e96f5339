//! Reads requests. Each error becomes a problem.

use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use tracing::Instrument as _;

use super::problem::{Problem, ProblemCode, Result};
use crate::access::{ClientAddress, Identity, Scope};

/// The authenticated caller of a request, and its address.
pub(super) struct Authenticated {
    pub(super) identity: Identity,
    /// The address of the client, if it is known.
    pub(super) origin: String,
}

impl Authenticated {
    /// Checks that the caller has a scope.
    pub(super) fn require(&self, scope: Scope) -> Result<()> {
        Ok(self.identity.require(scope)?)
    }

    pub(super) fn is_admin(&self) -> bool {
        self.identity.require(Scope::Admin).is_ok()
    }
}

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let identity = parts.extensions.get::<Identity>().cloned();
        let identity = identity
            .ok_or_else(|| Problem::new(ProblemCode::Unauthorized, "send the header `Authorization: Bearer TOKEN`"))?;
        let address = parts.extensions.get::<ClientAddress>();
        Ok(Self { identity, origin: address.map(|ClientAddress(address)| address.to_string()).unwrap_or_default() })
    }
}

/// A JSON body. Only `application/json` is read: a page of another site cannot send it without a preflight.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        check_media_type(request.headers(), "application/json")?;
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| bytes_problem(&rejection))?;
        // Serde would read an array as the fields of an object, in their order.
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err(Problem::new(ProblemCode::InvalidRequest, "the body must be a JSON object, not an array"));
        }
        let Json(value) = Json::from_bytes(&bytes).map_err(json_problem)?;
        Ok(Self(value))
    }
}

/// A JSON body that may be missing.
pub(super) struct OptionalBody<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        if request.headers().contains_key(CONTENT_TYPE) {
            let Body(value) = Body::<Option<T>>::from_request(request, state).await?;
            return Ok(Self(value.unwrap_or_default()));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| bytes_problem(&rejection))?;
        if bytes.is_empty() { Ok(Self(T::default())) } else { Err(unsupported("application/json")) }
    }
}

/// The bytes of an upload.
pub(super) struct Upload(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        check_media_type(request.headers(), "application/octet-stream")?;
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| bytes_problem(&rejection))?;
        Ok(Self(bytes))
    }
}

/// The parameters of the query.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let read: std::result::Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        read.map(|Query(value)| Self(value))
            .map_err(|rejection| Problem::new(ProblemCode::InvalidRequest, rejection.body_text()))
    }
}

/// The id in the path.
pub(super) struct Id<T>(pub(super) T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let read: std::result::Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path(text) = read.map_err(|rejection| Problem::new(ProblemCode::InvalidRequest, rejection.body_text()))?;
        text.parse().map(Self).map_err(|_| Problem::invalid("id", "in the path must be a UUID"))
    }
}

/// Runs a change to its end, even if the client disconnects in between.
pub(super) async fn complete<T: Send + 'static>(change: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    tokio::spawn(change.in_current_span()).await.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

/// Returns the version in `If-Match`.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(value) = headers.get(axum::http::header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text.is_empty() || text == "*" {
        return Ok(None);
    }
    let version = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).and_then(|text| text.parse().ok());
    let problem = || Problem::invalid("If-Match", "must be the value of `ETag`, for example \"3\"");
    version.map(Some).ok_or_else(problem)
}

fn check_media_type(headers: &HeaderMap, expected: &'static str) -> Result<()> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(expected) { Ok(()) } else { Err(unsupported(expected)) }
}

fn unsupported(expected: &str) -> Problem {
    Problem::new(ProblemCode::UnsupportedMediaType, format!("send the body with the header `Content-Type: {expected}`"))
}

fn json_problem(rejection: JsonRejection) -> Problem {
    match rejection {
        JsonRejection::BytesRejection(rejection) => bytes_problem(&rejection),
        other => Problem::new(ProblemCode::InvalidRequest, other.body_text()),
    }
}

fn bytes_problem(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(ProblemCode::PayloadTooLarge, "the body is larger than the limit of the gateway");
    }
    Problem::new(ProblemCode::InvalidRequest, format!("the body cannot be read: {}", rejection.body_text()))
}
