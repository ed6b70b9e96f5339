//! Errors as clients of OpenAI expect them.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::super::problem::Problem;
use crate::error::GatewayError;

/// The official clients repeat a request after many errors, unless this header is `false`.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An error as clients of OpenAI expect it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ApiError {
    message: String,
    r#type: &'static str,
    param: Option<String>,
    code: Option<String>,
    #[serde(skip)]
    status: StatusCode,
    /// Whether the same request may succeed soon.
    #[serde(skip)]
    is_retryable: bool,
    /// The value of `Retry-After`, in seconds.
    #[serde(skip)]
    retry_after: Option<u64>,
}

/// The body of an error: `{"error": ...}`.
#[derive(Debug, Serialize)]
pub(super) struct ErrorBody<'a> {
    error: &'a ApiError,
}

impl ApiError {
    /// Creates an error with a status.
    pub(super) fn new(status: StatusCode, message: impl Into<String>, code: Option<&str>) -> Self {
        let r#type = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        };
        let code = code.map(str::to_owned);
        Self { message: message.into(), r#type, param: None, code, status, is_retryable: false, retry_after: None }
    }

    /// Creates an error of a field.
    pub(super) fn invalid(param: impl Into<String>, problem: &str) -> Self {
        let param = param.into();
        let message = format!("'{param}' {problem}");
        Self { param: Some(param), ..Self::new(StatusCode::BAD_REQUEST, message, None) }
    }

    /// Creates the error of a model that does not exist.
    pub(super) fn unknown_model(model: &str, agents: &str) -> Self {
        let message =
            format!("The model '{model}' does not exist. Use an agent, or AGENT/MODEL. The agents are: {agents}");
        let code = Some("model_not_found");
        Self { param: Some("model".to_owned()), ..Self::new(StatusCode::NOT_FOUND, message, code) }
    }

    /// Creates the error of a turn that has failed with a code of the event stream.
    pub(super) fn of_turn(code: Option<&str>, message: Option<&str>) -> Self {
        let (status, known) = match code {
            Some("RATE_LIMIT" | "OVERLOADED" | "QUEUE_FULL") => (StatusCode::TOO_MANY_REQUESTS, code),
            Some("BUDGET") => (StatusCode::TOO_MANY_REQUESTS, Some("insufficient_quota")),
            Some("CONTEXT_WINDOW") => (StatusCode::BAD_REQUEST, Some("context_length_exceeded")),
            Some("INVALID_REQUEST") => (StatusCode::BAD_REQUEST, code),
            Some("ABORTED") => (StatusCode::CONFLICT, code),
            Some("WATCHDOG_TIMEOUT" | "DEADLINE_EXCEEDED" | "PERMISSION_TIMEOUT") => {
                (StatusCode::GATEWAY_TIMEOUT, code)
            }
            _ => (StatusCode::BAD_GATEWAY, code),
        };
        let message = message.filter(|text| !text.is_empty()).unwrap_or("the agent failed without a message");
        // The gateway has retried what can be retried, so that the client must not do it again.
        Self::new(status, message, known)
    }

    /// Creates the error of a gateway that ends before the turn does.
    pub(super) fn shutting_down() -> Self {
        let message = "the gateway is shutting down and has aborted the turn; send the request again after its restart";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, message, Some("SHUTTING_DOWN"));
        Self { is_retryable: true, ..error }
    }

    /// Returns the status.
    #[cfg(test)]
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the invalid field.
    #[cfg(test)]
    pub(super) fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }

    /// Returns its JSON.
    pub(super) const fn body(&self) -> ErrorBody<'_> {
        ErrorBody { error: self }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let code = problem.code();
        let error = Self::new(code.status(), problem.detail(), Some(&code.text()));
        // Nothing was accepted, so that a repeated request is safe.
        Self { is_retryable: true, retry_after: problem.retry_after_seconds(), ..error }
    }
}

impl From<GatewayError> for ApiError {
    fn from(error: GatewayError) -> Self {
        let error: Problem = error.into();
        error.into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if !self.is_retryable {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
