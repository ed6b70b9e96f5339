//! The failures of Codex 0.169.0, by the text that it prints. In `exec` a failure is only a text, which may contain a status or
//! the vendor's JSON. The app-server adds a name (`codexErrorInfo`).

use serde::Deserialize;
use serde_json::Value;

use crate::agent::failure::Matcher::{ExitCode, Field, Message, Status, Stderr};
use crate::agent::failure::{Classification, FailureInput, FailureRow, lasting, passing, plain_lines};
use crate::protocol::ExitReport;
use teamster_types::event::ErrorCode::{
    Auth, Budget, Config, Connection, ContextWindow, InvalidRequest, MaxTurns, Overloaded, Provider, RateLimit,
    SessionNotFound, SpawnFailed,
};
use teamster_types::event::{Failure, PermissionDenial, StopReason};

/// The field with the app-server's name of a failure.
const INFO: &str = "codexErrorInfo";

/// The app-server prints this before the names of required servers that failed.
pub(super) const SERVERS_FAILED: &str = "required MCP servers failed to initialize: ";

#[rustfmt::skip]
pub(super) const FAILURES: &[FailureRow] = &[
    lasting(&[Field("error.code", "invalid_api_key")], Auth, &["err_invalid_key_400"]),
    lasting(&[Field(INFO, "contextWindowExceeded")], ContextWindow, &["app_err_ctx"]),
    passing(&[Field(INFO, "serverOverloaded")], Overloaded, &["app_err_overloaded"]),
    passing(&[Field(INFO, "internalServerError")], Provider, &["app_err_500"]),
    lasting(&[Field(INFO, "modelNotFound")], InvalidRequest, &["app_err_model"]),
    lasting(&[Field(INFO, "usageLimitExceeded"), Message("Quota exceeded…")], Budget, &["app_err_quota"]),
    lasting(&[Field(INFO, "usageLimitExceeded"), Message("To use Codex with your ChatGPT plan…")], Auth, &["app_err_not_included"]),
    lasting(&[Field(INFO, "usageLimitExceeded")], RateLimit, &["app_err_usage_limit"]),
    lasting(&[Status(401, 401)], Auth, &["err_auth_error"]),
    lasting(&[Status(402, 402)], Budget, &["err_payment_402"]),
    lasting(&[Status(403, 403)], Auth, &["err_forbidden"]),
    passing(&[Status(408, 408)], Connection, &["err_timeout_408"]),
    lasting(&[Status(413, 413)], ContextWindow, &["err_too_large_413"]),
    passing(&[Status(429, 429)], RateLimit, &["err_rate_limit", "err_rate_limit_retry_after"]),
    passing(&[Status(503, 503)], Overloaded, &["err_unavailable_503"]),
    passing(&[Status(529, 529)], Overloaded, &["err_overloaded_529"]),
    lasting(&[Status(400, 499)], InvalidRequest, &["err_bad_request", "provider_bearer_inline"]),
    passing(&[Status(500, 599)], Provider, &["err_html_502"]),

    lasting(&[ExitCode(2), Stderr("error: …")], InvalidRequest, &["flag_full_auto", "flag_sandbox_bad_value"]),
    lasting(&[ExitCode(127), Stderr("/usr/bin/env: …")], SpawnFailed, &["broken_node_missing"])
        .hint("the CLI's launcher needs that program in PATH"),

    lasting(&[Message("Codex ran out of room in the model's context window…")], ContextWindow, &["err_ctx_400"]),
    passing(&[Message("Selected model is at capacity…")], Overloaded, &["err_failed_overloaded", "err_default_retries_overloaded_503"]),
    passing(&[Message("We’re currently experiencing high demand…")], Provider, &["err_server_500_no_retry"]),
    passing(&[Message("rate limit exceeded: …")], RateLimit, &["err_failed_rate_limit"]),
    lasting(&[Message("You’ve hit your usage limit…")], RateLimit, &["err_usage_limit", "err_usage_limit_no_time"]),
    lasting(&[Message("Quota exceeded…")], Budget, &["err_failed_quota"]),
    lasting(&[Message("To use Codex with your ChatGPT plan…")], Auth, &["err_failed_usage_not_included"]),
    lasting(&[Message("Missing environment variable: …")], Auth, &["err_no_api_key_env"]),
    lasting(&[Message("The model `…` does not exist…")], InvalidRequest, &["err_model_404"]),
    lasting(&[Message("Incomplete response returned, reason: …")], Provider, &["err_incomplete"]),
    passing(&[Message("Connection failed: …")], Connection, &["err_conn_refused_bounded_zero", "err_dns", "err_tls"]),
    passing(&[Message("stream disconnected before completion: …")], Connection, &["err_cut", "err_stall_idle_timeout"]),
    passing(&[Message("Reconnecting... …")], Connection, &["err_conn_refused_sigint"]),
    lasting(&[Message("no rollout found for thread id …")], SessionNotFound, &["app_session_unknown", "app_fork_unknown"]),
    passing(&[Message("thread … already has an active writer…")], InvalidRequest, &["app_session_busy"]),
    lasting(&[Message("error …required MCP servers failed to initialize: …")], Config, &["app_mcp_required"]),
    lasting(&[Message("failed to load configuration: …")], Config, &["app_config_broken", "app_config_type", "app_provider_unknown"]),
    lasting(&[Stderr("Error: thread/… failed: no rollout found for thread id …")], SessionNotFound, &["bad_session_unknown", "bad_session_fork_unknown"]),
    passing(&[Stderr("Error: thread/… already has an active writer…")], InvalidRequest, &["concurrency_same_thread_1"]),
    lasting(&[Stderr("Error: thread/… required MCP servers failed to initialize: …")], Config, &["mcp_start_fail_required"]),
    lasting(&[Stderr("Error: thread/… which is no longer configured…")], Config, &["resume_no_provider_flag"]),
    lasting(&[Stderr("Not inside a trusted directory…")], Config, &["flag_no_git_repo"]),
    lasting(&[Stderr("Error loading config.toml:…")], Config, &["broken_config_toml", "broken_config_type"]),
    lasting(&[Stderr("Error finding codex home: …")], Config, &["codex_home_missing_dir"]),
    lasting(&[Stderr("Error: Model provider `…` not found")], Config, &["provider_unknown"]),
    lasting(&[Stderr("Error: … is no longer supported; remove this setting")], Config, &["flag_ask_untrusted_c"]),
    lasting(&[Stderr("Error parsing -c overrides: …")], InvalidRequest, &["flag_bad_c_noeq"]),
    lasting(&[Stderr("No prompt provided via stdin.")], InvalidRequest, &["stdin_whitespace"]),
    lasting(&[Stderr("Failed to read prompt from stdin: …")], InvalidRequest, &["stdin_invalid_utf8"]),
    lasting(&[Stderr("Failed to read output schema file …")], InvalidRequest, &["flag_output_schema_missing"]),
    lasting(&[Stderr("Error: turn/start: turn/start failed: …input_too_large…")], InvalidRequest, &["stdin_too_large"]),
];

