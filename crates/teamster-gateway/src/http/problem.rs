//! Problems: the error responses of the API (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use teamster_store::StoreError;
use utoipa::ToSchema;

use crate::error::GatewayError;

/// The time after which a caller may repeat a call that a full queue refused, in seconds.
const QUEUE_RETRY: u64 = 5;

/// The time after which a caller may repeat a call that a restart or a locked store refused, in seconds.
const OUTAGE_RETRY: u64 = 2;

/// The time after which a caller may repeat a message that could not be checked, in seconds.
const CHECK_RETRY: u64 = 10;

/// The stable code of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ProblemCode {
    /// A value of the request is invalid.
    InvalidRequest,
    /// The request has no valid token.
    Unauthorized,
    /// The caller may not do this.
    Forbidden,
    /// A rule or a hook of the operator rejects the message.
    Rejected,
    /// The path or the record does not exist.
    NotFound,
    /// The path does not support the method.
    MethodNotAllowed,
    /// The call took too long.
    DeadlineExceeded,
    /// The state of the record does not permit the call.
    Conflict,
    /// A turn of the conversation runs.
    ConversationBusy,
    /// The permission request was answered or closed before.
    AlreadyAnswered,
    /// The time limit of the permission request has passed, or its agent no longer runs.
    Expired,
    /// Retention has deleted the requested events.
    EventsPruned,
    /// The record has changed since the version in `If-Match`.
    PreconditionFailed,
    /// The body or the attachments are too large.
    PayloadTooLarge,
    /// The body has another media type than the call needs.
    UnsupportedMediaType,
    /// The idempotency key was used with another body.
    IdempotencyMismatch,
    /// A queue of turns is full.
    QueueFull,
    /// The caller sends too many requests.
    RateLimited,
    /// Too many event streams are open.
    TooManySubscribers,
    /// The agent cannot run.
    AgentUnavailable,
    /// The store cannot be used now.
    StoreUnavailable,
    /// A required hook of the operator failed.
    CheckUnavailable,
    /// The gateway shuts down.
    ShuttingDown,
    /// The disk of the gateway is full.
    DiskFull,
    /// The gateway has an error. The log of the operator has its cause.
    Internal,
}

impl ProblemCode {
    /// Returns the status of the response.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::Rejected => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict | Self::ConversationBusy | Self::AlreadyAnswered | Self::Expired => StatusCode::CONFLICT,
            Self::EventsPruned => StatusCode::GONE,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::IdempotencyMismatch => StatusCode::UNPROCESSABLE_ENTITY,
            Self::QueueFull | Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::DeadlineExceeded
            | Self::TooManySubscribers
            | Self::AgentUnavailable
            | Self::StoreUnavailable
            | Self::CheckUnavailable
            | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is invalid",
            Self::Unauthorized => "A valid token is required",
            Self::Forbidden => "The caller may not do this",
            Self::Rejected => "The message is rejected",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "The path does not support this method",
            Self::DeadlineExceeded => "The call took too long",
            Self::Conflict => "The state does not permit this call",
            Self::ConversationBusy => "A turn of the conversation is running",
            Self::AlreadyAnswered => "The request is closed",
            Self::Expired => "The request has expired",
            Self::EventsPruned => "The events are deleted",
            Self::PreconditionFailed => "The record has changed",
            Self::PayloadTooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The media type is not supported",
            Self::IdempotencyMismatch => "The idempotency key was used with another body",
            Self::QueueFull => "The queue is full",
            Self::RateLimited => "Too many requests",
            Self::TooManySubscribers => "Too many event streams",
            Self::AgentUnavailable => "The agent cannot run",
            Self::StoreUnavailable => "The store cannot be used now",
            Self::CheckUnavailable => "A required hook failed",
            Self::ShuttingDown => "The gateway is shutting down",
            Self::DiskFull => "The disk is full",
            Self::Internal => "Internal error",
        }
    }

    /// Returns the code as a text.
    pub fn text(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// A problem. It is the body of each response with an error status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problem(Box<ProblemFields>);

/// A problem: what is wrong with a call (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(super) struct ProblemFields {
    /// A URI that names the kind of the problem.
    r#type: String,
    /// The meaning of the code.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// The stable code.
    code: ProblemCode,
    /// What is wrong here, and how to correct it.
    detail: String,
    /// The invalid field, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The oldest event that can be read, if events are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_seq: Option<u64>,
    /// The position with which a subscriber of all conversations accepts that events are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_after: Option<String>,
    /// Who answered a permission request that is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_by: Option<String>,
    /// The value of `Retry-After` in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl Problem {
    /// Creates a problem. The detail states what is wrong and how to correct it; it contains no secret and no path.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self(Box::new(ProblemFields {
            r#type: format!("urn:teamster:problem:{}", code.text().to_lowercase().replace('_', "-")),
            title: code.title(),
            status: code.status().as_u16(),
            code,
            detail: detail.into(),
            field: None,
            oldest_seq: None,
            resume_after: None,
            answered_by: None,
            retry_after: None,
        }))
    }

    /// Creates a problem of a field.
    pub fn invalid(field: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        let field = field.into();
        let mut invalid = Self::new(ProblemCode::InvalidRequest, format!("{field}: {problem}"));
        invalid.0.field = Some(field);
        invalid
    }

    /// Creates a problem for an unknown record.
    pub fn not_found(entity: impl std::fmt::Display, id: impl std::fmt::Display) -> Self {
        Self::new(ProblemCode::NotFound, format!("{entity} {id} does not exist"))
    }

    /// Creates a problem whose cause only the operator's log names.
    pub fn internal(cause: &(dyn std::fmt::Display + Sync)) -> Self {
        tracing::error!(%cause, "a call of the API failed");
        Self::new(ProblemCode::Internal, "internal error of the gateway; its log has the cause")
    }

    /// Adds the time after which the call may be repeated, in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// Adds who answered.
    #[must_use]
    pub fn answered_by(mut self, by: Option<String>) -> Self {
        self.0.answered_by = by;
        self
    }

    /// Returns the code.
    pub fn code(&self) -> ProblemCode {
        self.0.code
    }

    /// Returns what is wrong.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the time after which the call may be repeated, in seconds.
    pub(super) fn retry_after_seconds(&self) -> Option<u64> {
        self.0.retry_after
    }

    /// Returns the same problem with another code.
    #[must_use]
    pub(super) fn with_code(self, code: ProblemCode) -> Self {
        let ProblemFields { detail, field, oldest_seq, resume_after, answered_by, retry_after, .. } = *self.0;
        let Self(fields) = Self::new(code, detail);
        Self(Box::new(ProblemFields { field, oldest_seq, resume_after, answered_by, retry_after, ..*fields }))
    }
}

