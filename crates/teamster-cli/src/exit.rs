//! The exit codes of the command. `teamster run --help` lists them.

use teamster::RunResult;
use teamster::event::ErrorCode;

pub(crate) const SUCCESS: u8 = 0;
/// The run failed, or its output could not be written.
pub(crate) const FAILURE: u8 = 1;
/// The usage was wrong; nothing was started.
pub(crate) const USAGE: u8 = 2;
/// A timeout or the deadline expired. `timeout` uses the same code.
pub(crate) const TIMEOUT: u8 = 124;
/// The agent's CLI was not found. Shells use the same code for a missing command.
pub(crate) const NOT_FOUND: u8 = 127;
/// The command was interrupted. Shells use the same code for a command that SIGINT killed.
pub(crate) const INTERRUPTED: u8 = 130;
/// The reader of standard output closed it. Shells use the same code for a command that SIGPIPE killed.
pub(crate) const NO_READER: u8 = 141;

/// Returns the exit code for a run's result.
pub(crate) fn of_result(result: &RunResult) -> u8 {
    match &result.error_code {
        _ if !result.is_error => SUCCESS,
        Some(ErrorCode::Aborted) => INTERRUPTED,
        Some(ErrorCode::WatchdogTimeout | ErrorCode::DeadlineExceeded) => TIMEOUT,
        Some(ErrorCode::CliNotFound) => NOT_FOUND,
        _ => FAILURE,
    }
}
