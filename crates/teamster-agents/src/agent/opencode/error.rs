//! The agent's name, and the error for requests that it cannot serve.

use teamster_types::request::RequestError;

/// The agent's name in Teamster, and its program.
pub(super) const NAME: &str = "opencode";

/// Returns the error for an option, or a value of it, that OpenCode does not support.
pub(super) fn unsupported(option: &'static str, why: impl Into<String>) -> RequestError {
    RequestError::Unsupported { agent: NAME.to_owned(), option, why: why.into() }
}
