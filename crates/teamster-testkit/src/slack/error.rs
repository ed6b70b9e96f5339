//! The errors of the Web API.

use serde_json::{Map, Value};

/// An error of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) code: &'static str,
    /// More fields of the answer.
    pub(super) more: Map<String, Value>,
    /// The time to wait, for a call that is one too many.
    pub(super) retry_after: Option<u64>,
}

impl ApiError {
    pub(super) fn new(code: &'static str) -> Self {
        Self { code, more: Map::new(), retry_after: None }
    }

    /// The token lacks a scope.
    pub(super) fn missing_scope(needed: &str, provided: &str) -> Self {
        let mut error = Self::new("missing_scope");
        error.more.insert("needed".to_owned(), needed.into());
        error.more.insert("provided".to_owned(), provided.into());
        error
    }

    /// An argument is wrong, for this reason.
    pub(super) fn detailed(code: &'static str, reason: impl Into<String>) -> Self {
        let mut error = Self::new(code);
        let reason: Value = reason.into().into();
        error.more.insert("response_metadata".to_owned(), serde_json::json!({"messages": [reason]}));
        error
    }

    /// Too many calls.
    pub(super) fn too_many(retry_after: u64) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new("ratelimited") }
    }

    /// Returns the body of the answer.
    pub(super) fn body(&self) -> Value {
        let mut body = self.more.clone();
        body.insert("ok".to_owned(), false.into());
        body.insert("error".to_owned(), self.code.into());
        Value::Object(body)
    }
}
