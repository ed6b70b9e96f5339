//! The end of a run: whether it succeeded, failed or was aborted.

use crate::protocol::{ExitReport, Outcome};
use teamster_types::event::{ErrorCode, Failure, LeftProcess, Warning, WarningCode};

/// The reason why the driver ended a run that the agent had not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The caller ended it.
    Aborted,
    /// A limit, a failed start, or an internal error.
    Failed(Failure),
}

/// The driver's information about the end of a run.
#[derive(Clone, Debug, Default)]
pub struct End<'a> {
    /// The reason why the driver ended the run, if it did so before the agent reported its outcome.
    pub cause: Option<Cause>,
    /// The exit status of the process, if one was started.
    pub exit: Option<ExitReport<'a>>,
    /// The processes of the run that still live.
    pub left: Vec<LeftProcess>,
    /// The wall time in milliseconds.
    pub duration_ms: u64,
}

/// Returns the failure, and whether the run was aborted.
///
/// A success that the agent reported is final. Otherwise the driver's cause has priority: the agent's report may only be the
/// effect of the interrupt. (If the agent reported a failure before the interrupt, the driver passes no cause.)
pub(super) fn verdict(failure: Option<Failure>, interrupted: bool, cause: Option<Cause>) -> (Option<Failure>, bool) {
    let abort = || Failure::new(ErrorCode::Aborted, "the run was aborted").with_retryable(false);
    match (cause, failure) {
        (_, None) if !interrupted => (None, false),
        (Some(Cause::Aborted), _) => (Some(abort()), true),
        (Some(Cause::Failed(failure)), _) => (Some(failure), false),
        (None, _) if interrupted => (Some(abort()), true),
        (None, failure) => (failure, false),
    }
}

/// Returns the failure of a run that the agent reported as a success, although the model wrote no answer. An agent that did not
/// call its model, such as for one of its own commands, needs no answer.
pub(super) fn no_answer(outcome: &Outcome) -> Option<Failure> {
    let called = outcome.usage.as_ref().is_some_and(|(usage, _)| usage.output_tokens > 0);
    let is_empty = called && outcome.structured_output.is_none();
    is_empty.then(|| Failure::new(ErrorCode::Provider, "the agent ended without an answer"))
}

/// Returns the warning that the process exited with an error after the agent had reported a success. `None` if it did not.
///
/// The result is complete, so it stays a success. Something after it failed, such as a hook or the storage of the session.
pub(super) fn failed_exit(exit: ExitReport<'_>) -> Option<Warning> {
    let tail = last_line(exit.stderr);
    let text = |ended: String| Warning::new(WarningCode::ExitFailed, format!("{ended} after its result{tail}"));
    match (exit.signal, exit.code) {
        (Some(signal), _) => Some(text(format!("{signal} ended the CLI")).with("signal", signal)),
        (None, Some(code)) if code != 0 => {
            Some(text(format!("the CLI exited with code {code}")).with("exitCode", code))
        }
        _ => None,
    }
}

/// Whether the agent compacted the conversation because the prompt requested it. Such a run needs no answer.
pub(super) fn is_requested_compaction(warning: &Warning) -> bool {
    let trigger = warning.data.as_ref().and_then(|data| data.get("trigger")).and_then(serde_json::Value::as_str);
    warning.code == WarningCode::Compacted && trigger == Some("manual")
}

/// Returns the failure of a run without an outcome. Such a run is never a success.
pub(super) fn no_result(exit: Option<ExitReport<'_>>) -> Failure {
    let exit = exit.unwrap_or_default();
    let tail = last_line(exit.stderr);
    let (code, message) = match (exit.signal, exit.code) {
        (Some(signal), _) => (ErrorCode::CliSignaled, format!("{signal} ended the CLI before its result{tail}")),
        (None, Some(0) | None) => (ErrorCode::Protocol, format!("the CLI ended without a result{tail}")),
        (None, Some(code)) => (ErrorCode::CliExit, format!("the CLI exited with code {code} before its result{tail}")),
    };
    Failure::new(code, message)
}

fn last_line(stderr: &str) -> String {
    match stderr.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!(": {}", line.chars().take(500).collect::<String>()),
        None => String::new(),
    }
}
