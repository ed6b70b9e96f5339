//! The failures of Gemini CLI 0.61.0: the failure table, and the failures of a process that exits. For many failures the exit code
//! is the vendor's status.

use crate::agent::failure::Matcher::{ExitCode, Field, Message, Status, Stderr};
use crate::agent::failure::{Classification, FailureInput, FailureRow, lasting, passing, plain_lines};
use crate::protocol::ExitReport;
use teamster_types::event::ErrorCode::{
    Auth, Budget, Config, Connection, ContextWindow, HookStopped, InvalidRequest, MaxTurns, Overloaded, Provider,
    RateLimit, SessionNotFound, SpawnFailed,
};

#[rustfmt::skip]
pub(super) const FAILURES: &[FailureRow] = &[
    lasting(&[Field("error.type", "FatalTurnLimitedError")], MaxTurns, &["max_turns_2", "max_turns_json"]),
    lasting(&[Field("error.type", "FatalInputError")], InvalidRequest, &["prompt_slash_quit"]),
    lasting(&[Field("error.details.reason", "API_KEY_INVALID")], Auth, &["err_auth_400"]),
    lasting(&[Status(400, 400), Message("The input token count …exceeds the maximum number of tokens…")], ContextWindow, &["err_ctx_400"]),
    lasting(&[Status(429, 429), Message("You have exhausted your daily quota…")], RateLimit, &["err_429_day_max1", "auto_model_429_day"]),
    lasting(&[Status(429, 429), Message("Your prepayment credits are depleted…")], Budget, &["err_credits_429_max1"]),
    lasting(&[Status(401, 401)], Auth, &["err_auth_401", "err_auth_401_json"]),
    lasting(&[Status(402, 402)], Budget, &["err_payment_402"]),
    lasting(&[Status(403, 403)], Auth, &["err_forbidden_403"]),
    passing(&[Status(408, 408)], Connection, &["err_timeout_408"]),
    lasting(&[Status(413, 413)], ContextWindow, &["err_too_large_413"]),
    passing(&[Status(429, 429)], RateLimit, &["err_rate_429_minute_max2", "err_429_json_max1"]),
    passing(&[Status(503, 503)], Overloaded, &["err_overloaded_503_max1"]),
    passing(&[Status(529, 529)], Overloaded, &["err_server_529_max2"]),
    lasting(&[Status(400, 499)], InvalidRequest, &["err_bad_request_400"]),
    passing(&[Status(500, 599)], Provider, &["err_server_500_max1", "err_html_502_max2"]),

    lasting(&[ExitCode(41)], Auth, &["cfg_no_auth_json", "baseurl_env_only_gateway_fails"]),
    lasting(&[ExitCode(42), Stderr("Error resuming session: …")], SessionNotFound, &["resume_unknown_uuid", "resume_unknown_uuid_json"]),
    lasting(&[ExitCode(42)], InvalidRequest, &["prompt_empty", "session_file_missing"]),
    lasting(&[ExitCode(52)], Config, &["cfg_user_settings_corrupt"]),
    lasting(&[ExitCode(55)], Config, &["untrusted_folder"]),
    lasting(&[ExitCode(127), Stderr("/usr/bin/env: …")], SpawnFailed, &["bin_no_node_in_path"])
        .hint("the CLI's launcher needs that program in PATH"),

    lasting(&[Message("models/… is not found for API version …")], InvalidRequest, &["err_notfound_404", "err_notfound_404_json"]),
    passing(&[Message("exception TypeError: fetch failed…")], Connection, &["err_conn_refused_max2", "err_dns_max1", "err_tls_max1"]),
    passing(&[Message("terminated")], Connection, &["stream_cut"]),
    lasting(&[Message("Agent execution stopped by hook…")], HookStopped, &["hook_stopped_tool"]),
    lasting(&[Message("Agent execution blocked: …")], HookStopped, &["hook_blocked_prompt"]),
    lasting(&[Message("Loop detected…")], Provider, &["loop_detection"]),
    passing(&[Message("The model returned an empty response…")], Provider, &["stream_empty"]),
    passing(&[Message("The model returned reasoning thoughts but no final response…")], Provider, &["thinking_only"]),
    passing(&[Message("Model stream ended without a finish reason…")], Provider, &["stream_nofinish", "json_nofinish"]),
    passing(&[Message("Model stream ended with malformed function call…")], Provider, &["stream_malformed"]),
    lasting(&[Stderr("Unknown argument…")], InvalidRequest, &["bad_flag"]),
    lasting(&[Stderr("Invalid values:")], InvalidRequest, &["bad_approval_mode"]),
    lasting(&[Stderr("Not enough arguments following: …")], InvalidRequest, &["flag_without_its_value"]),
    lasting(&[Stderr("The flags …are mutually exclusive…")], InvalidRequest, &["session_id_and_resume"]),
    lasting(&[Stderr("Cannot use both …")], InvalidRequest, &["prompt_positional_and_flag"]),
    lasting(&[Stderr("Error initializing Gemini chat session…missing system prompt file …")], Config, &["sys_override_missing"]),
    lasting(&[Stderr("An unexpected critical error occurred:Error: Directory does not exist: …")], Config, &["include_directories_missing_dir"]),
];

/// Classifies an exit without a result; `None` if no row of the table matches.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Classification> {
    let exit_code = exit.code.filter(|code| *code != 0)?;
    let lines = plain_lines(exit.stderr);
    let stderr = lines.iter().map(String::as_str).filter(|line| is_reason(line)).collect();
    FailureInput { status: http_status(exit_code), exit_code: Some(exit_code), stderr, ..FailureInput::default() }
        .classify_exit(FAILURES)
}

/// Returns the HTTP status of an API failure. The exit code is its lowest byte.
pub(super) fn http_status(code: i32) -> Option<u16> {
    let code = u16::try_from(code).ok()?;
    match code {
        // 529: the vendor is overloaded (`err_server_529_max2`).
        17 => Some(529),
        129..=255 => Some(code + 256),
        _ => None,
    }
}

/// The starts of lines on standard error that are not the reason of a failure. Successful runs print most of them too.
const NOISE: &[&str] = &[
    "Warning:",
    "YOLO mode is enabled",
    "Ripgrep is not available",
    "[STARTUP]",
    "(node:",
    "(Use `node",
    "Error executing tool",
    "MCP issues detected",
    "Approval mode overridden",
    "Attempt ",
    "Suggested retry",
    "Usage:",
    "at ",
    "{",
    "}",
    "\"",
];

fn is_reason(line: &str) -> bool {
    !NOISE.iter().any(|noise| line.starts_with(noise))
}
