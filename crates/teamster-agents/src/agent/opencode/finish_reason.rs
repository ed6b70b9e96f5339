//! The finish reasons of OpenCode's model calls, and the failures that follow from them.

use teamster_types::event::{ErrorCode, Failure, StopReason};

/// The number of consecutive steps without a finish reason at which a run is stopped. The agent would repeat the call without
/// end (`err_eof`).
pub(super) const MAX_UNFINISHED_STEPS: u32 = 3;

/// Returns whether the model finished its answer and called no tool.
pub(super) fn is_final(reason: &str) -> bool {
    !["tool-calls", "unknown", "error", "content-filter"].contains(&reason)
}

/// Returns whether the agent calls the model again after this reason.
pub(super) fn continues(reason: &str) -> bool {
    reason == "tool-calls" || reason == "unknown"
}

/// Returns the stop reason of the event stream.
pub(super) fn stop_reason(reason: &str) -> Option<StopReason> {
    Some(match reason {
        "stop" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        "content-filter" => StopReason::Refusal,
        "tool-calls" => StopReason::ToolUse,
        "unknown" => return None,
        other => StopReason::from(other),
    })
}

/// Returns the failure for answers that never finish.
pub(super) fn unfinished() -> Failure {
    let message = format!("{MAX_UNFINISHED_STEPS} consecutive answers ended without a finish reason");
    Failure::new(ErrorCode::Provider, message)
}

/// Returns the failure of a run that reached its limit of turns.
pub(super) fn turn_limit(turns: u64) -> Failure {
    Failure::new(ErrorCode::MaxTurns, format!("the limit of {turns} turns was reached"))
}

/// Returns the failure of a run that reached its budget.
pub(super) fn budget_limit(budget: f64) -> Failure {
    Failure::new(ErrorCode::Budget, format!("the limit of {budget} US dollars was reached"))
}

/// Returns the failure of an agent that ended without an answer and without an error.
pub(super) fn no_answer(finish: Option<&str>, denied: bool) -> Failure {
    let message = match finish {
        // A permission request without an approver was rejected. That ended the turn with exit code 0 (`perm_bash_ask`).
        Some("tool-calls") if denied => {
            "the agent ended without an answer, after a call for which it had no permission".to_owned()
        }
        // Two runs used one session at the same time (`conc_same_session`).
        Some("tool-calls") => "the agent ended without an answer, after tool calls".to_owned(),
        Some(reason) => format!("the agent ended without an answer (reason: {reason})"),
        None => "the CLI ended without a result".to_owned(),
    };
    Failure::new(ErrorCode::Protocol, message)
}

/// Returns the failure of a CLI that exited without an answer and without a known cause.
pub(super) fn unexplained(code: Option<i32>, signal: Option<&str>, finish: Option<&str>, denied: bool) -> Failure {
    match (signal, code) {
        (Some(signal), _) => {
            Failure::new(ErrorCode::CliSignaled, format!("{signal} ended the CLI before it reported a result"))
        }
        (None, Some(code)) if code != 0 => {
            Failure::new(ErrorCode::CliExit, format!("the CLI exited with code {code} before it reported a result"))
        }
        _ => no_answer(finish, denied),
    }
}
