//! The ids of sessions.

use teamster_types::event::{ErrorCode, Failure, SessionId};
use teamster_types::request::Conversation;

/// Returns whether a text has the form of a session id. The server rejects any other form as a bad request (1.18.33).
pub(super) fn is_session_id(text: &str) -> bool {
    text.starts_with("ses") && is_path_segment(text)
}

/// Returns whether a text can be a segment of a URL path without escapes: letters, digits, `_` and `-`.
pub(super) fn is_path_segment(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Returns the failure of a conversation whose session cannot exist, because of the form of its id.
pub(super) fn invalid_id(conversation: &Conversation) -> Option<Failure> {
    match conversation {
        Conversation::Resume(id) | Conversation::Fork(id) if !is_session_id(id.as_str()) => Some(not_found(id)),
        _ => None,
    }
}

/// Returns the failure for a session that does not exist.
pub(super) fn not_found(id: &SessionId) -> Failure {
    let failure = Failure::new(ErrorCode::SessionNotFound, format!("Session not found: {}", id.as_str()));
    failure.with_retryable(false)
}
