//! The results of attempts that fail without a run.

use teamster::event::{ErrorCode, Failure, RunResult};
use teamster::{RunError, SendError};

use crate::config::with_keys;

/// Returns the result of an attempt whose agent could not be started.
pub(super) fn refused(error: &RunError) -> RunResult {
    let code = match error {
        RunError::QueueFull { .. } => ErrorCode::QueueFull,
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

/// Returns the result with this error. What the run has cost, its session and its text stay.
pub(super) fn with_error(mut result: RunResult, code: ErrorCode, message: &str) -> RunResult {
    result.is_error = true;
    result.aborted = false;
    result.error_code = Some(code.clone());
    result.error = Some(Box::new(Failure::new(code, message)));
    result
}
