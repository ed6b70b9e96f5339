//! The failure of a run as a Rust error.

use std::error::Error;
use std::fmt;

use super::{ErrorCode, Failure, RunResult};

impl fmt::Display for Failure {
    /// Writes the code and the message. The message is escaped, because it can quote the agent.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message.escaped())
    }
}

impl Error for Failure {}

/// The error of a run that failed or was stopped. It contains the result: what the run did until then.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RunFailure {
    /// The failure, as the `error` event emitted it.
    pub failure: Box<Failure>,
    /// The result: the text until the failure, the session to resume, the usage, the exit code, ...
    pub result: Box<RunResult>,
}

impl RunFailure {
    /// Creates the error of a stream that ended without `done`, or whose `done` was read before. Its result is empty.
    pub fn without_done() -> Self {
        let message =
            "the stream ended without a result: the event `done`, which contains it, was read before or left out";
        let failure = Failure::new(ErrorCode::InvalidRequest, message);
        let mut result = RunResult { is_error: true, ..RunResult::default() };
        result.error_code = Some(failure.code.clone());
        result.error = Some(Box::new(failure.clone()));
        Self { failure: Box::new(failure), result: Box::new(result) }
    }

    /// Returns the stable code.
    pub fn code(&self) -> &ErrorCode {
        &self.failure.code
    }
}

impl fmt::Display for RunFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(formatter)
    }
}

impl fmt::Debug for RunFailure {
    /// Writes the failure as a person reads it. A `main` that returns the error prints this. The result can be megabytes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RunFailure({self})")
    }
}

impl Error for RunFailure {}

impl RunResult {
    /// Converts the result into a Rust `Result`: an error if the run failed or was stopped.
    ///
    /// # Errors
    /// The run failed or was stopped. The error contains this result.
    pub fn into_result(self) -> Result<Self, RunFailure> {
        if !self.is_error && !self.aborted && self.error.is_none() {
            return Ok(self);
        }
        let failure = self.error.clone().unwrap_or_else(|| {
            // Only a result of another program can lack the failure.
            let stopped = if self.aborted { ErrorCode::Aborted } else { ErrorCode::Provider };
            let code = self.error_code.clone().unwrap_or(stopped);
            Box::new(Failure::new(code, "the result does not contain the reason"))
        });
        Err(RunFailure { failure, result: Box::new(self) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> RunResult {
        let failure = Failure::new(ErrorCode::Auth, "log in\u{1b}[2J first");
        let mut result = RunResult { is_error: true, text: "so far".into(), ..RunResult::default() };
        result.error_code = Some(failure.code.clone());
        result.error = Some(Box::new(failure));
        result
    }

    #[test]
    fn a_failed_result_is_an_error_that_names_its_code_and_cannot_control_a_terminal() {
        let error = failed().into_result().unwrap_err();
        assert_eq!(error.to_string(), r"AUTH: log in\u{1b}[2J first");
        assert_eq!(format!("{error:?}"), r"RunFailure(AUTH: log in\u{1b}[2J first)");
        assert_eq!((error.code(), error.result.text.as_str()), (&ErrorCode::Auth, "so far"));
    }

    #[test]
    fn a_success_is_the_result_and_a_stopped_run_is_an_error() {
        let success = RunResult { text: "done".into(), ..RunResult::default() };
        assert_eq!(success.clone().into_result(), Ok(success));
        let stopped = RunResult { aborted: true, ..RunResult::default() };
        assert_eq!(stopped.into_result().unwrap_err().code(), &ErrorCode::Aborted);
    }

    #[test]
    fn a_result_without_its_failure_keeps_its_code() {
        let result = RunResult { is_error: true, error_code: Some(ErrorCode::Budget), ..RunResult::default() };
        assert_eq!(result.into_result().unwrap_err().code(), &ErrorCode::Budget);
    }

    #[test]
    fn a_stream_without_done_is_an_error_whose_result_is_one_too() {
        let error = RunFailure::without_done();
        assert!(error.to_string().contains("`done`"), "{error}");
        assert_eq!(error.result.clone().into_result().unwrap_err(), error);
    }
}