/// Classifies the failure of a turn. `info` is the app-server's name of the failure, if it reports one.
pub(super) fn of_turn(message: &str, info: Option<&Value>) -> Classification {
    let vendor = vendor(message);
    let (name, reported) = info.map(name_and_status).unwrap_or_default();
    // The body of a 400 is the whole message (`err_bad_request`).
    let status = if vendor.is_some() { Some(400) } else { reported.or_else(|| status(message)) };
    let vendor = vendor.unwrap_or_default();
    let input = FailureInput { status, message: Some(message), ..FailureInput::default() };
    let input = input.field("error.code", vendor.code.as_deref()).field(INFO, name);
    let text = vendor.message.as_deref().unwrap_or(message);
    input.classify(FAILURES, text)
}

/// Classifies a reconnect whose cause is that the vendor rejects the credentials: `Reconnecting... 1/5 (unexpected status 401 ...)`.
///
/// Codex repeats such a request 5 times. Before that, it renews the token of a login by itself.
pub(super) fn rejected_credentials(message: &str) -> Option<Classification> {
    let (_, cause) = message.strip_prefix("Reconnecting...")?.split_once('(')?;
    let cause = cause.strip_suffix(')').unwrap_or(cause);
    (status(cause) == Some(401)).then(|| of_turn(cause, None))
}

