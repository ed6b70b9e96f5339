//! The error for requests that Codex cannot serve.

use teamster_types::request::RequestError;

/// Returns the error for an option, or a value of it, that Codex does not support.
pub(super) fn unsupported(option: &'static str, why: impl Into<String>) -> RequestError {
    RequestError::Unsupported { agent: "codex".to_owned(), option, why: why.into() }
}
