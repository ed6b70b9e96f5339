//! The results of attempts that fail without a run.

use teamster::event::{ErrorCode, Failure, RunResult};
use teamster::{RunError, SendError};

use crate::config::with_keys;

/// Returns the result of an attempt whose agent could not be started.
pub(super) fn refused(error: &RunError) -> RunResult {
    let code = match error {
        // A turn that the end of the runtime refuses runs at the next start.
        RunError::QueueFull { .. } | RunError::ShutDown => ErrorCode::QueueFull,
        _ => ErrorCode::InvalidRequest,
    };
    failed(code, &with_keys(&error.to_string()))
}

/// Returns the result of an attempt whose prompt could not be sent.
pub(super) fn not_sent(error: SendError) -> RunResult {
    refused(&match error {
        SendError::Prompt(error) => RunError::Request(error),
        _ => RunError::QueueFull { limit: 0 },
    })
}

/// Returns the result of a run that has failed like this.
pub(super) fn failed(code: ErrorCode, message: &str) -> RunResult {
    with_error(RunResult::default(), code, message)
}

/// How many characters of the agent's standard error a chat sees.
const MAX_STDERR_CHARACTERS: usize = 500;

/// Returns the text of a failure for the chat. If the CLI ended without a result, it has the end of its standard error instead
/// of the last line alone.
pub(super) fn text_for_chat(result: &RunResult) -> Option<String> {
    let failure = result.error.as_ref()?;
    let message = failure.message.as_str();
    let has_no_result = matches!(failure.code, ErrorCode::CliExit | ErrorCode::CliSignaled | ErrorCode::Protocol);
    let stderr = result.stderr.as_deref().map(str::trim).filter(|stderr| has_no_result && !stderr.is_empty());
    let Some(stderr) = stderr else { return Some(message.to_owned()) };
    let last_line = stderr.lines().last().map(str::trim).unwrap_or_default();
    let Some(cause) = message.strip_suffix(last_line).map(|cause| cause.trim_end_matches([':', ' '])) else {
        return Some(message.to_owned());
    };
    let skip = stderr.chars().count().saturating_sub(MAX_STDERR_CHARACTERS);
    let tail: String = stderr.chars().skip(skip).collect();
    Some(format!("{cause}: {}", tail.trim_start()))
}

/// Returns the result with this error. What the run has cost, its session and its text stay.
pub(super) fn with_error(mut result: RunResult, code: ErrorCode, message: &str) -> RunResult {
    result.is_error = true;
    result.aborted = false;
    result.error_code = Some(code.clone());
    result.error = Some(Box::new(Failure::new(code, message)));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(message: &str, stderr: &str) -> RunResult {
        let mut result = failed(ErrorCode::CliExit, message);
        result.stderr = Some(stderr.into());
        result
    }

    #[test]
    fn a_chat_sees_the_last_500_characters_of_stderr() {
        let result = exited("the CLI exited with code 3 before its result: two", "one\ntwo\n");
        assert_eq!(text_for_chat(&result).unwrap(), "the CLI exited with code 3 before its result: one\ntwo");
        let long = format!("{}\nthe reason", "x".repeat(2000));
        let text = text_for_chat(&exited("the CLI exited with code 3 before its result: the reason", &long)).unwrap();
        let (cause, tail) = text.split_once(": ").unwrap();
        assert_eq!((cause, tail.chars().count()), ("the CLI exited with code 3 before its result", 500));
        assert!(tail.ends_with("x\nthe reason"), "{tail}");
    }

    #[test]
    fn another_failure_keeps_its_message() {
        let mut result = failed(ErrorCode::Auth, "log in");
        result.stderr = Some("noise".into());
        assert_eq!(text_for_chat(&result).unwrap(), "log in");
        assert_eq!(text_for_chat(&exited("the port is in use", "noise")).unwrap(), "the port is in use");
        assert_eq!(text_for_chat(&RunResult::default()), None);
    }
}
