//! The failures of OpenCode 1.18.33, classified by its error messages, its log and its standard error.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use time::format_description::well_known::Rfc2822;
use time::{Duration, OffsetDateTime};

use super::logs;
use super::wire::{ErrorBody, ErrorData};
use crate::agent::failure::Matcher::{Field, Message, Status, Stderr};
use crate::agent::failure::{Classification, FailureInput, FailureRow, lasting, passing, plain_lines};
use crate::protocol::ExitReport;
use teamster_types::event::ErrorCode::{
    Auth, Budget, CliExit, Config, Connection, ContextWindow, InvalidRequest, Overloaded, Provider, RateLimit,
    SessionNotFound, StructuredOutput,
};

/// The failure table. A connection error has no status, but a code or the URL. `log.error` is the log entry with the
/// reference of the error.
#[rustfmt::skip]
pub(super) const FAILURES: &[FailureRow] = &[
    lasting(&[Field("name", "ContextOverflowError")], ContextWindow, &["err_context_no_autocompact", "err_too_large413"]),
    lasting(&[Field("name", "ContentFilterError")], Provider, &["finish_content_filter"]),
    lasting(&[Field("name", "StructuredOutputError")], StructuredOutput, &["serve_structured_bad"]),
    lasting(&[Field("log.error", "ProviderModelNotFoundError: …")], InvalidRequest, &["err_unknown_model_logs", "err_unknown_provider_logs"]),
    lasting(&[Field("responseBody.error.code", "insufficient_quota")], Budget, &["err_quota429"]),
    lasting(&[Status(400, 400), Message("Your credit balance is too low…")], Budget, &["err_credit400_anthropic"]),
    lasting(&[Status(401, 401)], Auth, &["err_auth_error"]),
    lasting(&[Status(402, 402)], Budget, &["err_payment402"]),
    lasting(&[Status(403, 403)], Auth, &["err_forbidden"]),
    passing(&[Status(408, 408)], Connection, &["err_timeout408"]),
    passing(&[Status(429, 429)], RateLimit, &["err_rate_limit", "err_rate_limit_after"]),
    passing(&[Status(503, 503)], Overloaded, &["err_overloaded503"]),
    passing(&[Status(529, 529)], Overloaded, &["err_overloaded529"]),
    lasting(&[Status(400, 499)], InvalidRequest, &["err_bad_request", "err_not_found"]),
    passing(&[Status(500, 599)], Provider, &["err_server_500_html"]),
    passing(&[Field("metadata.code", "ECONNRESET")], Connection, &["err_cut"]),
    passing(&[Field("metadata.code", "ProviderHeaderTimeoutError")], Connection, &["err_hang_header_timeout"]),
    passing(&[Field("metadata.code", "ProviderResponseStreamError")], Connection, &["err_silent_mid_chunk_timeout"]),
    passing(&[Field("metadata.url", "…")], Connection, &["err_conn_refused", "err_dns", "err_tls"]),
    passing(&[Field("message.code", "overloaded")], Overloaded, &["err_stream_error"]),

    passing(&[Message("The operation timed out.")], Connection, &["err_hang_timeout_opt"]),
    lasting(&[Message("Model not found: …")], InvalidRequest, &["serve_unknown_model"]),
    lasting(&[Message("Failed to initialize provider: …")], Config, &["err_provider_package_logs"]),
    lasting(&[Stderr("Error: Session not found")], SessionNotFound, &["bad_session_unknown", "bad_session_uuid"]),
    passing(&[Stderr("Error: Unexpected error"), Stderr("CREATE TABLE …")], CliExit, &["conc_first_run_1", "conc_first_run_3"])
        .hint("another run was creating the agent's database"),
    lasting(&[Stderr("file is not a database")], Config, &["cfg_db_corrupt"]),
    lasting(&[Stderr("Error: Config file at …is not valid JSON(C):…")], Config, &["cfg_user_corrupt", "cfg_content_invalid_json"]),
    lasting(&[Stderr("Error: Configuration is invalid at …")], Config, &["cfg_content_bad_type"]),
    lasting(&[Stderr("Error: File not found: …")], InvalidRequest, &["flag_file_missing"]),
    lasting(&[Stderr("Error: Failed to change directory to …")], InvalidRequest, &["flag_dir_missing"]),
    lasting(&[Stderr("Error: You must provide a message…")], InvalidRequest, &["prompt_empty"]),
    lasting(&[Stderr("opencode run [message..]")], InvalidRequest, &["flag_format_bad", "prompt_dash"])
        .hint("the CLI printed its usage: it does not know an argument"),
];

/// Returns the class of an error. `stderr` contains the log.
pub(super) fn of_error(error: &ErrorBody, stderr: &str) -> Classification {
    let data = &error.data;
    let body = data.response_body.as_deref().and_then(vendor_code);
    // The message of an `UnknownError` can be JSON (`err_stream_error`).
    let message_json = data.message.as_deref().and_then(|message| serde_json::from_str::<VendorError>(message).ok());
    let log = data.reference.as_deref().and_then(|reference| logs::error(stderr, reference));
    let metadata = |name: &str| data.metadata.as_ref()?.get(name).and_then(Value::as_str);
    let input = FailureInput {
        status: data.status_code.and_then(|status| u16::try_from(status).ok()),
        message: data.message.as_deref(),
        ..FailureInput::default()
    };
    let input = input
        .field("name", Some(&error.name))
        .field("log.error", log.as_deref())
        .field("responseBody.error.code", body.as_deref())
        .field("metadata.code", metadata("code"))
        .field("metadata.url", metadata("url"))
        .field("message.code", message_json.as_ref().and_then(|error| error.code.as_deref()));
    input.classify(FAILURES, describe(error, log.as_deref()))
}

/// Returns the text of an error: the cause in the log, or else the message.
fn describe<'a>(error: &'a ErrorBody, log: Option<&'a str>) -> Cow<'a, str> {
    match (log, &error.data.message) {
        // `Unexpected server error. Check server logs for details.` gives no cause.
        (Some(log), _) => log.into(),
        (None, Some(message)) => message.into(),
        // An image that cannot be decoded ends the run with an error without a name (1.18.33).
        (None, None) if error.name.is_empty() => {
            "the agent reported an error without a name; its log may have the cause".into()
        }
        (None, None) => format!("the agent reported {}", error.name).into(),
    }
}

/// Returns when the vendor accepts requests again, by the `retry-after` header of its response. `at` is the time of the
/// response.
pub(super) fn resets_at(data: &ErrorData, at: OffsetDateTime) -> Option<OffsetDateTime> {
    let headers = data.response_headers.as_ref()?;
    let after = headers.get("retry-after")?.as_str()?;
    match after.parse::<u32>() {
        Ok(seconds) => at.checked_add(Duration::seconds(seconds.into())),
        Err(_) => OffsetDateTime::parse(after, &Rfc2822).ok(),
    }
}

/// Returns the class of an exit without an answer, by standard error; `None` if its cause is unknown.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Classification> {
    let exit_code = exit.code.filter(|code| *code != 0);
    exit_code?;
    let lines = plain_lines(exit.stderr);
    let stderr = lines.iter().map(String::as_str).collect();
    FailureInput { exit_code, stderr, ..FailureInput::default() }.classify_exit(FAILURES)
}

#[derive(Debug, Deserialize)]
struct VendorError {
    code: Option<String>,
}

/// Returns the vendor's code for the error.
fn vendor_code(body: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Body {
        error: VendorError,
    }
    serde_json::from_str::<Body>(body).ok()?.error.code
}
