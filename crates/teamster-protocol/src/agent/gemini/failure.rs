//! What went wrong, by Gemini CLI 0.61.0's own words: structured fields first, exit codes next, texts last.
//!
//! Each row of the tables was seen in a recorded run (`tests/captures/gemini`), named beside it where it is not obvious, or
//! stands in the shipped program.

use serde::Deserialize;

use super::wire::Problem;
use crate::event::{ErrorCode, Failure};
use crate::protocol::ExitReport;

/// Why a result is an error, as far as it tells itself; the exit code may know more where `is_guess`.
pub(super) struct Judged {
    pub(super) failure: Failure,
    pub(super) is_guess: bool,
}

/// What an API failure's message holds: `[API Error: {"error": {...}}]`.
#[derive(Deserialize)]
struct ApiDocument {
    error: ApiError,
}

#[derive(Deserialize)]
struct ApiError {
    code: Option<u64>,
    message: Option<String>,
}

/// Why a run failed that says so. `told` is the last `error` event, which is all there is for some (`stream_empty`).
pub(super) fn of_problem(problem: Option<&Problem>, told: Option<&str>) -> Judged {
    let kind = problem.map(|problem| problem.kind.as_str()).unwrap_or_default();
    let text = problem.map(|problem| problem.message.as_str()).filter(|text| !text.is_empty());
    let text = text.or(told).unwrap_or("the agent reported an error");
    let api = api_error(text);
    let status = api.as_ref().and_then(|api| api.code);
    let message = api.and_then(|api| api.message).unwrap_or_else(|| bare(text));
    let known = of_kind(kind).or_else(|| of_text(text, TEXTS)).or_else(|| of_status(status?));
    let code = known.clone().unwrap_or(ErrorCode::Provider);
    Judged { failure: failure(code, message, status), is_guess: known.is_none() }
}

/// A result that was a guess, corrected by the exit code.
pub(super) fn corrected(guess: &Failure, exit: ExitReport<'_>) -> Option<Failure> {
    let status = http_status(exit.code?)?;
    Some(failure(of_status(status)?, guess.message.clone(), Some(status)))
}

/// Why the CLI exited without a result. `None` when nothing is known of it.
pub(super) fn of_exit(exit: ExitReport<'_>) -> Option<Failure> {
    let exit_code = exit.code.filter(|code| *code != 0)?;
    let mut lines = exit.stderr.lines().map(without_colors);
    let mut line = lines.find(|line| is_reason(line))?;
    // What it is stands on the next lines (bad_approval_mode).
    if line.ends_with(':') {
        line = lines.take_while(|more| !more.is_empty()).fold(line, |line, more| format!("{line} {more}"));
    }
    let status = http_status(exit_code);
    let code = of_text(&line, EXIT_TEXTS)
        .or_else(|| of_exit_code(exit_code))
        .or_else(|| of_text(&line, TEXTS))
        .or_else(|| of_status(status?))?;
    Some(failure(code, line, status))
}

fn failure(code: ErrorCode, message: String, status: Option<u64>) -> Failure {
    // A loop is the model's doing, and a stream that breaks off is not: both are the provider's, one is worth another try.
    let retryable = match code {
        ErrorCode::Provider => status.is_none_or(|status| status >= 500) && !message.starts_with(LOOP),
        _ => code.is_transient(),
    };
    Failure { retryable: Some(retryable), ..Failure::new(code, message) }
}

/// What the CLI says when it stops a model that repeats itself: then the result is called a success (`loop_detection`).
pub(super) const LOOP: &str = "Loop detected";

pub(super) fn of_loop(message: &str) -> Failure {
    failure(ErrorCode::Provider, message.to_owned(), None)
}

/// A success without an answer. Without a call of the model it is a conversation that the CLI thinks too long, and does not
/// send (`json_context_overflow`).
pub(super) fn of_silence(called: bool) -> Failure {
    if called {
        return failure(ErrorCode::Provider, "the agent ended without an answer".to_owned(), None);
    }
    let text = "the agent ended without asking the model: the conversation does not fit into its context window";
    failure(ErrorCode::ContextWindow, text.to_owned(), None)
}

/// An end without a result, though the exit code says that all is well: the CLI was stopped, or what the pipe could not take
/// at once was lost at its exit (trap 3).
pub(super) fn of_missing_result() -> Failure {
    Failure::new(ErrorCode::Protocol, "the CLI exited before it gave a result: the end of its output may be lost")
}

