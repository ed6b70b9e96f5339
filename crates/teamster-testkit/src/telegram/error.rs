//! The errors of the Bot API.

use serde_json::{Map, Value, json};

/// An error of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) code: u16,
    pub(super) description: String,
    pub(super) parameters: Map<String, Value>,
}

impl ApiError {
    pub(super) fn new(code: u16, description: impl Into<String>) -> Self {
        Self { code, description: description.into(), parameters: Map::new() }
    }

    /// The call is wrong.
    pub(super) fn bad(problem: impl AsRef<str>) -> Self {
        Self::new(400, format!("Bad Request: {}", problem.as_ref()))
    }

    /// Too many calls.
    pub(super) fn too_many(retry_after: u64) -> Self {
        let mut error = Self::new(429, format!("Too Many Requests: retry after {retry_after}"));
        error.parameters.insert("retry_after".to_owned(), retry_after.into());
        error
    }

    /// The group has another id.
    pub(super) fn migrated(to: i64) -> Self {
        let mut error = Self::bad("group chat was upgraded to a supergroup chat");
        error.parameters.insert("migrate_to_chat_id".to_owned(), to.into());
        error
    }

    /// Returns the body of the answer.
    pub(super) fn body(&self) -> Value {
        let Self { code, description, parameters } = self;
        let mut body = json!({"ok": false, "error_code": code, "description": description});
        if let (Some(body), false) = (body.as_object_mut(), parameters.is_empty()) {
            body.insert("parameters".to_owned(), Value::Object(parameters.clone()));
        }
        body
    }
}
