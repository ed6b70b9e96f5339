//! The errors of the REST API.

use std::time::Duration;

use serde_json::{Value, json};

/// An error of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ApiError {
    pub(super) status: u16,
    code: u64,
    message: String,
    errors: Option<Value>,
    /// The wait of a 429, and whether it is that of all calls.
    pub(super) limited: Option<(Duration, bool)>,
}

impl ApiError {
    pub(super) fn new(status: u16, code: u64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), errors: None, limited: None }
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(401, 0, "401: Unauthorized")
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, 0, "404: Not Found")
    }

    pub(super) fn unknown_channel() -> Self {
        Self::new(404, 10_003, "Unknown Channel")
    }

    pub(super) fn unknown_message() -> Self {
        Self::new(404, 10_008, "Unknown Message")
    }

    /// A value of the body is wrong.
    pub(super) fn invalid(field: &str, code: &str, message: &str) -> Self {
        let mut error = Self::new(400, 50_035, "Invalid Form Body");
        error.errors = Some(json!({field: {"_errors": [{"code": code, "message": message}]}}));
        error
    }

    /// Too many calls.
    pub(super) fn too_many(after: Duration, is_global: bool) -> Self {
        let mut error = Self::new(429, 0, "You are being rate limited.");
        error.limited = Some((after, is_global));
        error
    }

    /// Returns the body of the answer.
    pub(super) fn body(&self) -> Value {
        let Self { code, message, errors, limited, .. } = self;
        if let Some((after, is_global)) = limited {
            return json!({"message": message, "retry_after": after.as_secs_f64(), "global": is_global});
        }
        match errors {
            Some(errors) => json!({"message": message, "code": code, "errors": errors}),
            None => json!({"message": message, "code": code}),
        }
    }
}
