//! Responses that are HTTP errors, named by their cause.
//!
//! A failure names the cause (`HttpError::rate_limited()`). The wire format maps it to its vendor's
//! status, type and message. Values that a test sets take precedence.

/// The cause of an error, independent of the vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Unauthorized,
    Forbidden,
    OutOfCredit,
    ModelNotFound,
    PathNotFound,
    RateLimited,
    Overloaded,
    Internal,
    Unavailable,
    InvalidRequest,
    PromptTooLong,
    RequestTooLarge,
}

/// An HTTP error that the provider sends instead of a reply, or inserts into a stream as an error
/// event.
///
/// ```
/// use teamster_testkit::provider::{HttpError, Reply, Scenario};
///
/// let scenario = Scenario::new()
///     .reply(Reply::new().text("Recovered.").fail_times(2, HttpError::rate_limited().retry_after(1)))
///     .reply(HttpError::overloaded());
/// ```
#[derive(Debug, Clone)]
pub struct HttpError {
    pub(crate) failure: Failure,
    pub(crate) status: Option<u16>,
    pub(crate) type_name: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) raw_body: Option<RawBody>,
}

/// A body that is sent unchanged, such as the HTML page of a proxy.
#[derive(Debug, Clone)]
pub(crate) struct RawBody {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
}

impl HttpError {
    fn new(failure: Failure) -> Self {
        Self { failure, status: None, type_name: None, message: None, headers: Vec::new(), raw_body: None }
    }

    /// The API key is invalid (401).
    pub fn unauthorized() -> Self {
        Self::new(Failure::Unauthorized)
    }

    /// The API key lacks the permission (403).
    pub fn forbidden() -> Self {
        Self::new(Failure::Forbidden)
    }

    /// The account has no credit left.
    pub fn out_of_credit() -> Self {
        Self::new(Failure::OutOfCredit)
    }

    /// The model does not exist (404).
    pub fn model_not_found() -> Self {
        Self::new(Failure::ModelNotFound)
    }

    pub(crate) fn path_not_found() -> Self {
        Self::new(Failure::PathNotFound)
    }

    /// Too many requests (429).
    pub fn rate_limited() -> Self {
        Self::new(Failure::RateLimited)
    }

    /// The vendor is overloaded (529 on Anthropic).
    pub fn overloaded() -> Self {
        Self::new(Failure::Overloaded)
    }

    /// An internal error of the vendor (500).
    pub fn internal() -> Self {
        Self::new(Failure::Internal)
    }

    /// The service is unavailable (503).
    pub fn unavailable() -> Self {
        Self::new(Failure::Unavailable)
    }

    /// The request is invalid (400). Agents do not retry it.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Failure::InvalidRequest).message(message)
    }

    /// The conversation does not fit into the model's context window.
    pub fn prompt_too_long() -> Self {
        Self::new(Failure::PromptTooLong)
    }

    /// The request has too many bytes (413).
    pub fn request_too_large() -> Self {
        Self::new(Failure::RequestTooLarge)
    }

    /// A response with this status and body, byte for byte, such as from a broken proxy.
    pub fn raw(status: u16, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let mut error = Self::new(Failure::Internal).status(status);
        error.raw_body = Some(RawBody { content_type: content_type.into(), bytes: body.into() });
        error
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the vendor's name of the error type.
    #[must_use]
    pub fn type_name(mut self, name: impl Into<String>) -> Self {
        self.type_name = Some(name.into());
        self
    }

    /// Sets the message.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the number of seconds that the client should wait before it retries.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header("retry-after", seconds.to_string())
    }
}
