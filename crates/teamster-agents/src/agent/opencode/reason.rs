//! Why a call of OpenCode's model ended, and what that makes of the run.

use teamster_types::event::{ErrorCode, Failure, StopReason};

/// Steps without a reason to end, one after the other, that are enough: the agent would ask again for ever (`err_eof`).
pub(super) const UNFINISHED_STEPS: u32 = 3;

/// Whether the model ended by itself, with nothing left to do.
pub(super) fn is_answer(reason: &str) -> bool {
    !["tool-calls", "unknown", "error", "content-filter"].contains(&reason)
}

/// Whether the agent asks the model again after that.
pub(super) fn goes_on(reason: &str) -> bool {
    reason == "tool-calls" || reason == "unknown"
}

/// As all agents say it.
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

/// Answers that never end.
pub(super) fn unfinished() -> Failure {
    let message = format!("{UNFINISHED_STEPS} answers in a row ended without a reason, as if they were cut off");
    Failure::new(ErrorCode::Provider, message)
}

pub(super) fn too_many_turns(turns: u64) -> Failure {
    Failure::new(ErrorCode::MaxTurns, format!("the limit of {turns} turns was reached"))
}

pub(super) fn too_expensive(budget: f64) -> Failure {
    Failure::new(ErrorCode::Budget, format!("the run has cost the {budget} US dollars it may"))
}

/// The agent has ended without an answer, and without an error.
pub(super) fn unanswered(finish: Option<&str>, denied: bool) -> Failure {
    let message = match finish {
        // What nobody could allow was rejected, and that ended the turn, with exit code 0 (perm_bash_ask).
        Some("tool-calls") if denied => {
            "the agent ended at a call that needed a permission, without an answer".to_owned()
        }
        // Two runs on one session at once (conc_same_session).
        Some("tool-calls") => "the agent ended after its tools had run, without an answer".to_owned(),
        Some(reason) => format!("the agent ended without an answer (reason: {reason})"),
        None => "the CLI ended without a result".to_owned(),
    };
    Failure::new(ErrorCode::Protocol, message)
}

/// The CLI has exited without an answer, and said nothing that is known of why.
pub(super) fn unexplained(code: Option<i32>, signal: Option<&str>, finish: Option<&str>, denied: bool) -> Failure {
    match (signal, code) {
        (Some(signal), _) => {
            Failure::new(ErrorCode::CliSignaled, format!("{signal} ended the CLI before it gave a result"))
        }
        (None, Some(code)) if code != 0 => {
            Failure::new(ErrorCode::CliExit, format!("the CLI exited with code {code} before it gave a result"))
        }
        _ => unanswered(finish, denied),
    }
}
