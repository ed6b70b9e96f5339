//! What went wrong, by Codex 0.169.0's own words. `exec` gives nothing but text: what is structured in it (a status, the
//! vendor's JSON) comes first, exit codes next, words last.
//!
//! Each row of the tables was seen in a recorded run (`tests/captures/codex`), named beside it where it is not obvious.

use serde::Deserialize;

use crate::event::{ErrorCode, Failure, PermissionDenial, StopReason};
use crate::protocol::ExitReport;

/// Why a turn failed.
pub(super) fn of_turn(message: &str) -> Failure {
    if let Some(failure) = of_vendor(message) {
        return failure;
    }
    let status = status(message).map(of_status);
    let (code, retryable) = status.or_else(|| of_text(message, TURN_TEXTS)).unwrap_or((ErrorCode::Provider, false));
    Failure { retryable: Some(retryable), ..Failure::new(code, message) }
}

/// Why the model stopped, where the failure tells.
pub(super) fn stop_reason(message: &str) -> Option<StopReason> {
    match message.split_once("Incomplete response returned, reason: ")?.1.trim() {
        "max_output_tokens" => Some(StopReason::MaxTokens),
        "content_filter" => Some(StopReason::Refusal),
        _ => None,
    }
}

/// Why the CLI exited without the end of a turn: what stands on stderr. `None` when nothing is known of it, and when it did
/// not exit by itself.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Failure> {
    let code = exit.code.filter(|code| *code != 0)?;
    let lines = || exit.stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let found = lines().rev().find_map(|line| Some((of_text(line, STDERR_TEXTS)?, line)));
    let usage = || {
        // A wrong command line: "error: unexpected argument '--full-auto' found" (flag_full_auto).
        let line = lines().find(|line| line.starts_with("error:")).filter(|_| code == 2)?;
        Some(((ErrorCode::InvalidRequest, false), line))
    };
    let ((code, retryable), line) = found.or_else(usage)?;
    let mut message = line.to_owned();
    // "Error loading config.toml:" tells what only on its next line (broken_config_toml).
    if let Some(more) = lines().skip_while(|other| *other != line).nth(1).filter(|_| message.ends_with(':')) {
        message = format!("{message} {more}");
    }
    Some(Failure { retryable: Some(retryable), ..Failure::new(code, message) })
}

/// Calls that were refused without an item: only diagnostics tell.
pub(super) fn denials(stderr: &str) -> Vec<PermissionDenial> {
    let refused = |line: &str| {
        let (_, why) = line.split_once("ERROR codex_core::tools::router: error=")?;
        let tool_name = match why {
            // sandbox_read-only_patch_one
            why if why.starts_with("patch rejected") => "file_change",
            // sandbox_workspace-write_tool_escalate
            why if why.contains("reject command") => "command_execution",
            _ => return None,
        };
        Some(PermissionDenial { tool_name: tool_name.to_owned(), tool_id: None, input: None })
    };
    stderr.lines().filter_map(refused).collect()
}

/// The body of a 400 comes as it is (`err_bad_request`).
fn of_vendor(message: &str) -> Option<Failure> {
    #[derive(Deserialize)]
    struct Body {
        error: Error,
    }
    #[derive(Deserialize)]
    struct Error {
        message: Option<String>,
        code: Option<String>,
    }
    let error = serde_json::from_str::<Body>(message).ok()?.error;
    let code = match error.code.as_deref() {
        Some("context_length_exceeded") => ErrorCode::ContextWindow,
        Some("invalid_api_key") => ErrorCode::Auth,
        _ => ErrorCode::InvalidRequest,
    };
    let text = error.message.unwrap_or_else(|| message.to_owned());
    Some(Failure { retryable: Some(false), ..Failure::new(code, text) })
}

/// "unexpected status 401 Unauthorized: ...", "exceeded retry limit, last status: 429 Too Many Requests".
fn status(message: &str) -> Option<u16> {
    let at = |before: &str| Some(message.split_once(before)?.1.trim_start());
    let rest = at("unexpected status ").or_else(|| at("last status: "))?;
    rest.get(..3)?.parse().ok()
}

fn of_status(status: u16) -> (ErrorCode, bool) {
    match status {
        401 | 403 => (ErrorCode::Auth, false),
        402 => (ErrorCode::Budget, false),
        413 => (ErrorCode::ContextWindow, false),
        429 => (ErrorCode::RateLimit, true),
        503 | 529 => (ErrorCode::Overloaded, true),
        400..=499 => (ErrorCode::InvalidRequest, false),
        status => (ErrorCode::Provider, status >= 500),
    }
}

/// A text, what it means, and whether the same request may well work later.
type Texts = &'static [(&'static str, ErrorCode, bool)];

const TURN_TEXTS: Texts = &[
    ("ran out of room in the model's context window", ErrorCode::ContextWindow, false), // err_ctx_400
    ("Selected model is at capacity", ErrorCode::Overloaded, true),
    ("experiencing high demand", ErrorCode::Provider, true), // err_server_500_no_retry: stands for any 500
    ("rate limit exceeded", ErrorCode::RateLimit, true),     // err_failed_rate_limit
    ("hit your usage limit", ErrorCode::RateLimit, true),
    ("Quota exceeded", ErrorCode::Budget, false), // err_failed_quota
    ("To use Codex with your ChatGPT plan", ErrorCode::Auth, false), // err_failed_usage_not_included
    ("Missing environment variable", ErrorCode::Auth, false), // err_no_api_key_env: the provider's key
    ("Connection failed", ErrorCode::Connection, true),
    ("stream disconnected before completion", ErrorCode::Connection, true), // err_cut, err_stall_idle_timeout
    ("waiting for network", ErrorCode::Connection, true),                   // err_conn_refused, when it is ended
    ("Incomplete response returned", ErrorCode::Provider, false),
];

const STDERR_TEXTS: Texts = &[
    ("no rollout found for thread id", ErrorCode::SessionNotFound, false),
    ("already has an active writer", ErrorCode::InvalidRequest, true), // concurrency_same_thread_1
    ("required MCP servers failed to initialize", ErrorCode::Config, false),
    ("Not inside a trusted directory", ErrorCode::Config, false),
    ("Error loading config.toml", ErrorCode::Config, false),
    ("Error parsing -c overrides", ErrorCode::InvalidRequest, false),
    ("Error finding codex home", ErrorCode::Config, false),
    ("Error: Model provider", ErrorCode::Config, false), // provider_unknown
    ("modelProviderNotConfigured", ErrorCode::Config, false),
    ("is no longer supported; remove this setting", ErrorCode::Config, false), // flag_ask_untrusted_c
    ("No prompt provided via stdin", ErrorCode::InvalidRequest, false),
    ("Failed to read prompt from stdin", ErrorCode::InvalidRequest, false),
    ("Failed to read output schema file", ErrorCode::InvalidRequest, false),
    ("input_too_large", ErrorCode::InvalidRequest, false),
];

fn of_text(text: &str, table: Texts) -> Option<(ErrorCode, bool)> {
    table.iter().find(|(needle, _, _)| text.contains(needle)).map(|(_, code, retryable)| (code.clone(), *retryable))
}
