//! Why the call of a hook fails.

use std::time::Duration;

use teamster_process::Exit;

use super::config::HookConfigError;

/// Why a call failed. The text contains nothing that the hook has printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    #[error("did not answer within {}", humantime::format_duration(*.0))]
    TimedOut(Duration),
    #[error("cannot be started: {0}")]
    Start(String),
    #[error("{0}")]
    Exit(Exit),
    #[error("answered with more than {0} bytes")]
    TooLong(usize),
    #[error("answered with invalid JSON: {0}")]
    Answer(String),
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("answered with the status {0}")]
    Status(u16),
    #[error("is not configured: {0}")]
    Config(#[from] HookConfigError),
}

/// A failed call, with the last output for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedCall {
    pub(super) error: CallError,
    /// The end of what the hook has written to stderr. It may contain secrets.
    pub(super) output: Option<String>,
}

impl From<CallError> for FailedCall {
    fn from(error: CallError) -> Self {
        Self { error, output: None }
    }
}