/// A message without the brackets that the CLI puts around it.
fn bare(text: &str) -> String {
    let Some(inside) = text.strip_prefix("[API Error: ") else { return text.to_owned() };
    match inside.split_once("]\n") {
        Some((message, advice)) => format!("{message}\n{advice}"),
        None => inside.strip_suffix(']').unwrap_or(inside).to_owned(),
    }
}

fn api_error(text: &str) -> Option<ApiError> {
    let json = text.get(text.find('{')?..=text.rfind('}')?)?;
    serde_json::from_str::<ApiDocument>(json).ok().map(|document| document.error)
}

fn of_kind(kind: &str) -> Option<ErrorCode> {
    Some(match kind {
        "FatalTurnLimitedError" => ErrorCode::MaxTurns,
        "FatalAuthenticationError" => ErrorCode::Auth,
        "FatalInputError" => ErrorCode::InvalidRequest,
        "FatalConfigError" | "FatalSandboxError" | "FatalUntrustedWorkspaceError" => ErrorCode::Config,
        _ => return None,
    })
}

/// API failures exit with the status, cut to a byte.
fn http_status(code: i32) -> Option<u64> {
    let code = u64::try_from(code).ok()?;
    match code {
        // 529: the vendor has too much to do (err_server_529_max2).
        17 => Some(529),
        129..=255 => Some(code + 256),
        _ => None,
    }
}

fn of_exit_code(code: i32) -> Option<ErrorCode> {
    Some(match code {
        41 => ErrorCode::Auth,
        42 => ErrorCode::InvalidRequest,
        44 | 52 | 54 | 55 => ErrorCode::Config,
        53 => ErrorCode::MaxTurns,
        _ => return None,
    })
}

fn of_status(status: u64) -> Option<ErrorCode> {
    Some(match status {
        401 | 403 => ErrorCode::Auth,
        402 => ErrorCode::Budget,
        413 => ErrorCode::ContextWindow,
        429 => ErrorCode::RateLimit,
        503 | 529 => ErrorCode::Overloaded,
        400..=499 => ErrorCode::InvalidRequest,
        500.. => ErrorCode::Provider,
        _ => return None,
    })
}

type Texts = &'static [(&'static str, ErrorCode)];

const TEXTS: Texts = &[
    ("exceeds the maximum number of tokens", ErrorCode::ContextWindow), // err_ctx_400: status 400 like any other
    ("API key not valid", ErrorCode::Auth),                             // err_auth_400: status 400
    ("API_KEY_INVALID", ErrorCode::Auth),
    ("exhausted your", ErrorCode::RateLimit), // auto_model_429_day: "your daily quota", without a status
    ("exhausted (e.g. check quota)", ErrorCode::RateLimit),
    ("is not found for API version", ErrorCode::InvalidRequest), // err_notfound_404: exit 1, without a status
    ("fetch failed", ErrorCode::Connection),                     // err_conn_refused_max2
    ("API Error: terminated", ErrorCode::Connection),            // stream_cut
    ("Reached max session turns", ErrorCode::MaxTurns),          // max_turns_json, where the type is missing
    ("set an Auth method", ErrorCode::Auth),
];

const EXIT_TEXTS: Texts = &[
    ("Error resuming session", ErrorCode::SessionNotFound), // exit 42, as for a bad prompt
    ("Invalid auth method", ErrorCode::Auth),
    ("Unknown argument", ErrorCode::InvalidRequest),
    ("mutually exclusive", ErrorCode::InvalidRequest),
    ("Cannot use both", ErrorCode::InvalidRequest),
    ("Invalid values:", ErrorCode::InvalidRequest),
    ("Not enough arguments", ErrorCode::InvalidRequest),
    ("missing system prompt file", ErrorCode::Config), // sys_override_missing
    ("does not exist", ErrorCode::Config),             // include_directories_missing_dir
];

fn of_text(text: &str, table: Texts) -> Option<ErrorCode> {
    table.iter().find(|(needle, _)| text.contains(needle)).map(|(_, code)| code.clone())
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
    let line = line.trim();
    !line.is_empty() && !NOISE.iter().any(|noise| line.starts_with(noise))
}

/// A line without ANSI colours, which stand there in spite of `NO_COLOR` for some.
fn without_colors(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.filter_map(|part| part.split_once('m').map(|(_, rest)| rest));
    rest.fold(first, |text, part| text + part).trim().to_owned()
}
