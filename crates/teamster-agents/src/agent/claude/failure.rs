//! The failure table of Claude Code 2.1.197.

use super::hooks::Hooks;
use super::wire::ResultLine;
use crate::agent::failure::Matcher::{Field, Message, Status, Stderr};
use crate::agent::failure::{Classification, FailureInput, FailureRow, lasting, passing, plain_lines};
use crate::protocol::ExitReport;
use teamster_types::event::ErrorCode::{
    Auth, Budget, Config, Connection, ContextWindow, HookStopped, InvalidRequest, MaxTurns, Overloaded, Provider,
    RateLimit, SessionNotFound, StructuredOutput,
};

/// The failures by their fields and messages.
///
/// API errors have the subtype `success` and `is_error`. `assistant.error` is the error of the last `assistant` line, which batch
/// mode does not print. Its value `server_error` covers a refused connection, a broken stream and status 529.
#[rustfmt::skip]
pub(super) const FAILURES: &[FailureRow] = &[
    lasting(&[Field("subtype", "error_max_turns")], MaxTurns, &["limit_max_turns_1", "limit_max_turns_3_json"]),
    lasting(&[Field("subtype", "error_max_budget_usd")], Budget, &["limit_budget"]),
    lasting(&[Field("subtype", "error_max_structured_output_retries")], StructuredOutput, &["structured_bad"]),
    lasting(&[Field("subtype", "error_during_execution"), Message("No conversation found with session ID: …")], SessionNotFound, &["bad_session_unknown", "nopersist_resume"]),
    lasting(&[Field("subtype", "error_during_execution"), Message("Error: --resume requires a valid session ID…")], SessionNotFound, &["bad_session_empty", "bad_session_malformed"]),
    lasting(&[Field("terminal_reason", "hook_stopped")], HookStopped, &["hook_stopped", "hook_stopped_json"]),
    lasting(&[Field("terminal_reason", "tool_deferred")], HookStopped, &["hook_deferred"]),
    lasting(&[Field("terminal_reason", "prompt_too_long")], ContextWindow, &["err_ctx400", "err_ctx400_json"]),
    lasting(&[Field("stop_reason", "refusal")], Provider, &["text_refusal"]),
    lasting(&[Field("rate_limit_info.status", "rejected"), Status(429, 429)], RateLimit, &["knob_oauth_rejected"]),
    lasting(&[Field("assistant.error", "billing_error")], Budget, &["err_credit400"]),
    lasting(&[Field("assistant.error", "max_output_tokens")], Provider, &["text_max_tokens"]),
    lasting(&[Status(400, 400), Message("Credit balance is too low…")], Budget, &["err_credit400_json"]),
    lasting(&[Status(401, 401)], Auth, &["err_auth401_max_retries_0", "err_auth401_json_max_retries_0"]),
    lasting(&[Status(402, 402)], Budget, &["err_payment402"]),
    lasting(&[Status(403, 403)], Auth, &["err_forbidden403"]),
    passing(&[Status(408, 408)], Connection, &["err_timeout408_max_retries_0"]),
    lasting(&[Status(413, 413)], ContextWindow, &["err_toolarge413"]),
    passing(&[Status(429, 429)], RateLimit, &["err_rate429_after", "err_rate429_json_max_retries_0"]),
    passing(&[Status(503, 503)], Overloaded, &["err_unavailable503"]),
    passing(&[Status(529, 529)], Overloaded, &["err_overloaded529"]),
    lasting(&[Status(400, 499)], InvalidRequest, &["err_bad400", "err_notfound404"]),
    passing(&[Status(500, 599)], Provider, &["err_server500", "err_html502"]),
    lasting(&[Field("assistant.error", "authentication_failed")], Auth, &["err_no_key"]),

    lasting(&[Message("UserPromptSubmit operation blocked by hook:…")], HookStopped, &["hook_blocked_prompt", "hook_blocked_prompt_json"]),
    lasting(&[Message("Operation stopped by hook…")], HookStopped, &["hook_stopped_prompt"]),
    lasting(&[Message("Not logged in…")], Auth, &["err_no_key_json"]),
    lasting(&[Message("API Error: Unable to connect to API (…CERT…")], Connection, &["err_tls_max_retries_0"]),
    passing(&[Message("API Error: Unable to connect to API…")], Connection, &["err_refused", "err_dns_max_retries_0"]),
    passing(&[Message("API Error: Connection closed mid-response…")], Connection, &["err_cut_tool"]),
    passing(&[Message("API Error: Connection to the API was lost…")], Connection, &["knob_cut_no_fallback"]),
    passing(&[Message("Request timed out…")], Connection, &["err_api_timeout_max_retries_0"]),
    passing(&[Message("API Error: Overloaded…")], Overloaded, &["err_stream_overloaded_no_fallback"]),
    passing(&[Message("API Error: Repeated 529 Overloaded errors…")], Overloaded, &["knob_529_no_sandbox_env"]),
    lasting(&[Message("API Error: …cannot be parsed as a URL…")], Config, &["crash_bad_base_url"]),
    lasting(&[Stderr("No conversation found with session ID: …")], SessionNotFound, &["bad_session_json"]),
    lasting(&[Stderr("--dangerously-skip-permissions cannot be used with root/sudo privileges…")], Config, &["root_skip_permissions"])
        .hint("in a container, IS_SANDBOX=1 in the environment lifts this"),
    lasting(&[Stderr("Configuration error in …")], Config, &["crash_config_json_broken"]),
    lasting(&[Stderr("Error: Settings file not found: …")], Config, &["flag_cwd_missing_settings"]),
    lasting(&[Stderr("Error: Invalid MCP configuration:…")], Config, &["mcp_missing_file", "mcp_invalid_shape"]),
    lasting(&[Stderr("Error: …ystem prompt file not found: …")], Config, &["flag_append_file_missing"]),
    lasting(&[Stderr("Error: MCP tool …(passed via --permission-prompt-tool) not found…")], Config, &["pmcp_missing_tool"]),
    lasting(&[Stderr("Error: Session ID …is already in use…")], InvalidRequest, &["session_id_reused"]),
    lasting(&[Stderr("Error: Invalid session ID…")], InvalidRequest, &["session_id_bad"]),
    lasting(&[Stderr("Error: --…")], InvalidRequest, &["session_id_with_resume_nofork", "structured_not_json"]),
    lasting(&[Stderr("error: unknown option …")], InvalidRequest, &["edge_dash"]),
    lasting(&[Stderr("error: option …")], InvalidRequest, &["flag_bad_format"]),
    lasting(&[Stderr("error: --…")], InvalidRequest, &["limit_budget_bad"]),
    lasting(&[Stderr("Error: Input must be provided…")], InvalidRequest, &["stdin_devnull_noprompt"]),
    lasting(&[Stderr("Error: piped stdin input exceeds …")], InvalidRequest, &["long_stdin_11m"]),
    lasting(&[Stderr("Error: Expected message role …")], InvalidRequest, &["stream_bad_role"]),
];

