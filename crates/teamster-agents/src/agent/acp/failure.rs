//! The failures of ACP agents, by their error responses.

use serde_json::Value;

use crate::agent::failure::Matcher::{Field, Message, Status};
use crate::agent::failure::{Classification, FailureInput, FailureRow, lasting, passing};
use crate::agent::rpc::RpcError;
use teamster_types::event::ErrorCode::{
    Auth, Budget, Connection, ContextWindow, InvalidRequest, Overloaded, Provider, RateLimit, SessionNotFound,
};

/// "Authentication required".
pub(super) const AUTH_REQUIRED: i64 = -32000;

#[rustfmt::skip]
pub(in crate::agent) const FAILURES: &[FailureRow] = &[
    lasting(&[Field("error.code", "-32000")], Auth, &["gemini_no_auth"]),
    lasting(&[Field("error.code", "-32002")], SessionNotFound, &["claude_load_unknown"]),
    lasting(&[Field("asked", "a session"), Message("OpenCode service failure")], SessionNotFound, &["opencode_resume_unknown"]),
    lasting(&[Status(401, 401)], Auth, &["gemini_err_auth_401"]),
    lasting(&[Status(429, 429), Message("You have exhausted your daily quota…")], RateLimit, &["gemini_err_rate_429_day"]),
    passing(&[Status(500, 500), Message("terminated")], Connection, &["gemini_err_cut"]),
    lasting(&[Status(500, 500), Message("models/… is not found for API version …")], InvalidRequest, &["gemini_err_notfound_404"]),
    lasting(&[Message("Invalid session identifier …")], SessionNotFound, &["gemini_load_same_minute"]),
    lasting(&[Message("No previous sessions found for this project.")], SessionNotFound, &["gemini_load_none"]),
];

/// The meaning of the vendor's status, if an agent reports one and no row matches. (These failures were recorded only with the
/// agents' one-shot interfaces.)
const BY_STATUS: &[(u16, u16, teamster_types::event::ErrorCode, bool)] = &[
    (402, 402, Budget, false),
    (403, 403, Auth, false),
    (408, 408, Connection, true),
    (413, 413, ContextWindow, false),
    (429, 429, RateLimit, true),
    (503, 503, Overloaded, true),
    (529, 529, Overloaded, true),
    (400, 499, InvalidRequest, false),
    (500, 599, Provider, true),
];

/// Classifies an error response. `what` is what the call requested.
pub(super) fn of_response(what: &str, error: &RpcError) -> Classification {
    let message = message(error);
    let code = error.code.to_string();
    let status = status(error);
    let input = FailureInput { status, message: Some(&message), ..FailureInput::default() };
    let input = input.field("error.code", Some(&code)).field("asked", Some(what));
    let shown = if message.is_empty() { format!("the agent rejected {what} (error {code})") } else { message.clone() };
    let mut classification = input.classify(FAILURES, shown);
    let known = status.and_then(|status| BY_STATUS.iter().find(|(from, to, ..)| (*from..=*to).contains(&status)));
    if let (None, Some((_, _, code, retryable))) = (classification.row, known) {
        classification.failure.code = code.clone();
        classification.failure.retryable = Some(*retryable);
    }
    classification
}

/// Returns the vendor's status. Some agents use it as the error's code; others report it in the error's data.
fn status(error: &RpcError) -> Option<u16> {
    let in_data =
        || ["status", "statusCode", "httpStatus"].iter().find_map(|name| error.data.as_ref()?.get(*name)?.as_i64());
    let status = Some(error.code).filter(|code| (400..600).contains(code)).or_else(in_data)?;
    u16::try_from(status).ok()
}

/// Returns the agent's message. That of an internal error is in the error's data.
fn message(error: &RpcError) -> String {
    let message = error.message.strip_prefix("Internal error").unwrap_or(&error.message);
    let message = message.strip_prefix(": ").unwrap_or(message);
    if !message.is_empty() {
        return vendor_message(message).unwrap_or_else(|| message.to_owned());
    }
    let Some(data) = &error.data else { return error.message.clone() };
    let text = ["details", "message", "error"].iter().find_map(|name| data.get(*name)?.as_str());
    text.or_else(|| data.as_str()).unwrap_or(&error.message).to_owned()
}

/// Returns the vendor's message, if the text is the vendor's JSON.
fn vendor_message(message: &str) -> Option<String> {
    let document: Value = serde_json::from_str(message).ok()?;
    Some(document.pointer("/error/message")?.as_str()?.to_owned())
}
