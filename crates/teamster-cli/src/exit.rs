//! What the command's exit codes mean. `teamster run --help` lists them.

use teamster::RunResult;
use teamster::event::ErrorCode;

pub(crate) const SUCCESS: u8 = 0;
/// The run ended in an error, or its output could not be written.
pub(crate) const FAILURE: u8 = 1;
/// Nothing was started.
pub(crate) const USAGE: u8 = 2;
/// As `timeout` has it.
pub(crate) const TIMEOUT: u8 = 124;
/// As shells have it for a command that is not there.
pub(crate) const NOT_FOUND: u8 = 127;
/// As shells have it for a command that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;
/// As shells have it for a command that SIGPIPE ended: no reader, no success.
pub(crate) const NO_READER: u8 = 141;

/// The code of a run that came to this.
pub(crate) fn of_result(result: &RunResult) -> u8 {
    match &result.error_code {
        _ if !result.is_error => SUCCESS,
        Some(ErrorCode::Aborted) => INTERRUPTED,
        Some(ErrorCode::WatchdogTimeout | ErrorCode::DeadlineExceeded) => TIMEOUT,
        Some(ErrorCode::CliNotFound) => NOT_FOUND,
        _ => FAILURE,
    }
}