/// What the lines before the result have reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before<'a> {
    /// The `error` of the last `assistant` line.
    pub(super) api_error: Option<&'a str>,
    /// The `status` of the last `rate_limit_event`.
    pub(super) rate_limit: Option<&'a str>,
    pub(super) hooks: &'a Hooks,
}

/// Classifies a result that is an error; `None` if it is a success.
pub(super) fn of_result(line: &ResultLine<'_>, before: Before<'_>) -> Option<Classification> {
    // The CLI reports a success if a hook of the user has ended the turn.
    let hook = before.hooks.end(line);
    if !line.is_error && hook.is_none() {
        return None;
    }
    let message = message(line);
    let evidence = FailureInput {
        status: line.api_error_status.and_then(|status| u16::try_from(status).ok()),
        message: Some(&message),
        ..FailureInput::default()
    };
    let evidence = evidence
        .field("subtype", Some(&line.subtype))
        .field("terminal_reason", line.terminal_reason.as_deref())
        .field("stop_reason", line.stop_reason.as_deref())
        .field("assistant.error", before.api_error)
        .field("rate_limit_info.status", before.rate_limit);
    Some(evidence.classify(FAILURES, hook.as_deref().unwrap_or(&message)))
}

/// Classifies the status of a vendor's response, after which the CLI sends its request again.
pub(super) fn of_status(status: u16) -> Classification {
    let input = FailureInput { status: Some(status), ..FailureInput::default() };
    input.classify(FAILURES, format!("the vendor rejected the credentials ({status})"))
}

/// Classifies an exit without a result, by stderr. `None` if no row matches, or if a signal ended the CLI.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Classification> {
    let exit_code = exit.code.filter(|code| *code != 0);
    exit_code?;
    let lines = plain_lines(exit.stderr);
    let stderr = lines.iter().map(String::as_str).collect();
    FailureInput { exit_code, stderr, ..FailureInput::default() }.classify_exit(FAILURES)
}

fn message(line: &ResultLine<'_>) -> String {
    let errors: Vec<&str> = line.errors.iter().filter_map(|error| error.as_str()).collect();
    match line.result {
        Some(text) if !text.is_empty() => text.to_text(),
        _ if !errors.is_empty() => errors.join("; "),
        _ => format!("the agent reported {}", line.subtype),
    }
}
