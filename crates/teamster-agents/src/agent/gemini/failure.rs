//! What went wrong, by Gemini CLI 0.61.0's own words: the result, what stood in lines before it, and the exit code, which
//! is the vendor's status for many.

use serde::Deserialize;
use time::{Duration, OffsetDateTime};

use super::wire::Problem;
use crate::agent::failure::Matcher::{ExitCode, Field, Message, Status, Stderr};
use crate::agent::failure::{Classification, FailureInput, FailureRow, lasting, passing, plain_lines};
use crate::protocol::ExitReport;
use teamster_types::event::ErrorCode::{
    Auth, Budget, Config, Connection, ContextWindow, InvalidRequest, MaxTurns, Overloaded, Protocol, Provider,
    RateLimit, SessionNotFound, SpawnFailed,
};
use teamster_types::event::Failure;

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

/// What is known of a failure when it is told; the exit code may say more.
#[derive(Clone, Debug)]
pub(super) struct Complaint {
    kind: String,
    status: Option<u16>,
    reasons: Vec<String>,
    /// The CLI's words without the brackets that it puts around them.
    words: String,
}

impl Complaint {
    /// Of a run that failed, by its result and the last `error` event, which is all there is for some (`stream_empty`).
    pub(super) fn new(problem: Option<&Problem>, event: Option<&str>) -> Self {
        let text = problem.map(|problem| problem.message.as_str()).filter(|text| !text.is_empty());
        let text = text.or(event).unwrap_or("the agent reported an error");
        let api = api_error(text).unwrap_or_default();
        // A document has the status beside the words, where it is one.
        let status = api.code.or_else(|| problem?.code.filter(|code| *code >= 400));
        Self {
            kind: problem.map(|problem| problem.kind.clone()).unwrap_or_default(),
            status: status.and_then(|status| u16::try_from(status).ok()),
            reasons: api.details.into_iter().filter_map(|detail| detail.reason).collect(),
            words: api.message.unwrap_or_else(|| bare(text)),
        }
    }

    /// What it means, with the exit code where that is known.
    pub(super) fn classify(&self, exit: Option<i32>) -> Classification {
        let evidence = FailureInput {
            fields: self.reasons.iter().map(|reason| ("error.details.reason", reason.as_str())).collect(),
            status: self.status.or_else(|| http_status(exit?)),
            exit_code: exit,
            message: Some(&self.words),
            ..FailureInput::default()
        };
        evidence.field("error.type", Some(&self.kind)).classify(FAILURES, self.words.as_str())
    }

    /// When the vendor takes requests again, where it says so: `at` is when it did.
    pub(super) fn resets_at(&self, at: OffsetDateTime) -> Option<OffsetDateTime> {
        // "Suggested retry after 20s.", made by the CLI of the vendor's `RetryInfo`.
        let line = self.words.lines().find_map(|line| line.strip_prefix("Suggested retry after "))?;
        let seconds: f64 = line.split_once('s')?.0.parse().ok()?;
        at.checked_add(Duration::checked_seconds_f64(seconds)?)
    }
}

/// Why the CLI exited without a result. `None` when nothing is known of it.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Classification> {
    let exit_code = exit.code.filter(|code| *code != 0)?;
    let lines = plain_lines(exit.stderr);
    let stderr = lines.iter().map(String::as_str).filter(|line| is_reason(line)).collect();
    FailureInput { status: http_status(exit_code), exit_code: Some(exit_code), stderr, ..FailureInput::default() }
        .classify_exit(FAILURES)
}

/// A success without an answer. Without a call of the model it is a conversation that the CLI thinks too long, and does not
/// send (`json_context_overflow`).
pub(super) fn of_silence(called: bool) -> Failure {
    if called {
        return Failure::new(Provider, "the agent ended without an answer");
    }
    let text = "the agent ended without asking the model: the conversation does not fit into its context window";
    Failure::new(ContextWindow, text)
}

/// An end without a result, though the exit code says that all is well: the CLI was stopped, or what the pipe could not take
/// at once was lost at its exit (trap 3).
pub(super) fn of_missing_result() -> Failure {
    Failure::new(Protocol, "the CLI exited before it gave a result: the end of its output may be lost")
}

/// What an API failure's message holds: `[API Error: {"error": {...}}]`.
#[derive(Debug, Default, Deserialize)]
struct ApiError {
    code: Option<u64>,
    message: Option<String>,
    #[serde(default)]
    details: Vec<ApiDetail>,
}

#[derive(Debug, Deserialize)]
struct ApiDetail {
    reason: Option<String>,
}

fn api_error(text: &str) -> Option<ApiError> {
    #[derive(Deserialize)]
    struct Document {
        error: ApiError,
    }
    // In a document the JSON stands alone.
    let json = text.strip_prefix(API_ERROR).unwrap_or(text);
    let json = json.get(json.find('{').filter(|at| *at == 0)?..=json.rfind('}')?)?;
    serde_json::from_str::<Document>(json).ok().map(|document| document.error)
}

const API_ERROR: &str = "[API Error: ";

/// A message without the brackets that the CLI puts around it.
fn bare(text: &str) -> String {
    let Some(inside) = text.strip_prefix(API_ERROR) else { return text.to_owned() };
    match inside.split_once("]\n") {
        Some((message, advice)) => format!("{message}\n{advice}"),
        None => inside.strip_suffix(']').unwrap_or(inside).to_owned(),
    }
}

/// API failures exit with the status, cut to a byte.
fn http_status(code: i32) -> Option<u16> {
    let code = u16::try_from(code).ok()?;
    match code {
        // 529: the vendor has too much to do (err_server_529_max2).
        17 => Some(529),
        129..=255 => Some(code + 256),
        _ => None,
    }
}

/// What stands on stderr of runs that succeed too (trap 13), and what is no sentence.
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