/// Returns the app-server's name of a failure, and the vendor's status. The name is a string, or the only field of an object.
fn name_and_status(info: &Value) -> (Option<&str>, Option<u16>) {
    match info {
        Value::String(name) => (Some(name), None),
        Value::Object(fields) => {
            let field = fields.iter().next();
            let status = field.and_then(|(_, about)| about.get("httpStatusCode")?.as_u64()?.try_into().ok());
            (field.map(|(name, _)| name.as_str()), status)
        }
        _ => (None, None),
    }
}

/// Classifies the error response to a call of ours.
pub(super) fn of_call(message: &str) -> Classification {
    let classification = FailureInput { message: Some(message), ..FailureInput::default() }.classify(FAILURES, message);
    match classification.row {
        Some(_) => classification,
        // The app-server rejected the call. The vendor did not.
        None => Failure::new(InvalidRequest, message).with_retryable(false).into(),
    }
}

/// Returns why the model stopped, if the message of the failure contains it.
pub(super) fn stop_reason(message: &str) -> Option<StopReason> {
    match message.strip_prefix("Incomplete response returned, reason: ")?.trim() {
        "max_output_tokens" => Some(StopReason::MaxTokens),
        "content_filter" => Some(StopReason::Refusal),
        _ => None,
    }
}

/// Returns the failure of a turn that reached its limit of model calls.
pub(super) fn turn_limit(turns: u64) -> Failure {
    Failure::new(MaxTurns, format!("the limit of {turns} turns was reached")).with_retryable(false)
}

/// Classifies an exit without the end of a turn, by standard error. Returns `None` if no row matches, or if the CLI did not exit
/// by itself.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Classification> {
    let exit_code = exit.code.filter(|code| *code != 0);
    exit_code?;
    let lines = plain_lines(exit.stderr);
    let stderr = lines.iter().map(String::as_str).collect();
    FailureInput { exit_code, stderr, ..FailureInput::default() }.classify_exit(FAILURES)
}

/// Returns the denied calls that only the diagnostics report. They have no item.
pub(super) fn denials(stderr: &str) -> Vec<PermissionDenial> {
    let refused = |line: &str| {
        let (_, why) = line.split_once("ERROR codex_core::tools::router: error=")?;
        let tool_name = match why {
            // sandbox_read-only_patch_one
            why if why.starts_with("patch rejected:") => "file_change",
            // sandbox_workspace-write_tool_escalate
            why if why.contains("reject command") => "command_execution",
            _ => return None,
        };
        Some(PermissionDenial::new(tool_name))
    };
    plain_lines(stderr).iter().filter_map(|line| refused(line)).collect()
}

/// An error in the vendor's JSON.
#[derive(Debug, Default, Deserialize)]
struct VendorError {
    message: Option<String>,
    code: Option<String>,
}

fn vendor(message: &str) -> Option<VendorError> {
    #[derive(Deserialize)]
    struct Body {
        error: VendorError,
    }
    serde_json::from_str::<Body>(message).ok().map(|body| body.error)
}

/// "unexpected status 401 Unauthorized: ...", "exceeded retry limit, last status: 429 Too Many Requests".
fn status(message: &str) -> Option<u16> {
    let before = ["unexpected status ", "exceeded retry limit, last status: "];
    let rest = before.iter().find_map(|before| message.strip_prefix(before))?;
    rest.get(..3)?.parse().ok()
}
