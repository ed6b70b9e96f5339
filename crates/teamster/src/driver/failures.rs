//! Failures that the driver itself detects.

use teamster_types::event::{ErrorCode, Failure};
use teamster_types::request::Limits;

use crate::runtime::RunError;

/// The run or turn took longer than its deadline.
pub(super) fn deadline_exceeded(limits: &Limits) -> Failure {
    let text = format!("the run took longer than its deadline of {} s", limits.deadline.as_secs_f64());
    Failure::new(ErrorCode::DeadlineExceeded, text)
}

/// The keeper killed the agent because the host's lease has expired.
pub(super) fn lease_expired() -> Failure {
    let text = "the agent was killed: its host was stopped, or did not renew its lease in time";
    Failure::new(ErrorCode::LeaseExpired, text)
}

/// The agent's protocol panicked.
pub(super) fn protocol_panicked() -> Failure {
    Failure::new(ErrorCode::Protocol, "the agent's protocol panicked, and the run was ended; this is a bug in Teamster")
}

/// The agent rejected a request that it accepted when the run or session was started.
pub(super) fn rejected_plan(error: &RunError) -> Failure {
    let code = match error {
        RunError::AgentPanicked { .. } => ErrorCode::Protocol,
        _ => ErrorCode::InvalidRequest,
    };
    Failure::new(code, error.to_string())
}
