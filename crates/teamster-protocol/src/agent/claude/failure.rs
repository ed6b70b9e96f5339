//! What went wrong, by Claude Code 2.1.197's own words: structured fields first, exit codes next, texts last.
//!
//! Each row of the tables was seen in a recorded run (`tests/captures/claude`), named beside it where it is not obvious.

use super::wire::ResultLine;
use crate::event::{ErrorCode, Failure};
use crate::protocol::ExitReport;

/// Why a result is an error; `None` when it is none. `api_error` is the `error` of the last `assistant` line.
pub(super) fn of_result(line: &ResultLine, api_error: Option<&str>) -> Option<Failure> {
    // API errors come as subtype `success` with is_error: read is_error first, then the subtype.
    if !line.is_error {
        return None;
    }
    let message = message(line);
    let code = of_subtype(&line.subtype)
        .or_else(|| of_reason(line.terminal_reason.as_deref(), line.stop_reason.as_deref()))
        .or_else(|| of_text(&message, SESSION_TEXTS))
        .or_else(|| of_api_error(api_error))
        .or_else(|| of_status(line.api_error_status))
        .or_else(|| of_text(&message, RESULT_TEXTS))
        .or_else(|| (api_error == Some("invalid_request")).then_some(ErrorCode::InvalidRequest))
        .unwrap_or(ErrorCode::Provider);
    // A provider's own failure is transient only where it had a 5xx status or broke in the middle.
    let retryable = match code {
        ErrorCode::Provider => api_error == Some("server_error") || line.api_error_status >= Some(500),
        _ => code.is_transient(),
    };
    Some(Failure { retryable: Some(retryable), ..Failure::new(code, message) })
}

/// Why the CLI exited without a result: what stands on stderr. `None` when nothing is known of it, and when it did not
/// exit by itself: then nothing on stderr is the reason.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Failure> {
    if exit.code.is_none_or(|code| code == 0) {
        return None;
    }
    let mut lines = exit.stderr.lines();
    let (code, line) = lines.find_map(|line| {
        let code = of_text(line, SESSION_TEXTS).or_else(|| of_text(line, STDERR_TEXTS))?;
        Some((code, line))
    })?;
    let mut message = line.trim().to_owned();
    // "Error: Invalid MCP configuration:" tells what only on its next line.
    if let Some(more) = lines.next().filter(|_| message.ends_with(':')) {
        message = format!("{message} {}", more.trim());
    }
    if line.contains("root/sudo") {
        message.push_str(" (in a container, IS_SANDBOX=1 in the environment lifts this)");
    }
    Some(Failure::new(code, message))
}

fn message(line: &ResultLine) -> String {
    let errors: Vec<&str> = line.errors.iter().filter_map(|error| error.as_str()).collect();
    match &line.result {
        Some(text) if !text.is_empty() => text.clone(),
        _ if !errors.is_empty() => errors.join("; "),
        _ => format!("the agent reported {}", line.subtype),
    }
}

fn of_subtype(subtype: &str) -> Option<ErrorCode> {
    Some(match subtype {
        "error_max_turns" => ErrorCode::MaxTurns,
        "error_max_budget_usd" => ErrorCode::Budget,
        "error_max_structured_output_retries" => ErrorCode::StructuredOutput,
        _ => return None,
    })
}

fn of_reason(terminal_reason: Option<&str>, stop_reason: Option<&str>) -> Option<ErrorCode> {
    match (terminal_reason, stop_reason) {
        (Some("prompt_too_long"), _) => Some(ErrorCode::ContextWindow),
        (_, Some("refusal")) => Some(ErrorCode::Provider),
        _ => None,
    }
}

fn of_api_error(error: Option<&str>) -> Option<ErrorCode> {
    Some(match error? {
        "authentication_failed" | "oauth_org_not_allowed" => ErrorCode::Auth,
        "billing_error" => ErrorCode::Budget,
        "rate_limit" => ErrorCode::RateLimit,
        "overloaded" => ErrorCode::Overloaded,
        "model_not_found" => ErrorCode::InvalidRequest,
        "max_output_tokens" => ErrorCode::Provider,
        // `server_error` covers 529, a refused connection and a cut stream too, `invalid_request` 413: the status or the
        // text tells.
        _ => return None,
    })
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

type Texts = &'static [(&'static str, ErrorCode)];

const SESSION_TEXTS: Texts = &[
    ("No conversation found with session ID", ErrorCode::SessionNotFound),
    ("--resume requires a valid session ID", ErrorCode::SessionNotFound),
];

const RESULT_TEXTS: Texts = &[
    ("Not logged in", ErrorCode::Auth), // err_no_key_json: no assistant line to tell
    ("Invalid API key", ErrorCode::Auth),
    ("Unable to connect to API", ErrorCode::Connection), // err_refused
    ("Connection closed mid-response", ErrorCode::Connection), // err_cut_tool
    ("Connection to the API was lost", ErrorCode::Connection), // knob_cut_no_fallback
    ("Overloaded", ErrorCode::Overloaded),               // knob_529_no_sandbox_env: without a status
    ("cannot be parsed as a URL", ErrorCode::Config),    // crash_bad_base_url
    ("Prompt is too long", ErrorCode::ContextWindow),
];

const STDERR_TEXTS: Texts = &[
    ("cannot be used with root/sudo privileges", ErrorCode::Config),
    ("Claude configuration file at", ErrorCode::Config),
    ("Configuration error in", ErrorCode::Config),
    ("Settings file not found", ErrorCode::Config),
    ("MCP config file not found", ErrorCode::Config),
    ("Invalid MCP configuration", ErrorCode::Config),
    ("ystem prompt file not found", ErrorCode::Config),
    ("Not logged in", ErrorCode::Auth),
    ("Invalid API key", ErrorCode::Auth),
    ("Error: Session ID", ErrorCode::InvalidRequest), // session_id_reused: "... is already in use."
    ("Invalid session ID", ErrorCode::InvalidRequest),
    ("--session-id can only be used with", ErrorCode::InvalidRequest),
    ("--json-schema is not valid JSON", ErrorCode::InvalidRequest),
    ("error: unknown option", ErrorCode::InvalidRequest),
    ("error: option '", ErrorCode::InvalidRequest),
    ("error: --", ErrorCode::InvalidRequest), // limit_budget_bad: amid a dump of source lines
    ("Error: Input must be provided", ErrorCode::InvalidRequest),
    ("piped stdin input exceeds", ErrorCode::InvalidRequest),
];

fn of_text(text: &str, table: Texts) -> Option<ErrorCode> {
    table.iter().find(|(needle, _)| text.contains(needle)).map(|(_, code)| code.clone())
}
