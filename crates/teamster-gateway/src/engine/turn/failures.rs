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
    let mut result = RunResult::default();
    result.is_error = true;
    result.error_code = Some(code.clone());
    result.error = Some(Box::new(Failure::new(code, message)));
    result
}
