//! The error for requests that Gemini CLI cannot serve.

use teamster_types::request::RequestError;

/// Returns the error for an option, or a value of it, that Gemini CLI does not support.
pub(super) fn unsupported(option: &'static str, why: impl Into<String>) -> RequestError {
    RequestError::Unsupported { agent: "gemini".to_owned(), option, why: why.into() }
}