impl From<GatewayError> for Problem {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Store(error) => error.into(),
            GatewayError::Rejected { .. } => Self::new(ProblemCode::Rejected, error.to_string()),
            // The texts do not reveal which directories exist outside of those that the configuration permits.
            GatewayError::Invalid { field: "directory", problem } => {
                Self::invalid("directory", problem).with_code(ProblemCode::Forbidden)
            }
            GatewayError::Invalid { field, problem } => Self::invalid(field, problem),
            GatewayError::Forbidden { reason } => Self::new(ProblemCode::Forbidden, reason),
            GatewayError::Agent(_) => Self::new(ProblemCode::AgentUnavailable, error.to_string()),
            GatewayError::Unavailable { reason } => {
                Self::new(ProblemCode::CheckUnavailable, reason).retry_after(CHECK_RETRY)
            }
            GatewayError::ShuttingDown => {
                Self::new(ProblemCode::ShuttingDown, error.to_string()).retry_after(OUTAGE_RETRY)
            }
            other => Self::internal(&other),
        }
    }
}

/// Paths of the machine are in the log of the operator, not in the response.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NotFound { .. } => Self::new(ProblemCode::NotFound, text),
            StoreError::Exists { .. }
            | StoreError::WrongState { .. }
            | StoreError::VersionConflict { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::DeliveryLeaseLost { .. } => Self::new(ProblemCode::Conflict, text),
            StoreError::ConversationBusy { .. } => Self::new(ProblemCode::ConversationBusy, text),
            StoreError::IdempotencyMismatch { .. } => Self::new(ProblemCode::IdempotencyMismatch, text),
            StoreError::QueueFull { .. } => Self::new(ProblemCode::QueueFull, text).retry_after(QUEUE_RETRY),
            StoreError::EventsPruned { oldest } => {
                let mut pruned = Self::new(ProblemCode::EventsPruned, text);
                pruned.0.oldest_seq = Some(oldest.get());
                pruned
            }
            StoreError::SearchLimit { .. } => Self::new(ProblemCode::DeadlineExceeded, text),
            StoreError::FeedPruned { resume } => {
                let mut pruned = Self::new(ProblemCode::EventsPruned, text);
                pruned.0.resume_after = Some(resume.as_str().to_owned());
                pruned
            }
            StoreError::Invalid { .. } => Self::new(ProblemCode::InvalidRequest, text),
            StoreError::DiskFull { .. } => {
                tracing::error!(%error, "the disk is full");
                let detail = "the gateway has no free space; accepted messages are safe; the operator must free space";
                Self::new(ProblemCode::DiskFull, detail)
            }
            StoreError::Locked { .. } | StoreError::Closed | StoreError::ReadOnly { .. } => {
                tracing::error!(%error, "the store cannot be used");
                let detail = "the gateway cannot use its store now; send the request again";
                Self::new(ProblemCode::StoreUnavailable, detail).retry_after(OUTAGE_RETRY)
            }
            other => Self::internal(&other),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.code().status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.code() == ProblemCode::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.0.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // The OpenAI-compatible API shows it in another form.
        response.extensions_mut().insert(self);
        response
    }
}

/// The result of a handler.
pub(super) type Result<T, E = Problem> = std::result::Result<T, E>;
