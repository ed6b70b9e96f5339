//! What went wrong, by OpenCode 1.18.33's own words: structured fields first, exit codes next, texts last.
//!
//! Each row was seen in a recorded run (`tests/captures/opencode`), named beside it where it is not obvious.

use super::logs;
use super::wire::{ErrorBody, ErrorData};
use crate::event::{ErrorCode, Failure};
use crate::protocol::ExitReport;

/// What an `error` line means.
pub(super) fn of_error(error: &ErrorBody) -> Failure {
    let data = &error.data;
    // An image that cannot be decoded ends the run with an error without a name (1.18.33).
    let name = if error.name.is_empty() { "an error that it does not name; its log may" } else { &error.name };
    let message = data.message.clone().unwrap_or_else(|| format!("the agent reported {name}"));
    let code = of_name(&error.name)
        .or_else(|| of_body(data))
        .or_else(|| of_status(data.status_code))
        .or_else(|| of_metadata(data))
        .or_else(|| of_text(&message, ERROR_TEXTS))
        .unwrap_or(ErrorCode::Provider);
    let retryable = match code {
        // Transient only where the agent itself tried again, or the vendor failed.
        ErrorCode::Provider => data.is_retryable == Some(true) || data.status_code >= Some(500),
        _ => code.is_transient(),
    };
    Failure { retryable: Some(retryable), ..Failure::new(code, message) }
}

/// `Unexpected server error. Check server logs for details.`: the log names the error, under the reference.
pub(super) fn explained(failure: Failure, reference: &str, stderr: &str) -> Failure {
    let entry = stderr.lines().find(|line| line.contains(reference) && line.contains("level=ERROR"));
    let Some(reason) = entry.and_then(reason) else { return failure };
    let code = of_text(entry.unwrap_or_default(), LOG_TEXTS).unwrap_or(failure.code);
    Failure { retryable: Some(false), ..Failure::new(code, reason) }
}

fn reason(entry: &str) -> Option<String> {
    let cause = ["cause", "error", "stack"].into_iter().find_map(|field| logs::value(entry, field))?;
    Some(cause.split("\\n").next().unwrap_or(cause).chars().take(500).collect())
}

/// Why the CLI exited without an answer: what stands on stderr. `None` when nothing is known of it.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Failure> {
    if exit.code.is_none_or(|code| code == 0) {
        return None;
    }
    let stderr = plain(exit.stderr);
    let at = stderr.lines().position(|line| of_text(line, EXIT_TEXTS).is_some())?;
    let line = stderr.lines().nth(at).unwrap_or_default();
    let code = of_text(line, EXIT_TEXTS)?;
    // conc_first_run_1: two first runs at once make the tables; the next try finds them.
    let retryable = line.contains("CREATE TABLE") || line.contains("database is locked");
    let message = if retryable {
        "another run was making the agent's database; try again".to_owned()
    } else {
        line.trim().trim_start_matches("Error: ").to_owned()
    };
    Some(Failure { retryable: Some(retryable), ..Failure::new(code, message) })
}

/// The text without the colours of a terminal.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest = rest.strip_prefix('m').unwrap_or(rest);
    }
    out.push_str(rest);
    out
}

fn of_name(name: &str) -> Option<ErrorCode> {
    Some(match name {
        "ContextOverflowError" => ErrorCode::ContextWindow,
        "ProviderAuthError" => ErrorCode::Auth,
        "ContentFilterError" | "MessageOutputLengthError" => ErrorCode::Provider,
        "MessageAbortedError" => ErrorCode::Aborted,
        "StructuredOutputError" => ErrorCode::StructuredOutput,
        // `APIError` and `UnknownError` cover everything else.
        _ => return None,
    })
}

/// The vendor's word for an empty account, which comes with 429 or 400.
fn of_body(data: &ErrorData) -> Option<ErrorCode> {
    let body = data.response_body.as_deref()?;
    let empty = ["insufficient_quota", "credit balance is too low"].iter().any(|word| body.contains(word));
    empty.then_some(ErrorCode::Budget)
}

fn of_status(status: Option<u64>) -> Option<ErrorCode> {
    Some(match status? {
        401 | 403 => ErrorCode::Auth,
        402 => ErrorCode::Budget,
        413 => ErrorCode::ContextWindow,
        429 => ErrorCode::RateLimit,
        529 => ErrorCode::Overloaded,
        400..=499 => ErrorCode::InvalidRequest,
        500.. => ErrorCode::Provider,
        _ => return None,
    })
}

/// An error of the connection has no status, but a code or the URL (`err_cut`, `err_conn_refused`, `err_hang_header_timeout`).
fn of_metadata(data: &ErrorData) -> Option<ErrorCode> {
    let metadata = data.metadata.as_ref()?;
    let broken = metadata.contains_key("url")
        || metadata.get("code").and_then(serde_json::Value::as_str).is_some_and(|code| {
            code.starts_with('E') || ["ProviderHeaderTimeoutError", "ProviderResponseStreamError"].contains(&code)
        });
    broken.then_some(ErrorCode::Connection)
}

type Texts = &'static [(&'static str, ErrorCode)];

const ERROR_TEXTS: Texts = &[
    ("\"code\":\"overloaded\"", ErrorCode::Overloaded), // err_stream_error: JSON in the message of an UnknownError
    ("The operation timed out", ErrorCode::Connection), // err_hang_timeout_opt
];

const LOG_TEXTS: Texts = &[
    ("ModelNotFound", ErrorCode::InvalidRequest), // err_unknown_model, err_unknown_provider
    ("Model not found", ErrorCode::InvalidRequest),
    ("Command not found", ErrorCode::InvalidRequest),
    ("ProviderInit", ErrorCode::Config),
];

const EXIT_TEXTS: Texts = &[
    ("Session not found", ErrorCode::SessionNotFound),
    ("CREATE TABLE", ErrorCode::CliExit),
    ("database is locked", ErrorCode::CliExit),
    ("file is not a database", ErrorCode::Config),
    ("JSONC Input", ErrorCode::Config),              // cfg_user_corrupt
    ("is not valid JSON", ErrorCode::Config),        // cfg_content_invalid_json
    ("Configuration is invalid", ErrorCode::Config), // cfg_content_bad_type
    ("Expected object", ErrorCode::Config),
    ("File not found", ErrorCode::InvalidRequest),
    ("Failed to change directory", ErrorCode::InvalidRequest),
    ("You must provide a message", ErrorCode::InvalidRequest),
];

fn of_text(text: &str, table: Texts) -> Option<ErrorCode> {
    table.iter().find(|(needle, _)| text.contains(needle)).map(|(_, code)| code.clone())
}
